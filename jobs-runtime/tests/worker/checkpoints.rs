//! Checkpoints that are put off, too large, or too far apart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use jobs_runtime::prelude::*;
use jobs_runtime::store::Redrive;
use jobs_runtime::{JobId, JobRecord, JobsBuilder, ManualClock, State, Timestamp};
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;

use crate::lines::Lines;
use crate::planted::Planted;
use crate::support::{
    App, Fresh, Running, SCHEMES, ended, fresh, open, open_sqlite, until, worker,
};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At(u32);

/// Saves a hundred checkpoints and then does what its text says.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.seldom", version = "1.0.0", checkpoint = At, checkpoint_every = "1h")]
#[job(max_failures = 2, timeout = "400ms")]
struct Seldom {
    end: String,
}

fn seldom(end: &str) -> Seldom {
    Seldom { end: end.to_owned() }
}

async fn save_seldom(job: Seldom, mut cx: JobContext<App, At>) -> Result<Outcome, JobError> {
    cx.state.ran();
    if cx.resume_or(At(0)) != At(0) {
        return Ok(Outcome::Done);
    }
    for at in 1..=100 {
        cx.checkpoint(&At(at)).await?;
    }
    match &*job.end {
        "error" => Err(JobError::new("again").retry_in(Duration::ZERO)),
        "permanent" => Err(JobError::new("never again").permanent()),
        "infrastructure" => Err(JobError::new("away").infrastructure()),
        "panic" => panic!("as told"),
        "snooze" => Ok(Outcome::Snooze(Duration::from_hours(1))),
        "time-out" | "stop" => std::future::pending().await,
        _ => Ok(Outcome::Done),
    }
}

fn saved(record: &JobRecord) -> (String, i64) {
    let saved = record.checkpoint.as_ref().expect("a checkpoint is saved");
    (saved.text.clone(), saved.number)
}

#[tokio::test]
async fn of_checkpoints_that_come_too_soon_the_latest_is_written_when_the_run_ends_however_it_does()
{
    for jobs in open().await {
        let handlers = Registry::new().handle(save_seldom).build().unwrap();
        let app = App::default();
        let running = Running::start(worker(&jobs, handlers, app.clone()));
        for end in ["done", "error", "permanent", "infrastructure", "panic", "snooze", "time-out"] {
            let id = jobs.enqueue(seldom(end)).await.unwrap().id();
            let has_ended = |record: &JobRecord| {
                let counters = record.counters;
                record.state.is_finished()
                    || counters.interruptions + counters.snoozes > 0
                    || counters.failures > 0
            };
            let record = until(&jobs, id, has_ended).await;
            // The first of the run at once, and the last.
            assert_eq!(saved(&record), ("100".to_owned(), 2), "{end}");
            if end == "permanent" {
                jobs.operate().redrive(&[id], Redrive::default()).await.unwrap();
            }
            if end == "error" || end == "permanent" {
                assert_eq!(ended(&jobs, id).await.state, State::Succeeded, "{end}");
            }
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn a_checkpoint_that_was_put_off_outlives_the_abort_of_its_handler() {
    let all = open().await;
    let each = all.iter().map(|jobs| async move {
        let handlers = Registry::new().handle(save_patiently).build().unwrap();
        let app = App::default();
        let worker = worker(jobs, handlers, app.clone()).grace_period(SECOND);
        let running = Running::start(worker);
        let id = jobs.enqueue(Patient {}).await.unwrap().id();
        until(jobs, id, |_| app.count() == 1).await;
        running.stop().await;
        let record = jobs.job(id).await.unwrap().unwrap();
        assert_eq!((saved(&record), record.state), (("100".to_owned(), 2), State::Ready));
        assert_eq!((record.counters.failures, record.counters.interruptions), (0, 1));
    });
    futures_util::future::join_all(each).await;
}

/// Saves a hundred checkpoints and then hears nothing.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.patient", version = "1.0.0", checkpoint = At, checkpoint_every = "1h")]
struct Patient {}

async fn save_patiently(_: Patient, cx: JobContext<App, At>) -> Result<(), JobError> {
    for at in 1..=100 {
        cx.checkpoint(&At(at)).await?;
    }
    cx.state.ran();
    std::future::pending().await
}

#[derive(Clone)]
struct Timed {
    clock: Arc<ManualClock>,
    cancel: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<i64>>>,
}

/// Saves checkpoints as the clock moves, and notes how many the store then has.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.timed", version = "1.0.0", checkpoint = At, checkpoint_every = "50ms")]
struct InTime {}

async fn save_in_time(_: InTime, cx: JobContext<Timed, At>) -> Result<(), JobError> {
    for (at, steps) in (1..).zip([1, 1, 3, 1, 4, 1, 0]) {
        cx.state.clock.advance(Duration::from_millis(10) * steps);
        cx.checkpoint(&At(at)).await?;
        let number = saved(&cx.jobs().job(cx.id()).await?.unwrap()).1;
        cx.state.seen.lock().unwrap().push(number);
    }
    // What this process knows is told without the store, and then nothing is put off any more.
    cx.jobs().operate().cancel(&[cx.id()]).await?;
    cx.checkpoint(&At(8)).await?;
    cx.state.cancel.store(true, Ordering::SeqCst);
    cx.stopping().await;
    let cancelled = cx.checkpoint(&At(9)).await.unwrap_err();
    assert_eq!(cancelled.to_string(), Interrupted::Cancelled.to_string());
    assert_eq!(saved(&cx.jobs().job(cx.id()).await?.unwrap()).0, "9");
    Err(cancelled)
}

#[tokio::test]
async fn a_checkpoint_is_written_when_its_time_has_come_and_when_the_handler_is_to_return() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1)));
    let builder: JobsBuilder = Jobs::builder().clock(clock.clone());
    let jobs = fresh("memory:", builder).await;
    let timed = Timed { clock, cancel: Arc::default(), seen: Arc::default() };
    let handlers = Registry::new().handle(save_in_time).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, timed.clone()));
    let id = jobs.enqueue(InTime {}).await.unwrap().id();
    assert_eq!(ended(&jobs, id).await.state, State::Cancelled);
    assert!(timed.cancel.load(Ordering::SeqCst), "a checkpoint that is put off asks no store");
    assert_eq!(*timed.seen.lock().unwrap(), [1, 1, 1, 2, 2, 3, 3]);
    running.stop().await;
}

/// Puts a checkpoint off, and then saves one with its rows.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.mixed", version = "1.0.0", checkpoint = At, checkpoint_every = "1h")]
struct Mixed {}

async fn save_both_ways(_: Mixed, cx: JobContext<App, At>) -> Result<(), JobError> {
    cx.checkpoint(&At(1)).await?;
    cx.checkpoint(&At(2)).await?;
    let mut tx = cx.begin::<Sqlite>().await?;
    cx.checkpoint_in(&mut tx, &At(3)).await?;
    tx.commit().await?;
    Err(JobError::new("never again").permanent())
}

#[tokio::test]
async fn a_checkpoint_that_was_put_off_never_follows_one_that_was_saved_with_rows() {
    let jobs = open_sqlite().await;
    let handlers = Registry::new().handle(save_both_ways).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    let id = jobs.enqueue(Mixed {}).await.unwrap().id();
    assert_eq!(saved(&ended(&jobs, id).await), ("3".to_owned(), 2));
    running.stop().await;
}

/// Puts a checkpoint off, and then begins something that comes to nothing.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.undone", version = "1.0.0", checkpoint = At, checkpoint_every = "1h")]
struct Undone {
    how: String,
}

async fn save_and_undo(job: Undone, cx: JobContext<App, At>) -> Result<(), JobError> {
    cx.checkpoint(&At(1)).await?;
    cx.checkpoint(&At(2)).await?;
    let mut tx = cx.begin::<Sqlite>().await?;
    match &*job.how {
        "checkpoint_in" => cx.checkpoint_in(&mut tx, &At(3)).await?,
        "twice" => {
            cx.checkpoint_in(&mut tx, &At(3)).await?;
            tx.rollback().await?;
            tx = cx.begin::<Sqlite>().await?;
            cx.checkpoint_in(&mut tx, &At(4)).await?;
        }
        "put off again" => {
            cx.checkpoint_in(&mut tx, &At(3)).await?;
            tx.rollback().await?;
            cx.checkpoint(&At(2)).await?;
            tx = cx.begin::<Sqlite>().await?;
        }
        _ => cx.done_in(&mut tx).await?,
    }
    tx.rollback().await?;
    Err(JobError::new("never again").permanent())
}

#[tokio::test]
async fn a_checkpoint_that_was_put_off_outlives_a_transaction_that_was_rolled_back() {
    let jobs = open_sqlite().await;
    let handlers = Registry::new().handle(save_and_undo).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    for how in ["checkpoint_in", "twice", "put off again", "done_in"] {
        let id = jobs.enqueue(Undone { how: how.to_owned() }).await.unwrap().id();
        assert_eq!(saved(&ended(&jobs, id).await), ("2".to_owned(), 2), "{how}");
    }
    running.stop().await;
}

/// Drops a call that saves a checkpoint before the store has it.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.impatient", version = "1.0.0", checkpoint = At, checkpoint_every = "1h")]
struct Impatient {}

async fn save_impatiently(_: Impatient, cx: JobContext<Planted, At>) -> Result<(), JobError> {
    cx.checkpoint(&At(1)).await?;
    cx.checkpoint(&At(2)).await?;
    // A handler that is asked to return puts nothing off any more.
    cx.jobs().operate().cancel(&[cx.id()]).await?;
    cx.stopping().await;
    cx.state.plan().stuck.insert("checkpoint");
    let dropped = cx.checkpoint(&At(3)).now_or_never();
    assert!(dropped.is_none(), "the store does not answer");
    cx.state.plan().stuck.clear();
    Err(JobError::new("never again").permanent())
}

#[tokio::test]
async fn a_checkpoint_whose_call_was_dropped_is_saved_when_the_run_ends() {
    let store = Planted::new();
    let jobs = store.jobs();
    let handlers = Registry::new().handle(save_impatiently).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, store.clone()));
    let id = jobs.enqueue(Impatient {}).await.unwrap().id();
    assert_eq!(saved(&ended(&jobs, id).await).0, "3");
    running.stop().await;
}

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct Bulk(String);

/// Saves checkpoints of so many bytes, and waits in between.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.bulk", version = "1.0.0", checkpoint = Bulk, on_checkpoint = "keep_failures")]
struct SaveBulk {
    bytes: Vec<usize>,
    wait_ms: u64,
}

async fn save_bulk(job: SaveBulk, cx: JobContext<App, Bulk>) -> Result<(), JobError> {
    for bytes in job.bytes {
        cx.checkpoint(&Bulk("x".repeat(bytes - 2))).await?;
        tokio::time::sleep(Duration::from_millis(job.wait_ms)).await;
    }
    if cx.failures() == 0 {
        return Err(JobError::new("again").retry_in(Duration::ZERO));
    }
    Ok(())
}

async fn run_bulk(jobs: &Fresh, bytes: &[usize], wait_ms: u64) -> JobRecord {
    let bytes = bytes.to_vec();
    let id: JobId = jobs.enqueue(SaveBulk { bytes, wait_ms }).await.unwrap().id();
    ended(jobs, id).await
}

#[tokio::test]
async fn a_checkpoint_at_the_limit_is_saved_and_one_byte_more_is_a_permanent_error() {
    for scheme in SCHEMES {
        let jobs = fresh(scheme, Jobs::builder()).await;
        let handlers = Registry::new().handle(save_bulk).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        let record = run_bulk(&jobs, &[64 * 1024], 0).await;
        assert_eq!((record.state, saved(&record).0.len()), (State::Succeeded, 64 * 1024));
        let record = run_bulk(&jobs, &[10, 64 * 1024 + 1], 0).await;
        assert_eq!((record.state, saved(&record).0.len()), (State::Dead, 10));
        assert_eq!(record.error_class.as_deref(), Some("checkpoint_too_large"));
        let text = record.error.unwrap();
        assert!(text.contains("65537 bytes, more than the limit of 65536"), "{text}");
        running.stop().await;
    }
}

#[tokio::test]
async fn large_checkpoints_and_far_ones_are_warned_of_once_with_their_kind() {
    let warnings = Lines::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let jobs = open_sqlite().await;
    let handlers = Registry::new().handle(save_bulk).build().unwrap();
    // A handler that is asked to return has 117 ms of these.
    let worker = worker(&jobs, handlers, App::default()).grace_period(SECOND);
    let running = Running::start(worker);
    run_bulk(&jobs, &[8 * 1024, 10, 10], 0).await;
    assert_eq!((warnings.of("is large"), warnings.of("further apart")), (0, 0));
    run_bulk(&jobs, &[8 * 1024 + 1, 9 * 1024], 0).await;
    assert_eq!((warnings.of("is large"), warnings.of("further apart")), (1, 0));
    run_bulk(&jobs, &[10, 20, 30], 150).await;
    assert_eq!((warnings.of("is large"), warnings.of("further apart")), (1, 1));
    let is_told = |line: &&String| line.contains("is large") || line.contains("further apart");
    for line in warnings.all().iter().filter(is_told) {
        assert!(line.contains("kind=\"test.bulk\""), "{line}");
    }
    running.stop().await;
}

#[tokio::test]
async fn failures_stay_counted_where_the_job_says_so() {
    for jobs in open().await {
        let handlers = Registry::new().handle(save_bulk).handle(save_twice).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        // It ends because its second run sees the failure of the first, though that saved.
        assert_eq!(run_bulk(&jobs, &[10, 20], 0).await.state, State::Succeeded);
        let id = jobs.enqueue(Twice {}).await.unwrap().id();
        until(&jobs, id, |record| record.claim.0 > 3).await;
        running.stop().await;
    }
}

/// Saves and fails, again and again.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.twice", version = "1.0.0", checkpoint = At, max_failures = 2)]
struct Twice {}

async fn save_twice(_: Twice, mut cx: JobContext<App, At>) -> Result<(), JobError> {
    let At(at) = cx.resume_or(At(0));
    cx.checkpoint(&At(at + 1)).await?;
    Err(JobError::new("again").retry_in(Duration::ZERO))
}
