//! Handlers that run where they are called.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jobs_core::{
    BuildId, ClaimedJob, Ending, Job, JobId, ManualClock, Notes, QueueName, SeededRandom, Timestamp,
};
use tokio::sync::Mutex;

use super::engine::Engine;
use crate::client::Jobs;
use crate::context::Parts;
use crate::handler::{JobError, Outcome};
use crate::judge;
use crate::registry::Handlers;
use crate::run::{Board, RunInfo, RunSignals};

/// How long a handler would have to return; nobody asks it to.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// When the clock of a test begins.
pub(super) const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// The handlers of an application over a store in memory, run by whoever calls.
pub struct Inline<S> {
    jobs: Jobs,
    clock: Arc<ManualClock>,
    handlers: Handlers<S>,
    state: S,
    engine: Mutex<Engine>,
    /// How many jobs were run by themselves.
    runs: AtomicU64,
}

/// What [`Inline::drain`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Runs that ended well.
    pub succeeded: usize,
    /// Runs that were put off.
    pub snoozed: usize,
    /// Jobs that this build gave back unread.
    pub refused: usize,
    /// Runs that failed or did not decode, with what they said.
    pub failed: Vec<(JobId, String)>,
}

impl<S: Clone + Send + Sync + 'static> Inline<S> {
    /// A fresh store, a clock that stands still, and these handlers.
    ///
    /// # Panics
    /// Never: the store in memory opens.
    pub async fn new(handlers: Handlers<S>, state: S) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let random = Arc::new(SeededRandom::new(1));
        let jobs = Jobs::builder().clock(clock.clone()).random(random.clone());
        let jobs = jobs.open("memory:").await.expect("the store in memory opens");
        let build = BuildId::default();
        let engine = Engine::register(&jobs, clock.clone(), random, &build, &handlers).await;
        Self { jobs, clock, handlers, state, engine: Mutex::new(engine), runs: AtomicU64::new(0) }
    }

    /// The client to hand to the application's code.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Moves the clock, so that what was delayed falls due.
    pub fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    /// Runs the handler of one job, encoded and decoded as a stored one, and answers what it
    /// returned. Whatever else is enqueued stays as it is.
    ///
    /// The job is then settled as in a worker: one that failed or was put off waits for its next run,
    /// which [`drain`](Self::drain) starts once the clock has come there.
    ///
    /// # Errors
    /// What the handler returned.
    ///
    /// # Panics
    /// When the job can't be stored or this registry does not handle it; when the handler panics.
    pub async fn run<J: Job>(&self, job: J) -> Result<Outcome, JobError> {
        let mut engine = self.engine.lock().await;
        // A queue of its own, since an earlier one may be ready again.
        let nth = self.runs.fetch_add(1, Ordering::Relaxed);
        let queue = QueueName::new(format!("testing.{nth}")).expect("a short name");
        let enqueue = self.jobs().enqueue(job).queue(queue.as_str());
        enqueue.await.expect("the job can be stored");
        let claimed = engine.claim(&[queue], &self.handlers, 1).await;
        let job = claimed.first().expect("the job is ready");
        let ended = self.call(&engine, job).await;
        let ended = ended.unwrap_or_else(|ending| panic!("the job was not run: {ending:?}"));
        self.settle(&engine, job, &ended.ending, ended.notes).await;
        ended.result
    }

    /// Runs what is due, one job after another, with what the handlers enqueue meanwhile, until
    /// nothing is.
    ///
    /// # Panics
    /// When a handler panics.
    pub async fn drain(&self) -> Drained {
        let mut drained = Drained::default();
        let mut engine = self.engine.lock().await;
        let mut queues: Vec<QueueName> = Vec::new();
        loop {
            self.jobs().store().promote(u32::MAX).await.expect("the memory store answers");
            let waiting = self.jobs().inspect().waiting().await.expect("the memory store answers");
            queues.extend(waiting.iter().filter_map(|it| QueueName::new(&it.queue).ok()));
            queues.sort_unstable();
            queues.dedup();
            let claimed = engine.claim(&queues, &self.handlers, 1).await;
            let Some(job) = claimed.first() else { return drained };
            let (ending, notes) = match self.call(&engine, job).await {
                Ok(ended) => (ended.ending, ended.notes),
                Err(ending) => (ending, Notes::default()),
            };
            match &ending {
                Ending::Done => drained.succeeded += 1,
                Ending::Snoozed(_) => drained.snoozed += 1,
                Ending::Refused { .. } => drained.refused += 1,
                Ending::Failed(failure) | Ending::Unreadable(failure) => {
                    drained.failed.push((job.fence.job, failure.text.clone()));
                }
                other => drained.failed.push((job.fence.job, format!("{other:?}"))),
            }
            self.settle(&engine, job, &ending, notes).await;
        }
    }

    /// Runs the handler of a claimed job inside its middleware, and writes the checkpoint that it put
    /// off, as a worker does once the handler has ended.
    async fn call(&self, engine: &Engine, job: &ClaimedJob) -> Result<Ended, Ending> {
        let prepared = engine.prepare(job, &self.handlers)?;
        let handled = self.handlers.handled(&job.kind).expect("what was prepared is handled");
        let signals = Arc::new(RunSignals::default());
        let parts = Parts {
            jobs: engine.jobs.clone(),
            info: Arc::new(RunInfo::of(job, handled.of.clone(), None)),
            signals: signals.clone(),
            board: Arc::new(Board::new(ANSWERS_WITHIN, Duration::ZERO)),
        };
        let result = self.handlers.wrapped(&self.state, prepared, parts).await;
        signals.end_spawned().await;
        if let Some(put_off) = signals.kept().take_checkpoint() {
            let saved = self.jobs.store().checkpoint(&[put_off.save]).await;
            saved.expect("the memory store answers");
        }
        let mut notes = signals.kept().take_notes();
        let ending = judge::returned(&result, signals.reason());
        if ending != Ending::Done {
            // Only what succeeded has a result.
            notes.result = None;
        }
        Ok(Ended { result, ending, notes })
    }

    async fn settle(&self, engine: &Engine, job: &ClaimedJob, ending: &Ending, notes: Notes) {
        let ladder = self.handlers.handled(&job.kind).map(|handled| handled.ladder.clone());
        engine.settle(job, ending, &ladder.unwrap_or_default(), notes).await;
    }
}

/// How a run ended.
struct Ended {
    result: Result<Outcome, JobError>,
    ending: Ending,
    notes: Notes,
}

impl<S> fmt::Debug for Inline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline").field("handlers", &self.handlers).finish_non_exhaustive()
    }
}
