//! The waits between failures, from the derive to the row.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Enqueued, Ladder, State};
use serde::{Deserialize, Serialize};

use crate::support::{App, Running, open, until, worker};

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.fixed", version = "1.0.0", retry = "50m")]
struct Fixed;

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.steps", version = "1.0.0", retry = "10m, 40m")]
struct Steps {
    asks_for_minutes: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.capped", version = "1.0.0", retry = "30m..45m")]
struct Capped;

async fn fixed(_: Fixed, _: JobContext<App>) -> Result<(), JobError> {
    Err(JobError::new("no").class("away"))
}

async fn steps(job: Steps, _: JobContext<App>) -> Result<(), JobError> {
    let error = JobError::new("no");
    Err(match job.asks_for_minutes {
        Some(minutes) => error.retry_in(Duration::from_mins(minutes)),
        None => error,
    })
}

impl Handler<App> for Capped {
    async fn run(self, _: JobContext<App>) -> Result<Outcome, JobError> {
        Err(JobError::new("no"))
    }

    fn ladder() -> Ladder {
        Ladder::exponential(Duration::from_mins(20), Duration::from_mins(25))
    }
}

/// How many minutes a job waits after each of its failures, which are brought on one after another.
async fn waits(jobs: &Jobs, job: Enqueued, failures: u32) -> Vec<u64> {
    let id = job.id();
    let mut waits = Vec::new();
    for failure in 1..=failures {
        let record = until(jobs, id, |record| {
            record.state == State::Scheduled && record.counters.failures == failure
        })
        .await;
        let claimed_at = record.claimed_at.expect("it ran");
        waits.push(record.due_at.since(claimed_at).as_secs() / 60);
        assert_eq!(jobs.operate().run_now(&[id]).await.unwrap(), [true]);
    }
    waits
}

/// A wait may be a tenth longer or shorter than the ladder says.
fn assert_near(waits: &[u64], minutes: &[u64]) {
    assert_eq!(waits.len(), minutes.len());
    for (wait, exact) in waits.iter().zip(minutes) {
        assert!((exact * 9 / 10 - 1..=exact * 11 / 10).contains(wait), "{waits:?} for {minutes:?}");
    }
}

#[tokio::test]
async fn functions_and_handlers_wait_as_their_ladder_says() {
    for jobs in open().await {
        let registry = Registry::new().handle(fixed).handle(steps).job::<Capped>();
        let running = Running::start(worker(&jobs, registry.build().unwrap(), App::default()));
        let job = jobs.enqueue(Fixed).await.unwrap();
        assert_near(&waits(&jobs, job, 2).await, &[50, 50]);
        let job = jobs.enqueue(Steps { asks_for_minutes: None }).await.unwrap();
        assert_near(&waits(&jobs, job, 3).await, &[10, 40, 40]);
        // What a failure asks for goes before the ladder, and a handler's own before the job's.
        let job = jobs.enqueue(Steps { asks_for_minutes: Some(300) }).await.unwrap();
        assert_near(&waits(&jobs, job, 1).await, &[300]);
        let job = jobs.enqueue(Capped).await.unwrap();
        assert_near(&waits(&jobs, job, 3).await, &[20, 25, 25]);
        running.stop().await;
    }
}
