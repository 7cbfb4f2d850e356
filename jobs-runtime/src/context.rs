//! What a handler is given besides its job.

mod checkpoint;
mod cursor;
mod notes;
mod past;
mod spawn;

use std::error::Error as StdError;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use jobs_core::store::Standing;
use jobs_core::{
    ClaimNumber, Fence, Headers, JobId, NoCheckpoint, StoreErrorKind, Timestamp, Versioned,
};

pub use self::checkpoint::MAX_CHECKPOINT_BYTES;
use self::checkpoint::Pace;
pub use self::cursor::{Batch, Cursor};
pub use self::spawn::Spawned;
use crate::client::Jobs;
use crate::error::{Error, ErrorKind};
use crate::handler::JobError;
use crate::run::{Board, Reason, RunInfo, RunSignals, Wrote};
use crate::store::{StoreDatabase, UserTransaction};

/// What a handler is given besides its job: the application's state, and the run it is in.
#[derive(Debug)]
pub struct JobContext<S, C = NoCheckpoint> {
    /// The application's state.
    pub state: S,
    parts: Parts,
    /// Behind a lock, so that a checkpoint need not be `Sync` for a handler to share its context.
    resume: Mutex<Option<C>>,
    pace: Pace,
    _checkpoint: PhantomData<fn() -> C>,
}

/// What a context is made of, whatever the types of the state and the checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) jobs: Jobs,
    pub(crate) info: Arc<RunInfo>,
    pub(crate) signals: Arc<RunSignals>,
    pub(crate) board: Arc<Board>,
}

/// A handler is asked to return, or has lost its claim. Passed on with `?`, it counts as no failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interrupted {
    /// The worker stops; the job goes on elsewhere.
    Stopping,
    /// A person cancelled the job.
    Cancelled,
    /// Another worker has the job: whatever this run still writes is refused.
    LeaseLost,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopping => "the worker is stopping",
            Self::Cancelled => "the job was cancelled",
            Self::LeaseLost => "the run lost its claim on the job",
        })
    }
}

impl StdError for Interrupted {}

impl<S, C> JobContext<S, C> {
    pub(crate) fn new(state: S, parts: Parts, resume: Option<C>) -> Self {
        let (resume, pace) = (Mutex::new(resume), Pace::default());
        Self { state, parts, resume, pace, _checkpoint: PhantomData }
    }

    /// The job.
    pub fn id(&self) -> JobId {
        self.parts.info.id()
    }

    /// The number of this claim. Every write about the run is refused once a higher one exists.
    pub fn claim(&self) -> ClaimNumber {
        self.parts.info.claim()
    }

    /// How many runs of the job failed before this one; interruptions don't count.
    pub fn failures(&self) -> u32 {
        self.parts.info.failures()
    }

    /// When this run times out; `None` without a time-out.
    pub fn deadline(&self) -> Option<Instant> {
        self.parts.info.deadline()
    }

    /// When the job was enqueued.
    pub fn enqueued_at(&self) -> Timestamp {
        self.parts.info.enqueued_at()
    }

    /// What the producer wrote beside the payload.
    pub fn headers(&self) -> &Headers {
        self.parts.info.headers()
    }

    /// All that is known of the run.
    pub fn info(&self) -> &RunInfo {
        &self.parts.info
    }

    /// A key for calls to other systems that must happen once: the same over all runs and redrives
    /// of the job, except those that ask for a new one, and unlike that of any other job in any store.
    pub fn idempotency_key(&self) -> String {
        let key = format!("{}-{}", self.parts.jobs.store().id(), self.id());
        match self.parts.info.key_number {
            0 => key,
            number => format!("{key}-{number}"),
        }
    }

    /// The client of the store that the job came from, to enqueue more.
    pub fn jobs(&self) -> &Jobs {
        &self.parts.jobs
    }

    /// Opens a transaction on the database that the jobs are in, as
    /// [`Jobs::begin`](crate::Jobs::begin) does: `cx.begin::<sqlx::Sqlite>()`.
    ///
    /// # Errors
    /// An infrastructure error when the store fails; a permanent one when the jobs are in another
    /// database.
    pub async fn begin<DB: StoreDatabase>(
        &self,
    ) -> Result<sqlx::Transaction<'static, DB>, JobError> {
        self.parts.jobs.begin().await.map_err(unanswered)
    }

    /// Whether the handler is asked to return: the worker stops, the job is cancelled, its time is
    /// up, or its lease is in danger.
    pub fn is_stopping(&self) -> bool {
        self.parts.signals.stopping().is_cancelled()
    }

    /// Waits until the handler is asked to return.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub async fn stopping(&self) {
        self.parts.signals.stopping().cancelled().await;
    }

    /// Asks whether the run may go on: not asked to return, and its claim still stands in the store.
    /// Writes nothing.
    ///
    /// # Errors
    /// An [`Interrupted`], to be passed on with `?`; an infrastructure error when the store can't be
    /// asked.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub async fn check(&self) -> Result<(), JobError> {
        self.standing_here()?;
        let standings = self.parts.jobs.store().check(&[self.fence()]).await;
        let standings = standings.map_err(|error| unanswered(error.into()))?;
        self.stand(standings.first().copied().unwrap_or(Standing::Lost))
    }

    /// Writes the job's success inside a transaction of the application: it commits with the
    /// application's own rows, or not at all. Return [`Outcome::Done`](crate::Outcome::Done) after
    /// the commit; the row, not the return value, then decides.
    ///
    /// The job's row stays locked until the transaction ends, so commit soon.
    ///
    /// # Errors
    /// [`Interrupted::LeaseLost`] when another has the job: roll back. An infrastructure error when
    /// the store fails; a permanent one when the transaction is not one of this store.
    ///
    /// # Cancel safety
    /// Dropped before it returns, it may or may not be in the transaction: roll that back.
    pub async fn done_in<T: UserTransaction>(&self, tx: &mut T) -> Result<(), JobError> {
        match self.finish_in(tx).await? {
            Standing::Held | Standing::CancelRequested => Ok(()),
            Standing::Lost => Err(Interrupted::LeaseLost.into()),
        }
    }

    async fn finish_in<T: UserTransaction>(&self, tx: &mut T) -> Result<Standing, JobError> {
        let kept = self.parts.signals.kept();
        // A checkpoint that was put off is of no use to who has succeeded.
        kept.take_checkpoint();
        self.parts.signals.note_write(Wrote::Success);
        let (backend, notes) = (self.parts.jobs.backend(), kept.notes());
        let standing = backend.done_in(tx.connection(), self.fence(), &notes).await;
        standing.map_err(unanswered)
    }

    fn fence(&self) -> Fence {
        self.parts.info.fence
    }

    /// What this process knows without asking.
    fn standing_here(&self) -> Result<(), Interrupted> {
        match self.parts.signals.reason() {
            None => Ok(()),
            Some(Reason::Drain | Reason::Timeout) => Err(Interrupted::Stopping),
            Some(Reason::Cancel) => Err(Interrupted::Cancelled),
            Some(Reason::Lease) => Err(Interrupted::LeaseLost),
        }
    }

    fn stand(&self, standing: Standing) -> Result<(), JobError> {
        match standing {
            Standing::Held => Ok(self.standing_here()?),
            Standing::CancelRequested => {
                self.parts.signals.ask(Reason::Cancel);
                Err(Interrupted::Cancelled.into())
            }
            Standing::Lost => {
                self.parts.signals.ask(Reason::Lease);
                Err(Interrupted::LeaseLost.into())
            }
        }
    }
}

impl<S, C: Versioned> JobContext<S, C> {
    /// Saves a checkpoint inside a transaction of the application: it commits with the
    /// application's own rows, or not at all. Never an interruption point, and never put off.
    ///
    /// The job's row stays locked until the transaction ends, so commit soon.
    ///
    /// # Errors
    /// [`Interrupted::LeaseLost`] when another has the job: roll back. An infrastructure error when
    /// the store fails; a permanent one when the checkpoint is larger than [`MAX_CHECKPOINT_BYTES`]
    /// or the transaction is not one of this store.
    ///
    /// # Cancel safety
    /// Dropped before it returns, it may or may not be in the transaction: roll that back.
    pub async fn checkpoint_in<T: UserTransaction>(
        &self,
        tx: &mut T,
        at: &C,
    ) -> Result<(), JobError> {
        match self.save_in(tx, at).await? {
            Standing::Held | Standing::CancelRequested => Ok(()),
            Standing::Lost => Err(Interrupted::LeaseLost.into()),
        }
    }
}

/// What follows from a call that the store did not answer: what is wrong with the call stays wrong,
/// everything else is the infrastructure's.
fn unanswered(error: Error) -> JobError {
    let is_wrong = matches!(
        error.kind(),
        ErrorKind::WrongTransaction | ErrorKind::Store(StoreErrorKind::Invalid)
    );
    let error = JobError::from(error);
    if is_wrong { error.permanent() } else { error.infrastructure() }
}
