//! Jobs that no live worker reads: told, measured, and ended where a deadline says so. In virtual time,
//! over the memory store.

use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::manifest::Manifest;
use jobs_runtime::prelude::*;
use jobs_runtime::store::NewWorker;
use jobs_runtime::store::memory::MemoryStore;
use jobs_runtime::{
    BuildId, Handlers, JobId, Lease, ManualClock, State, Timestamp, WorkerId, WorkerName,
};
use serde::{Deserialize, Serialize};

use crate::lines::Lines;
use crate::support::{App, Running, act, close_behind};

const MINUTE: Duration = Duration::from_mins(1);
const STEP: Duration = Duration::from_millis(100);

/// Of a kind that the running build does not know.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "later.kind", version = "7.1.0")]
struct Later {}

async fn later(_: Later, _: JobContext<App>) -> Result<(), JobError> {
    Ok(())
}

async fn now(_: crate::support::Act, _: JobContext<App>) -> Result<(), JobError> {
    Ok(())
}

fn handlers() -> Handlers<App> {
    Registry::new().handle(now).build().expect("one handler")
}

/// A client on a fresh store, and the clock that both go by.
struct Stage {
    jobs: Jobs,
    clock: Arc<ManualClock>,
}

impl Stage {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        let store = MemoryStore::new(clock.clone(), 7);
        let jobs = Jobs::builder().clock(clock.clone()).over(store).expect("the label is fine");
        Self { jobs, clock }
    }

    /// A worker whose lease outlives the test: its heartbeat has a thread of its own, and real time.
    fn worker(&self) -> Worker<App> {
        Worker::new(&self.jobs, handlers(), App::default()).lease(Lease::LONGEST)
    }

    /// Lets time pass, for timers and for the clock alike.
    async fn pass(&self, span: Duration) {
        for _ in 0..span.as_millis() / STEP.as_millis() {
            tokio::time::sleep(STEP).await;
            self.clock.advance(STEP);
        }
    }

    async fn enqueue_later(&self, count: usize) -> Vec<JobId> {
        let later = (0..count).map(|_| Later {});
        let added = self.jobs.enqueue_all(later).await.expect("the jobs are stored");
        added.iter().map(|added| added.id()).collect()
    }

    /// A worker of a build that reads them.
    async fn register_reader(&self) -> WorkerId {
        let handlers = Registry::<App>::new().handle(later).build().expect("one handler");
        let new = NewWorker {
            name: WorkerName::new("newer").expect("a name"),
            build: BuildId::new("newer").expect("a build"),
            manifest: Manifest::of(&handlers).to_json(),
            lease: Lease::new(Lease::LONGEST).expect("the longest"),
        };
        self.jobs.store().register(&new).await.expect("the store answers")
    }

    async fn states(&self, ids: &[JobId]) -> Vec<State> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.jobs.job(*id).await.unwrap().expect("it is stored").state);
        }
        states
    }
}

const TOLD: &str = "no live worker can read";

#[tokio::test(start_paused = true)]
async fn jobs_that_no_live_worker_reads_are_warned_of_once_a_minute() {
    let warnings = Lines::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let stage = Stage::new();
    let running = Running::start(stage.worker());
    stage.jobs.enqueue(act("")).await.unwrap();
    stage.pass(MINUTE * 2).await;
    assert_eq!(warnings.of(TOLD), 0, "all is read: {:?}", warnings.all());
    let reader = stage.register_reader().await;
    stage.enqueue_later(3).await;
    stage.pass(MINUTE * 2).await;
    assert_eq!(warnings.of(TOLD), 0, "a live worker reads it: {:?}", warnings.all());
    close_behind(&stage.jobs, reader).await;
    stage.pass(MINUTE * 10).await;
    let told = warnings.of(TOLD);
    assert!((4..=10).contains(&told), "{told} lines in ten minutes: {:?}", warnings.all());
    assert_eq!(warnings.of("later.kind@7.1 (3 jobs)"), told, "{:?}", warnings.all());
    stage.register_reader().await;
    stage.pass(MINUTE * 2).await;
    let before = warnings.of(TOLD);
    stage.pass(MINUTE * 5).await;
    assert_eq!(warnings.of(TOLD), before, "a live worker reads them again");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stranded_jobs_end_at_the_deadline_and_wait_for_ever_without_one() {
    for deadline in [Some(MINUTE * 5), None] {
        let stage = Stage::new();
        let worker = match deadline {
            Some(deadline) => stage.worker().stranded_deadline(deadline),
            None => stage.worker(),
        };
        let running = Running::start(worker);
        let ids = stage.enqueue_later(5).await;
        // Too young, and watched for too short a time.
        stage.pass(MINUTE * 4).await;
        let states = stage.states(&ids).await;
        assert!(states.iter().all(|state| state.is_waiting()), "{states:?}");
        stage.pass(MINUTE * 9).await;
        let young = stage.enqueue_later(1).await;
        stage.pass(MINUTE * 2).await;
        let states = stage.states(&ids).await;
        match deadline {
            Some(_) => {
                assert_eq!(states, [State::Dead; 5]);
                let record = stage.jobs.job(ids[0]).await.unwrap().unwrap();
                assert_eq!(record.error_class.as_deref(), Some("stranded"));
                assert_eq!(record.counters.failures, 0);
            }
            None => assert!(states.iter().all(|state| state.is_waiting()), "{states:?}"),
        }
        let states = stage.states(&young).await;
        assert!(states[0].is_waiting(), "a deadline is each job's own");
        running.stop().await;
    }
}

/// A deploy has no capable worker for a moment.
#[tokio::test(start_paused = true)]
async fn a_worker_that_has_just_started_ends_no_old_job() {
    let stage = Stage::new();
    let ids = stage.enqueue_later(2).await;
    stage.pass(MINUTE * 15).await;
    let running = Running::start(stage.worker().stranded_deadline(MINUTE * 5));
    stage.pass(MINUTE * 4).await;
    let states = stage.states(&ids).await;
    assert!(states.iter().all(|state| state.is_waiting()), "{states:?}");
    running.stop().await;
}

#[cfg(feature = "http")]
#[tokio::test(start_paused = true)]
async fn stranded_jobs_are_measured_by_kind_and_version() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let rendered = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let line = |wanted: &str| rendered.render().lines().any(|found| found == wanted);
    let stage = Stage::new();
    let running = Running::start(stage.worker());
    stage.enqueue_later(3).await;
    stage.pass(MINUTE * 3).await;
    let jobs = "jobs_stranded{kind=\"later.kind\",version=\"7.1\"}";
    assert!(line(&format!("{jobs} 3")), "{}", rendered.render());
    let seconds = "jobs_stranded_seconds{kind=\"later.kind\",version=\"7.1\"} ";
    let text = rendered.render();
    let told = text.lines().find_map(|line| line.strip_prefix(seconds)).expect("it is measured");
    let told: f64 = told.parse().expect("a number");
    assert!((60.0..180.0).contains(&told), "{told}");
    stage.register_reader().await;
    stage.pass(MINUTE * 2).await;
    assert!(line(&format!("{jobs} 0")), "{}", rendered.render());
    running.stop().await;
}
