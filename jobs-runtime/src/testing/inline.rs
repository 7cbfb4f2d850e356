//! Handlers that run where they are called.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::{
    BuildId, ClaimedJob, Ending, Failure, Interruption, Job, JobId, Ladder, ManualClock, QueueName,
    SeededRandom, Timestamp,
};
use tokio::sync::Mutex;

use super::engine::Engine;
use crate::client::Jobs;
use crate::context::Parts;
use crate::handler::{Cause, JobError, Outcome};
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
        Self { jobs, clock, handlers, state, engine: Mutex::new(engine) }
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
    /// returned. The job is its own: whatever else is enqueued stays as it is.
    ///
    /// # Errors
    /// What the handler returned.
    ///
    /// # Panics
    /// When the job can't be stored or this registry does not handle it; when the handler panics.
    pub async fn run<J: Job>(&self, job: J) -> Result<Outcome, JobError> {
        const OWN: &str = "testing";
        let jobs = self.jobs();
        jobs.enqueue(job).queue(OWN).await.expect("the job can be stored");
        let queue = QueueName::new(OWN).expect("a short name");
        let mut engine = self.engine.lock().await;
        let claimed = engine.claim(&[queue], &self.handlers, 1).await;
        let job = claimed.first().expect("the job is ready");
        let ended = self.call(&engine, job).await;
        let ended = ended.unwrap_or_else(|ending| panic!("the job was not run: {ending:?}"));
        let ending = if ended.is_ok() { Ending::Done } else { given_up() };
        engine.settle(job, &ending, &Ladder::default()).await;
        ended
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
            let ending = match self.call(&engine, job).await {
                Ok(result) => ending(result),
                Err(ending) => ending,
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
            let ladder = self.handlers.handled(&job.kind).map(|handled| handled.ladder.clone());
            engine.settle(job, &ending, &ladder.unwrap_or_default()).await;
        }
    }

    async fn call(
        &self,
        engine: &Engine,
        job: &ClaimedJob,
    ) -> Result<Result<Outcome, JobError>, Ending> {
        let prepared = engine.prepare(job, &self.handlers)?;
        let handled = self.handlers.handled(&job.kind).expect("what was prepared is handled");
        let headers = job.headers.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let info = RunInfo {
            fence: job.fence,
            of: handled.of.clone(),
            queue: job.queue.clone(),
            failures: job.counters.failures,
            interruptions: job.counters.interruptions,
            headers: headers.unwrap_or_default(),
            key_number: job.key_number,
            enqueued_at: job.enqueued_at,
            deadline: None,
        };
        let parts = Parts {
            jobs: engine.jobs.clone(),
            info: Arc::new(info),
            signals: Arc::new(RunSignals::default()),
            board: Arc::new(Board::new(ANSWERS_WITHIN, Duration::ZERO)),
        };
        Ok(prepared(self.state.clone(), parts).await)
    }
}

fn ending(result: Result<Outcome, JobError>) -> Ending {
    match result {
        Ok(Outcome::Done) => Ending::Done,
        Ok(Outcome::Snooze(wait)) => Ending::Snoozed(wait),
        Err(error) => match error.into_cause() {
            Cause::Failed { class, text, retry } => Ending::Failed(Failure { class, text, retry }),
            Cause::Infrastructure(text) => Ending::Interrupted(Interruption::Infrastructure(text)),
            Cause::Interrupted(_) => given_up(),
        },
    }
}

fn given_up() -> Ending {
    Ending::Interrupted(Interruption::GivenUp)
}

impl<S> fmt::Debug for Inline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline").field("handlers", &self.handlers).finish_non_exhaustive()
    }
}
