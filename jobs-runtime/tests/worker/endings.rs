//! Every way in which a handler can end.

use std::fmt;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{JobRecord, State};

use crate::support::{Act, App, Running, act, ended, worker};

/// An error whose text can't be made.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words");
    }
}

impl std::error::Error for Unspeakable {}

/// A local whose destructor panics.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

async fn do_as_told(job: Act, cx: JobContext<App>) -> Result<Outcome, JobError> {
    cx.state.ran();
    match job.how.as_str() {
        "text" => panic!("plain text"),
        "formatted" => panic!("formatted {}", 7),
        "struct" => std::panic::panic_any(Bomb("while the panic is dropped")),
        "nul" => panic!("a\0b"),
        "long" => panic!("{}", "x".repeat(5 * 1024 * 1024)),
        "drop" => {
            let _bomb = Bomb("in drop");
            Ok(Outcome::Done)
        }
        "blocking" => {
            tokio::task::spawn_blocking(|| panic!("in a blocking task")).await?;
            Ok(Outcome::Done)
        }
        "display" => Err(Unspeakable)?,
        "error" => Err(JobError::new("a\0b").class("nul")),
        "permanent" => Err(std::fmt::Error).permanent(),
        _ => Ok(Outcome::Done),
    }
}

async fn run_all(hows: &[&str]) -> Vec<JobRecord> {
    let jobs = Jobs::open("memory:").await.unwrap();
    let handlers = Registry::new().handle(do_as_told).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()).concurrency(2));
    let mut records = Vec::new();
    for how in hows {
        let id = jobs.enqueue(act(how)).await.unwrap().id();
        records.push(ended(&jobs, id).await);
    }
    running.stop().await;
    records
}

#[tokio::test]
async fn every_panic_is_one_failure_with_its_text() {
    let hows = ["text", "formatted", "struct", "nul", "long", "drop", "display"];
    let texts = run_all(&hows).await;
    let wanted =
        ["plain text", "formatted 7", "non-string panic", "a\u{FFFD}b", "", "in drop", "no words"];
    for ((record, wanted), how) in texts.iter().zip(wanted).zip(hows) {
        assert_eq!((record.state, record.counters.failures), (State::Dead, 1), "{how}");
        assert_eq!(record.error_class.as_deref(), Some("panic"), "{how}");
        let text = record.error.as_deref().unwrap();
        assert!(text.contains(wanted) && text.len() <= 8 * 1024, "{how}: {text}");
    }
}

#[tokio::test]
async fn a_worker_whose_handlers_panicked_runs_the_next_hundred_jobs() {
    let mut hows = vec!["text", "struct", "drop", "blocking", "display"];
    hows.extend(["fine"; 100]);
    let records = run_all(&hows).await;
    let states: Vec<State> = records.iter().map(|record| record.state).collect();
    assert!(states[..5].iter().all(|state| *state == State::Dead), "{states:?}");
    assert!(states[5..].iter().all(|state| *state == State::Succeeded), "{states:?}");
}

#[tokio::test]
async fn an_error_is_a_failure_of_its_class_and_a_permanent_one_is_dead_at_once() {
    let records = run_all(&["error", "permanent"]).await;
    assert_eq!(records[0].error_class.as_deref(), Some("nul"));
    assert_eq!(records[0].error.as_deref(), Some("a\u{FFFD}b"));
    assert_eq!(records[1].state, State::Dead);
}

#[tokio::test]
async fn a_snooze_is_no_failure_and_needs_no_wait() {
    let jobs = Jobs::open("memory:").await.unwrap();
    let snooze_thrice = |_: Act, cx: JobContext<App>| async move {
        cx.state.ran();
        let is_last = cx.state.count() > 3;
        Ok(if is_last { Outcome::Done } else { Outcome::Snooze(Duration::ZERO) })
    };
    let handlers = Registry::new().handle(snooze_thrice).build().unwrap();
    let app = App::default();
    let running = Running::start(worker(&jobs, handlers, app.clone()));
    let id = jobs.enqueue(act("")).await.unwrap().id();
    let record = ended(&jobs, id).await;
    assert_eq!((record.state, app.count()), (State::Succeeded, 4));
    assert_eq!((record.counters.failures, record.counters.snoozes), (0, 3));
    assert_eq!(running.stop().await.settled, 4);
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_a_failure_and_frees_its_slot() {
    #[derive(Debug, serde::Serialize, serde::Deserialize, Job)]
    #[job(kind = "test.slow", version = "1.0.0", timeout = "50ms", max_failures = 1)]
    struct Slow {}

    let jobs = Jobs::open("memory:").await.unwrap();
    let never = |_: Slow, _: JobContext<App>| async {
        std::future::pending::<()>().await;
        Ok(())
    };
    let handlers = Registry::new().handle(never).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()).concurrency(1));
    for _ in 0..2 {
        let id = jobs.enqueue(Slow {}).await.unwrap().id();
        let record = ended(&jobs, id).await;
        assert_eq!(record.error_class.as_deref(), Some("timeout"));
    }
    running.stop().await;
}

#[tokio::test]
async fn a_middleware_wraps_every_run() {
    let jobs = Jobs::open("memory:").await.unwrap();
    let handlers = Registry::new()
        .handle(do_as_told)
        .around(|app: App, run, next| async move {
            assert_eq!(run.kind(), "test.act");
            app.ran();
            next.run().await.map_err(|error| error.class("wrapped"))
        })
        .build()
        .unwrap();
    let app = App::default();
    let running = Running::start(worker(&jobs, handlers, app.clone()));
    let id = jobs.enqueue(act("error")).await.unwrap().id();
    let record = ended(&jobs, id).await;
    assert_eq!((record.error_class.as_deref(), app.count()), (Some("wrapped"), 2));
    running.stop().await;
}
