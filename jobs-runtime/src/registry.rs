//! Which kinds a worker handles, as an explicit, typed list.
//!
//! Deliberately absent: collection at link time. It silently drops the crates that nobody names.

mod around;
mod erased;
mod handlers;
mod mistakes;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use jobs_core::{Job, Kind, Schedule};

use self::around::Around;
pub use self::around::Next;
#[cfg(feature = "cli")]
pub(crate) use self::erased::ReadPayload;
use self::erased::{FunctionHandler, TraitHandler};
pub(crate) use self::erased::{PrepareError, Prepared, StoredText};
pub(crate) use self::handlers::Handled;
pub use self::handlers::Handlers;
use self::handlers::Known;
pub use self::mistakes::RegistryError;
use self::mistakes::{check, check_schedules, clash};
use crate::handler::{Ends, Handler, HandlerFn, JobError, Outcome, Takes};
use crate::manifest::ProducedKind;
use crate::run::RunInfo;

/// Collects the handlers of a worker. [`build`](Self::build) reports every mistake at once.
pub struct Registry<S> {
    handled: Vec<Handled<S>>,
    produced: Vec<ProducedKind>,
    retired: Vec<String>,
    schedules: Vec<Schedule>,
    around: Vec<Arc<Around<S>>>,
}

impl<S: Clone + Send + Sync + 'static> Registry<S> {
    /// An empty list.
    pub fn new() -> Self {
        Self {
            handled: Vec::new(),
            produced: Vec::new(),
            retired: Vec::new(),
            schedules: Vec::new(),
            around: Vec::new(),
        }
    }

    /// Adds a job with its [`Handler`]; [`WithHandler`] is every type that has one.
    #[must_use]
    pub fn job<J: WithHandler<S>>(self) -> J::Registry {
        J::add_to(self)
    }

    /// Adds a job with an async function as its handler:
    /// `async fn(J, JobContext<S>) -> Result<(), JobError>`, or with
    /// `JobContext<S, J::Checkpoint>` where the job names a checkpoint, or with
    /// `Result<Outcome, JobError>`.
    #[must_use]
    pub fn handle<J: Job, C: 'static, R: Ends + Send, F: HandlerFn<J, C, R> + Takes<S, J, C>>(
        mut self,
        function: F,
    ) -> Self {
        let erased = Box::new(FunctionHandler::<J, C, R, F>::new(function));
        self.schedules.extend(J::schedules());
        self.handled.push(Handled::of::<J>(erased, J::retry()));
        self
    }

    /// Declares that a kind is gone for good: its remaining jobs become dead letters of the class
    /// `retired` instead of waiting for a build that reads them.
    #[must_use]
    pub fn retired(mut self, kind: impl Into<String>) -> Self {
        self.retired.push(kind.into());
        self
    }

    /// Declares a schedule: as long as a worker with this list lives, it ticks.
    ///
    /// ```
    /// # use jobs_runtime::{CatchUp, Job, Registry, Schedule};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize, Job)]
    /// #[job(kind = "mail.digest", version = "1.0.0", crate = "jobs_runtime")]
    /// struct Digest {
    ///     list: String,
    /// }
    ///
    /// let weekly = Digest { list: "news".to_owned() };
    /// let registry = Registry::<()>::new().schedule(
    ///     Schedule::new("0 7 * * MON Europe/Berlin", &weekly)
    ///         .named("mail.digest.weekly")
    ///         .catch_up(CatchUp::None),
    /// );
    /// # drop(registry.build().unwrap());
    /// ```
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedules.push(schedule);
        self
    }

    /// Says in the manifest that this build enqueues a job which it does not handle. What it handles
    /// it is taken to enqueue too.
    #[must_use]
    pub fn produces<J: Job>(mut self) -> Self {
        self.produced.push(ProducedKind::of::<J>());
        self
    }

    /// Wraps every run: `wrap` gets the state, what is known of the run, and the rest of it. What
    /// is added first runs outermost.
    ///
    /// ```
    /// # use jobs_runtime::Registry;
    /// let registry = Registry::<()>::new().around(|(), run, next| async move {
    ///     let outcome = next.run().await;
    ///     println!("{} of {} ended: {outcome:?}", run.id(), run.kind());
    ///     outcome
    /// });
    /// # drop(registry);
    /// ```
    #[must_use]
    pub fn around<F, Fut>(mut self, wrap: F) -> Self
    where
        F: Fn(S, Arc<RunInfo>, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        self.around.push(Arc::new(move |state, info, next| Box::pin(wrap(state, info, next))));
        self
    }

    /// Checks the list.
    ///
    /// # Errors
    /// [`RegistryError`] lists every kind that two types claim, that is both handled and retired,
    /// that is malformed, or that must undo and can't, and every schedule that never ticks or shares
    /// its name.
    pub fn build(self) -> Result<Handlers<S>, RegistryError> {
        let mut problems = Vec::new();
        let mut by_kind = HashMap::new();
        for (at, handled) in self.handled.iter().enumerate() {
            check(handled, &mut problems);
            for kind in std::iter::once(&*handled.kind).chain(handled.aliases.iter().copied()) {
                match by_kind.entry(kind.to_owned()) {
                    Entry::Vacant(free) => {
                        free.insert(Known::Handled(at));
                    }
                    Entry::Occupied(taken) => {
                        problems.push(clash(kind, *taken.get(), handled, &self.handled));
                    }
                }
            }
        }
        for kind in &self.retired {
            if let Err(error) = Kind::new(kind) {
                problems.push(error.to_string());
            }
            if let Some(Known::Handled(at)) = by_kind.insert(kind.clone(), Known::Retired) {
                let name = self.handled[at].type_name;
                problems.push(format!("kind `{kind}` is retired, but {name} still handles it"));
            }
        }
        check_schedules(&self.schedules, &mut problems);
        if problems.is_empty() {
            let Self { handled, mut produced, schedules, around, .. } = self;
            produced.sort_by(|a, b| a.kind.cmp(&b.kind));
            Ok(Handlers { handled, by_kind, schedules, produced, around })
        } else {
            Err(RegistryError { problems })
        }
    }
}

/// A job that has a [`Handler`]: every type that implements it.
///
/// The registry is named through this trait because rustc says of a type in a signature what is
/// missing, and of a bound alone also where it stands and what else there is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handler for the state `{S}`",
    label = "no `Handler<{S}>` for `{Self}`",
    note = "write `impl Handler<{S}> for {Self}`, or register an async function with `.handle(…)`"
)]
pub trait WithHandler<S: Clone + Send + Sync + 'static>: Handler<S> {
    /// The registry that it is added to.
    type Registry;

    #[doc(hidden)]
    fn add_to(registry: Registry<S>) -> Self::Registry;
}

#[diagnostic::do_not_recommend]
impl<S: Clone + Send + Sync + 'static, J: Handler<S>> WithHandler<S> for J {
    type Registry = Registry<S>;

    fn add_to(mut registry: Registry<S>) -> Registry<S> {
        let erased = Box::new(TraitHandler::<J>::new());
        registry.schedules.extend(J::schedules());
        registry.handled.push(Handled::of::<J>(erased, J::ladder()));
        registry
    }
}

impl<S: Clone + Send + Sync + 'static> Default for Registry<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Registry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.handled.iter().map(|handled| &handled.kind).collect();
        f.debug_struct("Registry").field("kinds", &kinds).finish_non_exhaustive()
    }
}
