//! What handlers tell people and whoever waits: progress and results.

use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{ErrorKind, JobId, MAX_PROGRESS_BYTES, MAX_RESULT_BYTES, State};
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;
use tokio::sync::Notify;

use crate::support::{Act, Running, act, ended, open, open_sqlite, until, worker};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Totals {
    lines: u64,
    text: String,
}

fn totals() -> Totals {
    Totals { lines: u64::MAX, text: "\0 'é' \"🦀\"".to_owned() }
}

async fn tell(job: Act, cx: JobContext<Arc<Notify>>) -> Result<Outcome, JobError> {
    match &*job.how {
        "long" => {
            cx.progress(format_args!("{} of {}", 1, 3));
            cx.state.notified().await;
            cx.progress("2 of 3");
            cx.progress("3 of 3");
            cx.set_result(&totals())?;
        }
        "fails" => {
            cx.progress("half-way");
            cx.set_result(&totals())?;
            return Err(JobError::new("it broke"));
        }
        "snoozes" => {
            cx.progress("a nap");
            cx.set_result(&1)?;
            return Ok(Outcome::Snooze(Duration::from_hours(1)));
        }
        "odd" => cx.progress(format!("{}\0{}", "é".repeat(600), "z".repeat(600))),
        "largest" => cx.set_result(&"x".repeat(MAX_RESULT_BYTES - 2))?,
        "too large" => cx.set_result(&"x".repeat(MAX_RESULT_BYTES - 1))?,
        "not json" => cx.set_result(&f64::NAN)?,
        "finishes" => {
            cx.progress("all of it");
            cx.set_result(&totals())?;
            let mut tx = cx.begin::<Sqlite>().await?;
            cx.done_in(&mut tx).await?;
            tx.commit().await?;
        }
        "undoes" => {
            cx.set_result(&totals())?;
            let mut tx = cx.begin::<Sqlite>().await?;
            cx.done_in(&mut tx).await?;
            tx.rollback().await?;
        }
        _ => {}
    }
    Ok(Outcome::Done)
}

fn start(jobs: &Jobs, go_on: &Arc<Notify>) -> Running {
    let handlers = Registry::new().handle(tell).build().unwrap();
    Running::start(worker(jobs, handlers, go_on.clone()))
}

#[tokio::test]
async fn progress_is_seen_while_a_run_goes_on_and_a_result_when_it_has_succeeded() {
    for jobs in open().await {
        let go_on = Arc::new(Notify::new());
        let running = start(&jobs, &go_on);
        let id = jobs.enqueue(act("long")).await.unwrap().id();
        let record = until(&jobs, id, |record| record.progress.is_some()).await;
        assert_eq!(record.progress.as_deref(), Some("1 of 3"));
        assert_eq!((record.state, record.result), (State::Running, None));
        go_on.notify_one();
        let record = ended(&jobs, id).await;
        assert_eq!(record.progress.as_deref(), Some("3 of 3"));
        assert_eq!(record.result_as::<Totals>().unwrap(), Some(totals()));
        assert!(record.result_as::<u64>().is_err());
        let plain = jobs.enqueue(act("plain")).await.unwrap().id();
        let plain = ended(&jobs, plain).await;
        assert_eq!((plain.progress.as_deref(), plain.result_as::<Totals>().unwrap()), (None, None));
        running.stop().await;
    }
}

#[tokio::test]
async fn a_run_that_did_not_succeed_leaves_its_progress_and_no_result() {
    for jobs in open().await {
        let running = start(&jobs, &Arc::default());
        let id = jobs.enqueue(act("fails")).await.unwrap().id();
        let record = ended(&jobs, id).await;
        assert_eq!((record.progress.as_deref(), record.result), (Some("half-way"), None));
        let id = jobs.enqueue(act("snoozes")).await.unwrap().id();
        let record = until(&jobs, id, |record| record.counters.snoozes == 1).await;
        assert_eq!((record.progress.as_deref(), record.result), (Some("a nap"), None));
        running.stop().await;
    }
}

#[tokio::test]
async fn notes_are_bounded_and_storable() {
    for jobs in open().await {
        let running = start(&jobs, &Arc::default());
        let run = async |how: &str| ended(&jobs, jobs.enqueue(act(how)).await.unwrap().id()).await;
        let odd = run("odd").await.progress.unwrap();
        assert!(odd.len() <= MAX_PROGRESS_BYTES && !odd.contains('\0'), "{odd}");
        assert!(odd.starts_with('é') && odd.ends_with('z'), "{odd}");
        assert_eq!(run("largest").await.result.unwrap().len(), MAX_RESULT_BYTES);
        let record = run("too large").await;
        assert_eq!(record.error_class.as_deref(), Some("result_too_large"));
        assert_eq!((record.state, record.result), (State::Dead, None));
        assert_eq!(run("not json").await.state, State::Dead);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_finish_with_rows_leaves_its_notes_with_the_commit() {
    let jobs = open_sqlite().await;
    let running = start(&jobs, &Arc::default());
    let id = jobs.enqueue(act("finishes")).await.unwrap().id();
    let record = ended(&jobs, id).await;
    assert_eq!(record.progress.as_deref(), Some("all of it"));
    assert_eq!(record.result_as::<Totals>().unwrap(), Some(totals()));
    let id = jobs.enqueue(act("undoes")).await.unwrap().id();
    let record = ended(&jobs, id).await;
    assert_eq!((record.state, record.result), (State::Dead, None));
    running.stop().await;
}

#[tokio::test]
async fn a_wait_ends_with_its_job_with_its_time_or_with_nothing_to_wait_for() {
    for jobs in open().await {
        let (go_on, soon) = (Arc::new(Notify::new()), Duration::from_secs(20));
        let running = start(&jobs, &go_on);
        let id = jobs.enqueue(act("long")).await.unwrap().id();
        let error = jobs.wait(id).timeout(Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().contains("not ended within 50ms"), "{error}");
        // Dropped half-way, many at once, and after the end.
        drop(tokio::time::timeout(Duration::from_millis(5), jobs.wait(id)).await);
        let waiting = (0..50).map(|_| jobs.wait(id).timeout(soon).into_future());
        let waiting = futures_util::future::join_all(waiting);
        let (records, ()) = tokio::join!(waiting, async { go_on.notify_one() });
        for record in records {
            assert_eq!(record.unwrap().result_as::<Totals>().unwrap(), Some(totals()));
        }
        assert_eq!(jobs.wait(id).timeout(soon).await.unwrap().state, State::Succeeded);
        let missing = jobs.wait(JobId(4_711)).timeout(soon).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        running.stop().await;
    }
}
