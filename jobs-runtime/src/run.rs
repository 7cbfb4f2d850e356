//! One run in this process: what its handler, its dispatcher and the heartbeat share.

mod board;
mod kept;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jobs_core::store::{CheckpointSave, Saved, Standing, Store};
use jobs_core::{
    ClaimedJob, Fence, Headers, JobId, Policy, QueueName, StoreError, StoreErrorKind, Timestamp,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use self::board::Board;
use self::kept::Kept;
pub(crate) use self::kept::{Before, PutOff};
use crate::log::Seldom;

/// Why a handler is asked to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The worker drains.
    Drain,
    /// A person asked to cancel the job.
    Cancel,
    /// The worker can't renew its lease, or someone else has the job.
    Lease,
    /// The time of the run is up.
    Timeout,
}

/// What a run's handler wrote about it in the store: what only the row knows the fate of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrote {
    /// Nothing.
    Nothing,
    /// A checkpoint, which may have reset counters.
    Checkpoint,
    /// Its success, in a transaction that may or may not have been committed.
    Success,
}

/// What all runs of a kind share in this process.
#[derive(Debug)]
pub(crate) struct RunKind {
    pub(crate) kind: Arc<str>,
    pub(crate) checkpoint_every: Option<Duration>,
    /// Whether failures stay counted although a checkpoint moved.
    pub(crate) keeps_failures: bool,
    /// Says that a checkpoint is large.
    pub(crate) large: Seldom,
    /// Says that two checkpoints lie far apart.
    pub(crate) apart: Seldom,
}

impl RunKind {
    pub(crate) fn new(kind: Arc<str>, policy: &Policy) -> Self {
        let Policy { checkpoint_every, keeps_failures, .. } = *policy;
        let (large, apart) = (Seldom::new(), Seldom::new());
        Self { kind, checkpoint_every, keeps_failures, large, apart }
    }
}

/// What is known of a run before it starts.
#[derive(Debug, Clone)]
pub struct RunInfo {
    pub(crate) fence: Fence,
    pub(crate) of: Arc<RunKind>,
    pub(crate) queue: QueueName,
    pub(crate) key_number: u32,
    pub(crate) failures: u32,
    pub(crate) interruptions: u32,
    pub(crate) headers: Headers,
    pub(crate) enqueued_at: Timestamp,
    pub(crate) deadline: Option<std::time::Instant>,
}

impl RunInfo {
    /// What is known of a claimed job whose run may take so long.
    pub(crate) fn of(job: &ClaimedJob, of: Arc<RunKind>, timeout: Option<Duration>) -> Self {
        // Headers are for people and middleware; malformed ones must not fail the job.
        let headers = job.headers.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Self {
            fence: job.fence,
            of,
            queue: job.queue.clone(),
            key_number: job.key_number,
            failures: job.counters.failures,
            interruptions: job.counters.interruptions,
            headers: headers.unwrap_or_default(),
            enqueued_at: job.enqueued_at,
            deadline: timeout.and_then(crate::clock::instant_in),
        }
    }

    /// The job.
    pub fn id(&self) -> JobId {
        self.fence.job
    }

    /// The number of this claim.
    pub fn claim(&self) -> jobs_core::ClaimNumber {
        self.fence.claim
    }

    /// The kind under which this build handles the job.
    pub fn kind(&self) -> &str {
        &self.of.kind
    }

    /// The queue that it was claimed from.
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// How many runs of the job failed before this one.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// How many runs of the job the infrastructure ended since its checkpoint last moved.
    pub fn interruptions(&self) -> u32 {
        self.interruptions
    }

    /// What the producer wrote beside the payload.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// When the job was enqueued.
    pub fn enqueued_at(&self) -> Timestamp {
        self.enqueued_at
    }

    /// When this run times out; `None` without a time-out.
    pub fn deadline(&self) -> Option<std::time::Instant> {
        self.deadline
    }
}

/// The signals of a run. Tokens are made when they are first asked for: most handlers return before
/// anyone does.
#[derive(Debug, Default)]
pub(crate) struct RunSignals {
    stopping: OnceLock<CancellationToken>,
    aborted: OnceLock<CancellationToken>,
    reason: AtomicU8,
    wrote: AtomicU8,
    polled_since_us: AtomicU64,
    finishes: AtomicBool,
    has_begun: AtomicBool,
    has_ended: AtomicBool,
    /// Made for the first: most handlers spawn nothing.
    spawned: Mutex<Option<JoinSet<()>>>,
    kept: Kept,
}

impl RunSignals {
    /// From now on a drain does not ask the handler to return before it aborts it.
    pub(crate) fn let_finish(&self) {
        self.finishes.store(true, Ordering::SeqCst);
    }

    /// Whether a drain waits for the handler without asking it to return.
    pub(crate) fn finishes(&self) -> bool {
        self.finishes.load(Ordering::SeqCst)
    }

    /// Spawns work that belongs to the run.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut spawned = self.spawned.lock().unwrap_or_else(PoisonError::into_inner);
        let spawned = spawned.get_or_insert_default();
        while spawned.try_join_next().is_some() {}
        spawned.spawn(work);
    }

    /// Aborts what the run spawned, and waits until it has really ended.
    pub(crate) async fn end_spawned(&self) {
        let spawned = self.spawned.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut spawned) = spawned {
            spawned.shutdown().await;
        }
    }

    /// The handler is to begin, or is given back and never will: answers whether that was open.
    pub(crate) fn begin(&self) -> bool {
        !self.has_begun.swap(true, Ordering::SeqCst)
    }

    /// Notes that the handler has really ended; answers whether that is news.
    pub(crate) fn end(&self) -> bool {
        !self.has_ended.swap(true, Ordering::SeqCst)
    }

    /// Whether the handler has really ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Asks the handler to return. The first reason stands, except that a lost lease and a cancel
    /// outweigh a drain.
    pub(crate) fn ask(&self, reason: Reason) {
        let code = code(reason);
        self.reason.fetch_max(code, Ordering::SeqCst);
        self.stopping().cancel();
    }

    /// Why the handler was asked to return, if it was.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self.reason.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(Reason::Drain),
            2 => Some(Reason::Timeout),
            3 => Some(Reason::Cancel),
            _ => Some(Reason::Lease),
        }
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        self.stopping.get_or_init(CancellationToken::new)
    }

    /// Cancelled when the handler is to be dropped.
    pub(crate) fn aborted(&self) -> &CancellationToken {
        self.aborted.get_or_init(CancellationToken::new)
    }

    /// Notes that the handler wrote about this run, before it does.
    pub(crate) fn note_write(&self, wrote: Wrote) {
        self.wrote.fetch_max(wrote as u8, Ordering::SeqCst);
    }

    pub(crate) fn wrote(&self) -> Wrote {
        match self.wrote.load(Ordering::SeqCst) {
            0 => Wrote::Nothing,
            1 => Wrote::Checkpoint,
            _ => Wrote::Success,
        }
    }

    /// What the handler has said and the store does not have yet.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Notes when the handler began to hold its thread; zero: it does not.
    pub(crate) fn note_poll(&self, since: Duration) {
        let micros = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        self.polled_since_us.store(micros, Ordering::Relaxed);
    }

    /// For how long the handler has held its thread without yielding.
    pub(crate) fn blocks_for(&self, now: Duration) -> Duration {
        match self.polled_since_us.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => now.saturating_sub(Duration::from_micros(since)),
        }
    }
}

fn code(reason: Reason) -> u8 {
    match reason {
        Reason::Drain => 1,
        Reason::Timeout => 2,
        Reason::Cancel => 3,
        Reason::Lease => 4,
    }
}

/// Saves one checkpoint. That someone holds the row for too long is an error here: it may be saved
/// later.
pub(crate) async fn save(store: &dyn Store, save: &CheckpointSave) -> Result<Standing, StoreError> {
    match store.checkpoint(std::slice::from_ref(save)).await?.first() {
        Some(Saved::Answered(standing)) => Ok(*standing),
        Some(Saved::Locked) => {
            let what = "the row of a run stayed locked by another transaction";
            Err(StoreError::new(StoreErrorKind::Busy, what))
        }
        None => Ok(Standing::Lost),
    }
}
