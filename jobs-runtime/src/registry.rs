//! Which kinds a worker handles, as an explicit, typed list.
//!
//! Deliberately absent: collection at link time. It silently drops the crates that nobody names.

mod around;
mod erased;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jobs_core::{
    BuildId, Job, Kind, Ladder, Line, MinReader, OnStop, Policy, QueueName, Reader, Schedule,
    Versioned,
};

use self::around::Around;
pub use self::around::Next;
use self::erased::{Erased, FunctionHandler, TraitHandler};
pub(crate) use self::erased::{PrepareError, Prepared, StoredText};
#[cfg(feature = "cli")]
pub(crate) use self::erased::{ReadPayload, read_payload};
use crate::context::Parts;
use crate::handler::{Ends, Handler, HandlerFn, JobError, Outcome, Takes};
use crate::manifest::ProducedKind;
use crate::run::{RunInfo, RunKind};
use crate::schedule::declaration;

/// Collects the handlers of a worker. [`build`](Self::build) reports every mistake at once.
pub struct Registry<S> {
    handled: Vec<Handled<S>>,
    produced: Vec<ProducedKind>,
    retired: Vec<String>,
    schedules: Vec<Schedule>,
    around: Vec<Arc<Around<S>>>,
}

/// The handlers of a worker, checked.
pub struct Handlers<S> {
    handled: Vec<Handled<S>>,
    by_kind: HashMap<String, Known>,
    schedules: Vec<Schedule>,
    produced: Vec<ProducedKind>,
    around: Vec<Arc<Around<S>>>,
}

/// One kind and how its jobs are run.
pub(crate) struct Handled<S> {
    pub(crate) kind: Arc<str>,
    pub(crate) of: Arc<RunKind>,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) lines: Vec<Line>,
    pub(crate) checkpoint_lines: Vec<Line>,
    /// Which reader the author of its checkpoint vouches for; `None`: it saves none.
    pub(crate) checkpoint_reader: Option<MinReader>,
    pub(crate) policy: Policy,
    pub(crate) ladder: Ladder,
    pub(crate) type_name: &'static str,
    /// What this build enqueues of it.
    pub(crate) newest: ProducedKind,
    /// Reads a payload without running it.
    #[cfg(feature = "cli")]
    pub(crate) read: ReadPayload,
    pub(crate) erased: Box<dyn Erased<S>>,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    Handled(usize),
    Retired,
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

fn check<S>(handled: &Handled<S>, problems: &mut Vec<String>) {
    let name = handled.type_name;
    for kind in std::iter::once(&*handled.kind).chain(handled.aliases.iter().copied()) {
        if let Err(error) = Kind::new(kind) {
            problems.push(format!("{name}: {error}"));
        }
    }
    if let Err(error) = QueueName::new(handled.policy.queue) {
        problems.push(format!("{name}: {error}"));
    }
    if handled.policy.on_stop == OnStop::Undo && !handled.erased.can_undo() {
        problems.push(format!(
            "{name}: `on_stop = \"undo\"` needs `impl Handler` with `on_interrupt`; a function has none"
        ));
    }
    if handled.lines.is_empty() || !handled.lines.is_sorted_by(|a, b| a.major < b.major) {
        problems.push(format!("{name}: its lines are not one per major, oldest first"));
    }
}

fn check_schedules(schedules: &[Schedule], problems: &mut Vec<String>) {
    let mut names = HashSet::new();
    for schedule in schedules {
        problems.extend(declaration(schedule, &BuildId::default()).err());
        if !names.insert(schedule.name()) {
            let name = schedule.name();
            problems.push(format!(
                "two schedules are named {name:?}; give one another name with `named`"
            ));
        }
    }
}

fn clash<S>(kind: &str, known: Known, handled: &Handled<S>, all: &[Handled<S>]) -> String {
    let Known::Handled(at) = known else {
        return format!("kind `{kind}` is both retired and handled by {}", handled.type_name);
    };
    let (first, second) = (all[at].type_name, handled.type_name);
    if first == second {
        return format!("kind `{kind}` is registered twice for {first}; remove one of the two");
    }
    format!(
        "kind `{kind}` is claimed by two types, {first} and {second}; give one of them another \
         kind, or register only one"
    )
}

impl<S> Handled<S> {
    fn of<J: Job>(erased: Box<dyn Erased<S>>, ladder: Ladder) -> Self {
        let kind: Arc<str> = J::KIND.into();
        let checkpoint_lines = J::Checkpoint::lines();
        let saves = !checkpoint_lines.is_empty();
        Self {
            of: Arc::new(RunKind::new(kind.clone(), &J::POLICY)),
            kind,
            aliases: J::ALIASES,
            lines: J::lines(),
            checkpoint_lines,
            checkpoint_reader: saves.then_some(J::Checkpoint::MIN_READER),
            policy: J::POLICY,
            ladder,
            type_name: std::any::type_name::<J>(),
            newest: ProducedKind::of::<J>(),
            #[cfg(feature = "cli")]
            read: read_payload::<J>,
            erased,
        }
    }
}

impl<S> Handlers<S> {
    /// How this build reads a kind.
    pub(crate) fn reader(&self, kind: &str) -> Reader<'_> {
        self.known(kind).0
    }

    /// What this build knows of a kind, and its handler where it has one.
    pub(crate) fn known(&self, kind: &str) -> (Reader<'_>, Option<&Handled<S>>) {
        match self.by_kind.get(kind) {
            None => (Reader::Unknown, None),
            Some(Known::Retired) => (Reader::Retired, None),
            Some(Known::Handled(at)) => {
                let handled = &self.handled[*at];
                (Reader::Reads(&handled.lines), Some(handled))
            }
        }
    }

    /// The handler of a kind, where this build has one.
    pub(crate) fn handled(&self, kind: &str) -> Option<&Handled<S>> {
        self.known(kind).1
    }

    pub(crate) fn all(&self) -> &[Handled<S>] {
        &self.handled
    }

    pub(crate) fn schedules(&self) -> &[Schedule] {
        &self.schedules
    }

    pub(crate) fn produced(&self) -> &[ProducedKind] {
        &self.produced
    }

    pub(crate) fn retired(&self) -> impl Iterator<Item = &str> {
        let is_retired = |known: &Known| match known {
            Known::Retired => true,
            Known::Handled(_) => false,
        };
        let kinds = self.by_kind.iter().filter(move |(_, known)| is_retired(known));
        kinds.map(|(kind, _)| kind.as_str())
    }

    /// A decoded job inside its middleware.
    pub(crate) fn wrapped(
        &self,
        state: &S,
        prepared: Prepared<S>,
        parts: Parts,
    ) -> BoxFuture<'static, Result<Outcome, JobError>>
    where
        S: Clone + Send + Sync + 'static,
    {
        around::wrapped(&self.around, state, prepared, parts)
    }
}

/// Every mistake of a [`Registry`].
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryError {
    problems: Vec<String>,
}

impl RegistryError {
    /// The mistakes, in order of registration.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the registry has mistakes: {}", self.problems.join("; "))
    }
}

/// For people too: `main` prints an error that it returns by this.
impl fmt::Debug for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RegistryError {}

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

impl<S> fmt::Debug for Handlers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.by_kind.keys().collect();
        f.debug_struct("Handlers").field("kinds", &kinds).finish_non_exhaustive()
    }
}
