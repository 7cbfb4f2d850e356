//! Due times, wake-ups, priorities and unique keys, as a user sees them.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::Retention;
use jobs_runtime::{Clock, Enqueued, State, SystemClock};

use crate::support::{Act, App, Running, act, ended, open, open_sqlite, seen, sized, worker};

/// Notes in which order jobs ran and when.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<(String, Duration)>>>);

async fn note(job: Act, cx: JobContext<Notes>) -> Result<(), JobError> {
    cx.state.0.lock().unwrap().push((job.how, SystemClock.elapsed()));
    Ok(())
}

#[tokio::test]
async fn a_due_job_starts_soon_after_its_due_time_on_an_idle_worker() {
    for jobs in open().await {
        let notes = Notes::default();
        let handlers = Registry::new().handle(note).build().unwrap();
        // The poll is too slow to help: the timer sleeps to the due time.
        let idle = worker(&jobs, handlers, notes.clone()).poll_interval(Duration::from_secs(30));
        let running = Running::start(idle);
        let mut lateness = Vec::new();
        for delay in [50, 120, 200, 10, 90] {
            let delay = Duration::from_millis(delay);
            let due = SystemClock.elapsed() + delay;
            let id = jobs.enqueue(act("")).delay(delay).await.unwrap().id();
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
            let (_, ran_at) = notes.0.lock().unwrap().pop().unwrap();
            let late = ran_at.checked_sub(due).expect("it started before it was due");
            lateness.push(late);
        }
        assert!(lateness.iter().all(|late| *late < Duration::from_millis(250)), "{lateness:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn finished_jobs_are_kept_for_as_long_as_the_worker_is_told() {
    for jobs in open().await {
        let handlers = || Registry::new().handle(note).build().unwrap();
        let cancelled = jobs.enqueue(act("")).delay(Duration::from_hours(1)).await.unwrap().id();
        jobs.operate().cancel(&[cancelled]).await.unwrap();
        let succeeded = jobs.enqueue(act("")).await.unwrap().id();
        let by_default = Running::start(worker(&jobs, handlers(), Notes::default()));
        ended(&jobs, succeeded).await;
        by_default.stop().await;
        assert!(jobs.job(succeeded).await.unwrap().is_some(), "a day has not passed");

        let retention = Retention { succeeded: Duration::ZERO, ..Retention::FOREVER };
        let told = worker(&jobs, handlers(), Notes::default()).retention(retention);
        let running = Running::start(told);
        let gone = async || jobs.job(succeeded).await.unwrap().is_none().then_some(());
        seen(gone).await;
        assert!(jobs.job(cancelled).await.unwrap().is_some(), "it is the older one, and kept");
        running.stop().await;
    }
}

#[tokio::test]
async fn jobs_run_in_order_of_priority_and_then_of_enqueue() {
    for jobs in open().await {
        jobs.enqueue(act("low")).priority(-1).await.unwrap();
        jobs.enqueue_all(["a", "b", "c"].map(act)).await.unwrap();
        let last = jobs.enqueue(act("high")).priority(1).await.unwrap();
        assert!(matches!(last, Enqueued::Added(_)));
        let notes = Notes::default();
        let handlers = Registry::new().handle(note).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, notes.clone()).concurrency(1));
        let order =
            || notes.0.lock().unwrap().iter().map(|(how, _)| how.clone()).collect::<Vec<_>>();
        while order().len() < 5 {
            tokio::task::yield_now().await;
        }
        assert_eq!(order(), ["high", "a", "b", "c", "low"]);
        running.stop().await;
    }
}

#[tokio::test]
async fn an_enqueue_that_reports_already_there_leaves_a_run_that_starts_after_it() {
    for jobs in open().await {
        let counter = Arc::new(AtomicUsize::new(0));
        let copied = Arc::new(AtomicUsize::new(0));
        let copy = {
            let copied = copied.clone();
            move |_: Act, cx: JobContext<Arc<AtomicUsize>>| {
                copied.store(cx.state.load(Ordering::SeqCst), Ordering::SeqCst);
                async { Ok(()) }
            }
        };
        let handlers = Registry::new().handle(copy).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, counter.clone()));
        let mut last = None;
        for round in 0..sized(500, 2_000) {
            counter.fetch_add(1, Ordering::SeqCst);
            let answer = jobs.enqueue(act("")).unique_key("k").await.unwrap();
            last = Some(answer.id());
            if round % 7 == 0 {
                ended(&jobs, answer.id()).await;
            }
        }
        ended(&jobs, last.unwrap()).await;
        assert_eq!(copied.load(Ordering::SeqCst), counter.load(Ordering::SeqCst));
        running.stop().await;
    }
}

#[tokio::test]
async fn already_there_holds_also_while_the_enqueuing_transaction_stays_open() {
    /// Copies the application's own counter from the same file.
    async fn copy(_: Act, cx: JobContext<Arc<AtomicI64>>) -> Result<(), JobError> {
        let mut tx = cx.jobs().begin::<sqlx::Sqlite>().await?;
        let read = sqlx::query_scalar("SELECT value FROM counter").fetch_one(&mut *tx).await?;
        cx.state.store(read, Ordering::SeqCst);
        Ok(())
    }

    let rounds = sized(150, 2_000);
    let jobs = open_sqlite().await;
    let mut shell = jobs.shell().await;
    let table = "CREATE TABLE counter (value INTEGER); INSERT INTO counter VALUES (0)";
    sqlx::raw_sql(table).execute(&mut shell).await.unwrap();
    let copied = Arc::new(AtomicI64::new(0));
    let handlers = Registry::new().handle(copy).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, copied.clone()));
    let mut already_there = 0;
    let mut last = None;
    for round in 0..rounds {
        let mut tx = jobs.begin::<sqlx::Sqlite>().await.unwrap();
        sqlx::query("UPDATE counter SET value = value + 1").execute(&mut *tx).await.unwrap();
        let answer = jobs.enqueue(act("")).unique_key("k").in_tx(&mut tx).await.unwrap();
        already_there += i64::from(matches!(answer, Enqueued::AlreadyThere(_)));
        // The worker wants to claim while the transaction is held; one in three is undone.
        tokio::time::sleep(Duration::from_millis(round % 4)).await;
        if round % 3 == 2 {
            tx.rollback().await.unwrap();
        } else {
            tx.commit().await.unwrap();
            last = Some(answer.id());
        }
        if round % 7 == 0 {
            ended(&jobs, last.unwrap()).await;
        }
    }
    ended(&jobs, last.unwrap()).await;
    let counter: i64 =
        sqlx::query_scalar("SELECT value FROM counter").fetch_one(&mut shell).await.unwrap();
    assert_eq!(copied.load(Ordering::SeqCst), counter, "{already_there} were there already");
    running.stop().await;
}

#[tokio::test]
async fn settings_outside_their_range_are_refused_with_the_reason() {
    let jobs = Jobs::open("memory:").await.unwrap();
    let refusal = async |change: fn(Worker<App>) -> Worker<App>| {
        let handlers = Registry::new().build().unwrap();
        let worker = change(Worker::new(&jobs, handlers, App::default()));
        worker.run_until(async {}).await.unwrap_err().to_string()
    };
    assert!(refusal(|w| w.concurrency(0)).await.contains("at least 1"));
    assert!(refusal(|w| w.lease(Duration::from_millis(5))).await.contains("1 s to 1 h"));
    assert!(refusal(|w| w.grace_period(Duration::ZERO)).await.contains("1 s to 24 h"));
    assert!(refusal(|w| w.poll_interval(Duration::ZERO)).await.contains("10 ms to 1 h"));
    assert!(refusal(|w| w.queue("a\0b")).await.contains("queue name"));
    assert!(jobs.enqueue(act("")).priority(101).await.unwrap_err().to_string().contains("-100"));
    let odd = Jobs::open("mysql://somewhere").await.unwrap_err();
    let odd = jobs_runtime::chain(&odd);
    assert!(odd.contains("sqlite://"), "{odd}");
}

#[tokio::test]
async fn another_kind_starts_soon_behind_a_standing_backlog() {
    #[derive(Debug, serde::Serialize, serde::Deserialize, Job)]
    #[job(kind = "test.other", version = "1.0.0")]
    struct Other {}

    async fn work(_: Act, _: JobContext<App>) -> Result<(), JobError> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    }

    async fn other(_: Other, _: JobContext<App>) -> Result<(), JobError> {
        Ok(())
    }

    for jobs in open().await {
        jobs.enqueue_all((0..2_000).map(|_| act(""))).await.unwrap();
        let handlers = Registry::new().handle(work).handle(other).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()).concurrency(2));
        let first = jobs.enqueue(Other {}).priority(100).await.unwrap().id();
        ended(&jobs, first).await;
        // The listing is older than this one, and every claim comes back full.
        let second = jobs.enqueue(Other {}).priority(100).await.unwrap().id();
        assert_eq!(ended(&jobs, second).await.state, State::Succeeded);
        let left = jobs.inspect().counts().await.unwrap();
        let is_ready = |count: &&jobs_runtime::store::Count| count.state == State::Ready;
        assert!(left.iter().any(|count| is_ready(&count)), "the backlog still stands");
        running.stop().await;
    }
}
