//! What an application writes: handlers, their outcomes and their errors.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use jobs_core::{Job, Ladder, Retry, chain};

use crate::context::{Interrupted, JobContext};

/// Runs the jobs of one kind. `S` is the application's state.
///
/// ```
/// # use jobs_runtime::{Handler, Job, JobContext, JobError, Outcome};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(kind = "mail.welcome", version = "1.0.0", crate = "jobs_runtime")]
/// struct Welcome {
///     to: String,
/// }
///
/// impl Handler<()> for Welcome {
///     async fn run(self, _cx: JobContext<()>) -> Result<Outcome, JobError> {
///         println!("welcome, {}", self.to);
///         Ok(Outcome::Done)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handler for the state `{S}`",
    label = "no `Handler<{S}>` for this job",
    note = "write `impl Handler<{S}> for {Self}`, or register an async function with `.handle(…)`"
)]
pub trait Handler<S: Clone + Send + Sync + 'static>: Job {
    /// Does the work of one job.
    ///
    /// An error is a failure and is retried; a panic is one too. The future may be dropped at any
    /// await: when the job times out, when the worker is told to stop and the time is up, or when
    /// its lease is lost.
    fn run(
        self,
        cx: JobContext<S, Self::Checkpoint>,
    ) -> impl Future<Output = Result<Outcome, JobError>> + Send;

    /// Undoes what an interrupted run left behind outside the store: for kinds with
    /// `on_stop = "undo"`, after the run of a job was stopped and its future is gone, and before the
    /// job is given back. The worker waits for it until its process ends.
    ///
    /// The context's checkpoint is the last one that the run saved, else the one that it began with;
    /// its `stopping()` stays quiet. What the undo saves is where the next run begins. An error or a
    /// panic is told in the history, and the next run hears of it by
    /// [`was_cut_off`](JobContext::was_cut_off), as it does when there was no time to end.
    ///
    /// Not called where the run wrote its success in a transaction that was committed, nor where its
    /// lease was lost.
    ///
    /// The default undoes nothing.
    fn on_interrupt(
        self,
        cx: JobContext<S, Self::Checkpoint>,
    ) -> impl Future<Output = Result<(), JobError>> + Send {
        drop(cx);
        std::future::ready(Ok(()))
    }

    /// The waits between failures. Default: the job's own, which the derive sets: `retry = "2s..1h"`.
    fn ladder() -> Ladder {
        Self::retry()
    }
}

/// How a handler ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done.
    Done,
    /// Not now: again after this time. Counts as no failure. Longer than [`MAX_WAIT`](jobs_core::MAX_WAIT)
    /// it is one, of the class `wait_too_long`, and the ladder's wait is taken.
    Snooze(Duration),
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done
    }
}

/// Why a handler failed.
///
/// Every error converts into one that is retried, so `?` works. What follows can be changed on the
/// way with [`ResultExt`].
pub struct JobError {
    class: Option<String>,
    text: String,
    follow: Follow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    Retry(Retry),
    Infrastructure,
    Interrupted(Interrupted),
}

/// A [`JobError`] taken apart, for the dispatcher.
pub(crate) enum Cause {
    Failed { class: String, text: String, retry: Retry },
    Infrastructure(String),
    Interrupted(Interrupted),
}

impl JobError {
    /// A failure that says this.
    pub fn new(text: impl fmt::Display) -> Self {
        Self { class: None, text: text.to_string(), follow: Follow::Retry(Retry::Ladder) }
    }

    /// This failure, never retried: the job is dead at once. An [`Interrupted`] stays one.
    #[must_use]
    pub fn permanent(self) -> Self {
        self.followed_by(Follow::Retry(Retry::Never))
    }

    /// This failure, retried after this time instead of the ladder's; beyond
    /// [`MAX_WAIT`](jobs_core::MAX_WAIT) it is the ladder's, and the failure says so.
    #[must_use]
    pub fn retry_in(self, wait: Duration) -> Self {
        self.followed_by(Follow::Retry(Retry::After(wait)))
    }

    /// Not the handler's failure but an interruption: something that it needs is away. The wait doubles
    /// from 2 s to 5 min with every interruption, of any kind, since the job last got on.
    #[must_use]
    pub fn infrastructure(self) -> Self {
        self.followed_by(Follow::Infrastructure)
    }

    /// This failure under a class of its own: a short, stable name for filters. Without one it is
    /// `error`.
    #[must_use]
    pub fn class(mut self, class: impl Into<String>) -> Self {
        self.class = Some(class.into());
        self
    }

    fn followed_by(self, follow: Follow) -> Self {
        match self.follow {
            Follow::Interrupted(_) => self,
            Follow::Retry(_) | Follow::Infrastructure => Self { follow, ..self },
        }
    }

    pub(crate) fn into_cause(self) -> Cause {
        match self.follow {
            Follow::Interrupted(interrupted) => Cause::Interrupted(interrupted),
            Follow::Infrastructure => Cause::Infrastructure(match self.class {
                Some(class) => format!("{class}: {}", self.text),
                None => self.text,
            }),
            Follow::Retry(retry) => Cause::Failed {
                class: self.class.unwrap_or_else(|| "error".to_owned()),
                text: self.text,
                retry,
            },
        }
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobError")
            .field("class", &self.class)
            .field("text", &self.text)
            .field("follow", &self.follow)
            .finish()
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Any error is a failure with its causes, except that an [`Interrupted`] is what it says.
impl<E: StdError + Send + Sync + 'static> From<E> for JobError {
    fn from(error: E) -> Self {
        let any: &(dyn StdError + 'static) = &error;
        match any.downcast_ref::<Interrupted>() {
            Some(interrupted) => Self {
                class: None,
                text: interrupted.to_string(),
                follow: Follow::Interrupted(*interrupted),
            },
            None => Self::new(chain(any)),
        }
    }
}

/// Says at the place of an error what should follow from it.
pub trait ResultExt<T> {
    /// As [`JobError::permanent`].
    ///
    /// # Errors
    /// The same error, as a [`JobError`].
    fn permanent(self) -> Result<T, JobError>;

    /// As [`JobError::retry_in`].
    ///
    /// # Errors
    /// The same error, as a [`JobError`].
    fn retry_in(self, wait: Duration) -> Result<T, JobError>;

    /// As [`JobError::infrastructure`].
    ///
    /// # Errors
    /// The same error, as a [`JobError`].
    fn infrastructure(self) -> Result<T, JobError>;

    /// As [`JobError::class`].
    ///
    /// # Errors
    /// The same error, as a [`JobError`].
    fn class(self, class: &str) -> Result<T, JobError>;
}

impl<T, E: Into<JobError>> ResultExt<T> for Result<T, E> {
    fn permanent(self) -> Result<T, JobError> {
        self.map_err(|error| error.into().permanent())
    }

    fn retry_in(self, wait: Duration) -> Result<T, JobError> {
        self.map_err(|error| error.into().retry_in(wait))
    }

    fn infrastructure(self) -> Result<T, JobError> {
        self.map_err(|error| error.into().infrastructure())
    }

    fn class(self, class: &str) -> Result<T, JobError> {
        self.map_err(|error| error.into().class(class))
    }
}

/// A function that handles a job: `async fn(J, JobContext<S>) -> Result<(), JobError>`.
///
/// Its arguments and its future have traits of their own, [`Takes`] and [`Ends`], so that rustc names
/// the piece that is wrong.
#[diagnostic::on_unimplemented(
    message = "this is not a handler function",
    label = "expected `async fn(J, JobContext<S>) -> Result<(), JobError>`"
)]
pub trait HandlerFn<J, C, R>: Send + Sync + 'static {
    /// Calls the function.
    fn call(&self, job: J, cx: C) -> R;
}

#[diagnostic::do_not_recommend]
impl<J, C, R, F: Fn(J, C) -> R + Send + Sync + 'static> HandlerFn<J, C, R> for F {
    fn call(&self, job: J, cx: C) -> R {
        self(job, cx)
    }
}

/// A function whose arguments fit the state `S`: a job `J` and its context `C`.
///
/// It is asked of the function because rustc points at the type that lacks a trait.
#[diagnostic::on_unimplemented(
    message = "`{J}` and `{C}` are not a job and its context for the state `{S}`",
    label = "expected a type with `#[derive(Job)]`, then `JobContext<{S}>`, or `JobContext<{S}, C>` \
             where the job names the checkpoint `C`"
)]
pub trait Takes<S, J: Job, C> {
    /// The context as the argument.
    fn context(cx: JobContext<S, J::Checkpoint>) -> C;
}

// `C` is learnt from the function, not from here: so a wrong one is answered by this trait, and not
// as a wrong signature, which rustc spreads over 23 lines.
#[diagnostic::do_not_recommend]
impl<F, S, J: Job, C> Takes<S, J, C> for F
where
    C: sealed::Context<State = S, Checkpoint = J::Checkpoint>,
{
    fn context(cx: JobContext<S, J::Checkpoint>) -> C {
        C::itself(cx)
    }
}

mod sealed {
    use super::JobContext;

    pub trait Context {
        type State;
        type Checkpoint;

        fn itself(cx: JobContext<Self::State, Self::Checkpoint>) -> Self;
    }

    impl<S, C> Context for JobContext<S, C> {
        type State = S;
        type Checkpoint = C;

        fn itself(cx: Self) -> Self {
            cx
        }
    }
}

/// What a handler function returns when it is called: a future that ends as a handler ends.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the future of a handler",
    label = "expected an `async` function that returns `Result<(), JobError>` or \
             `Result<Outcome, JobError>`"
)]
pub trait Ends: 'static {
    /// Runs to the end.
    fn end(self) -> impl Future<Output = Result<Outcome, JobError>> + Send
    where
        Self: Send;
}

#[diagnostic::do_not_recommend]
impl<F, Out> Ends for F
where
    F: Future<Output = Result<Out, JobError>> + 'static,
    Out: Into<Outcome>,
{
    async fn end(self) -> Result<Outcome, JobError>
    where
        Self: Send,
    {
        self.await.map(Into::into)
    }
}
