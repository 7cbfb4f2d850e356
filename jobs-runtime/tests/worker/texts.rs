//! Texts that handlers leave behind: errors, panics and classes, however odd or long.

use std::time::Duration;

use jobs_runtime::State;
use jobs_runtime::prelude::*;

use crate::lines::Lines;
use crate::support::{Act, App, Running, act, ended, open, open_sqlite, until, worker};

const HUGE: usize = 5 * 1024 * 1024;

/// Fails as its text says; with `retry` in it, so that it is tried again.
async fn fail(job: Act, cx: JobContext<App>) -> Result<(), JobError> {
    if cx.failures() > 0 {
        return Ok(());
    }
    let again = |error: JobError| Err(error.retry_in(Duration::ZERO));
    match job.how.as_str() {
        "error" => again(JobError::new("a\0b")),
        "huge error" => again(JobError::new("\0🦀".repeat(HUGE / 5))),
        "class" => again(JobError::new("text").class("\0🦀".repeat(HUGE / 5))),
        "empty" => again(JobError::new("").class("")),
        "infrastructure" => Err(JobError::new("\0".repeat(HUGE)).infrastructure()),
        "panic" => panic!("{}", "\0🦀".repeat(HUGE / 5)),
        "empty panic" => panic!(""),
        how => unreachable!("{how}"),
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "test.tried_twice", version = "1.0.0", max_failures = 2)]
struct Twice {
    how: String,
}

async fn fail_twice(job: Twice, cx: JobContext<App>) -> Result<(), JobError> {
    fail(Act { how: job.how }, cx).await
}

#[tokio::test]
async fn no_error_text_leaves_its_job_running() {
    for jobs in open().await {
        let handlers = Registry::new().handle(fail_twice).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        for how in ["error", "huge error", "class", "empty"] {
            let id = jobs.enqueue(Twice { how: how.to_owned() }).await.unwrap().id();
            let record = ended(&jobs, id).await;
            assert_eq!((record.state, record.counters.failures), (State::Succeeded, 1), "{how}");
            let events = jobs.inspect().events(id).await.unwrap();
            assert_eq!(events.len(), 1, "{how}");
            assert!(!events[0].text.contains('\0') && !events[0].class.contains('\0'), "{how}");
            assert!(events[0].text.len() <= 8 * 1024 && events[0].class.len() <= 1024, "{how}");
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn no_panic_text_leaves_its_job_running() {
    for jobs in open().await {
        let handlers = Registry::new().handle(fail).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        for how in ["panic", "empty panic"] {
            let id = jobs.enqueue(act(how)).await.unwrap().id();
            let record = ended(&jobs, id).await;
            assert_eq!((record.state, record.counters.failures), (State::Dead, 1), "{how}");
            let text = record.error.unwrap();
            assert!(!text.contains('\0') && text.len() <= 8 * 1024, "{how}");
        }
        let id = jobs.enqueue(act("infrastructure")).await.unwrap().id();
        let record = until(&jobs, id, |record| record.counters.interruptions == 1).await;
        assert_eq!((record.state, record.counters.failures), (State::Scheduled, 0));
        running.stop().await;
    }
}

/// A payload whose own destructor panics.
#[derive(Debug, serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "test.bomb", version = "1.0.0", max_failures = 1, timeout = "50ms")]
struct Bomb {
    how: String,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        // The producer's own value is dropped in peace.
        assert!(self.how == "produced", "the payload's drop: {}", self.how);
    }
}

async fn explode(mut bomb: Bomb, _: JobContext<App>) -> Result<(), JobError> {
    "consumed".clone_into(&mut bomb.how);
    drop(bomb);
    Ok(())
}

async fn explode_late(bomb: Bomb, cx: JobContext<App>) -> Result<(), JobError> {
    drop(explode(bomb, cx));
    std::future::pending().await
}

#[tokio::test]
async fn a_payload_whose_drop_panics_is_one_failure_and_frees_its_slot() {
    for jobs in open().await {
        for handlers in [
            Registry::new().handle(explode),
            Registry::new().handle(explode_late),
            Registry::new().handle(explode).around(|_, _, next| async move {
                drop(next);
                Ok(Outcome::Done)
            }),
        ] {
            let handlers = handlers.handle(then_run).build().unwrap();
            let app = App::default();
            let running = Running::start(worker(&jobs, handlers, app.clone()).concurrency(1));
            let mut stored = jobs_runtime::NewJob::of(&bomb("produced"), 1_000).unwrap();
            stored.payload = r#"{"how":"stored"}"#.to_owned();
            let id = jobs.store().enqueue(&[stored]).await.unwrap()[0].id();
            let record = ended(&jobs, id).await;
            assert_eq!((record.state, record.counters.failures), (State::Dead, 1));
            assert_eq!(record.error_class.as_deref(), Some("panic"));
            assert!(record.error.unwrap().contains("the payload's drop"));
            let others = jobs.enqueue_all((0..20).map(|_| act(""))).await.unwrap();
            for other in others {
                assert_eq!(ended(&jobs, other.id()).await.state, State::Succeeded);
            }
            running.stop().await;
        }
    }
}

fn bomb(how: &str) -> Bomb {
    Bomb { how: how.to_owned() }
}

async fn then_run(_: Act, _: JobContext<App>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test]
async fn a_panic_in_blocking_code_is_one_failure_with_its_text() {
    async fn block(_: Act, _: JobContext<App>) -> Result<(), JobError> {
        tokio::task::spawn_blocking(|| panic!("deep in blocking code")).await?;
        Ok(())
    }

    for jobs in open().await {
        let handlers = Registry::new().handle(block).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()).concurrency(1));
        for _ in 0..3 {
            let id = jobs.enqueue(act("")).await.unwrap().id();
            let record = ended(&jobs, id).await;
            assert_eq!((record.state, record.counters.failures), (State::Dead, 1));
            assert!(record.error.unwrap().contains("deep in blocking code"));
        }
        running.stop().await;
    }
}

async fn fail_soon(_: Twice, _: JobContext<App>) -> Result<(), JobError> {
    Err(JobError::new("no").retry_in(Duration::from_millis(200)))
}

#[tokio::test]
async fn the_log_says_what_a_worker_works_on_and_tells_a_retry_from_a_dead_letter() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let jobs = open_sqlite().await;
    let handlers = Registry::new().handle(fail_soon).handle(fail).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()).queue("mail"));
    let twice = jobs.enqueue(Twice { how: String::new() }).queue("mail");
    assert_eq!(ended(&jobs, twice.await.unwrap().id()).await.state, State::Dead);
    running.stop().await;
    let file = jobs.database().canonicalize().unwrap();
    let all = lines.all();
    for (level, text) in [
        ("INFO", format!("working {}: queues mail", file.display())),
        ("INFO", "kinds=2 schedules=0".to_owned()),
        ("WARN", "failed 1 of 2; again in 200ms".to_owned()),
        ("ERROR", "dead letter after failure 2 of 2".to_owned()),
    ] {
        let is_it = |line: &&String| line.starts_with(level) && line.contains(&text);
        assert_eq!(all.iter().filter(is_it).count(), 1, "{level} {text}: {all:#?}");
    }
}

#[tokio::test]
async fn an_error_is_a_sentence_however_it_is_printed() {
    let error = Jobs::open("sqlite:///no/such/folder/app.db").await.unwrap_err();
    let told = "the folder of /no/such/folder/app.db does not exist; make it first";
    assert_eq!(error.to_string(), told);
    // What a `main` prints that returns it.
    assert_eq!(format!("{error:?}"), format!("{told}: No such file or directory (os error 2)"));
    let jobs = open_sqlite().await;
    let error = jobs.enqueue(act("")).priority(101).await.unwrap_err();
    assert_eq!(format!("{error:?}"), "priority 101 is not one of -100 to 100");
}
