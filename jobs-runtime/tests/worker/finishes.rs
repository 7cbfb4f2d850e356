//! Jobs and rows of the application that commit together: `in_tx` and `done_in`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{ErrorKind, JobRecord, State, StoreErrorKind, chain};
use sqlx::Sqlite;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::support::{
    Act, App, Fresh, Running, act, close_behind, ended, fresh, is_running, open_sqlite, until,
    worker,
};

/// What the handlers work with.
#[derive(Clone, Default)]
struct Shop {
    app: App,
    lost: Arc<AtomicUsize>,
    elsewhere: Option<Jobs>,
    later: TaskTracker,
}

type Tx = sqlx::Transaction<'static, Sqlite>;

async fn sell(cx: &JobContext<Shop>) -> Result<Tx, JobError> {
    let mut tx = cx.jobs().begin::<Sqlite>().await?;
    let insert = sqlx::query("INSERT INTO sale (job, claim) VALUES (?1, ?2)");
    insert.bind(cx.id().0).bind(cx.claim().0).execute(&mut *tx).await?;
    Ok(tx)
}

async fn finish(job: Act, cx: JobContext<Shop>) -> Result<Outcome, JobError> {
    cx.state.app.ran();
    let (fate, end) = job.how.split_once(", ").unwrap_or((&job.how, "done"));
    let mut tx = sell(&cx).await?;
    match fate {
        "rolled back" => {
            cx.done_in(&mut tx).await?;
            tx.rollback().await?;
        }
        "dropped" => cx.done_in(&mut tx).await?,
        "savepoint rolled back" => {
            let mut inner = sqlx::Acquire::begin(&mut tx).await?;
            cx.done_in(&mut inner).await?;
            inner.rollback().await?;
            tx.commit().await?;
        }
        "committed later" => {
            cx.done_in(&mut tx).await?;
            cx.state.later.spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                tx.commit().await.unwrap();
            });
        }
        "another file" => {
            drop(tx);
            let elsewhere = cx.state.elsewhere.as_ref().unwrap();
            let mut tx = elsewhere.begin::<Sqlite>().await?;
            cx.done_in(&mut tx).await?;
            tx.commit().await?;
        }
        "stolen" if cx.claim().0 == 1 => {
            drop(tx);
            // Tracked elsewhere, so that the abort of the lost run comes too late for it.
            let later = cx.state.later.clone();
            later.spawn(finish_once_stolen(cx)).await??;
        }
        _ => {
            cx.done_in(&mut tx).await?;
            tx.commit().await?;
        }
    }
    match end {
        "error" => Err(JobError::new("after the finish").class("late")),
        "permanent" => Err(JobError::new("after the finish").class("late").permanent()),
        "infrastructure" => Err(JobError::new("after the finish").infrastructure()),
        "panic" => panic!("after the finish"),
        "snooze" => Ok(Outcome::Snooze(Duration::from_hours(1))),
        _ => Ok(Outcome::Done),
    }
}

async fn finish_once_stolen(cx: JobContext<Shop>) -> Result<(), JobError> {
    while cx.jobs().job(cx.id()).await?.unwrap().claim == cx.claim() {
        tokio::task::yield_now().await;
    }
    let mut tx = sell(&cx).await?;
    if let Err(lost) = cx.done_in(&mut tx).await {
        cx.state.lost.fetch_add(1, Ordering::SeqCst);
        return Err(lost);
    }
    Ok(tx.commit().await?)
}

async fn shop_of(jobs: &Fresh) -> Shop {
    let table = "CREATE TABLE sale (job INTEGER, claim INTEGER)";
    sqlx::query(table).execute(&mut jobs.shell().await).await.unwrap();
    Shop::default()
}

/// The claims whose sales of a job were committed.
async fn sales(jobs: &Fresh, record: &JobRecord) -> Vec<i64> {
    let claims = sqlx::query_scalar("SELECT claim FROM sale WHERE job = ?1").bind(record.id.0);
    claims.fetch_all(&mut jobs.shell().await).await.unwrap()
}

fn start(jobs: &Jobs, shop: &Shop) -> Running {
    let handlers = Registry::new().handle(finish).build().unwrap();
    Running::start(worker(jobs, handlers, shop.clone()))
}

#[tokio::test]
async fn a_committed_finish_is_a_success_whatever_the_handler_says_afterwards() {
    let jobs = open_sqlite().await;
    let shop = shop_of(&jobs).await;
    let running = start(&jobs, &shop);
    for end in ["done", "error", "permanent", "infrastructure", "panic", "snooze"] {
        let id = jobs.enqueue(act(&format!("committed, {end}"))).await.unwrap().id();
        ended(&jobs, id).await;
        // The settlement comes after the commit; the next job's end shows that it was no harm.
        let next = jobs.enqueue(act("committed")).await.unwrap().id();
        ended(&jobs, next).await;
        let record = jobs.job(id).await.unwrap().unwrap();
        assert_eq!(record.state, State::Succeeded, "{end}");
        assert_eq!(record.counters, jobs_runtime::Counters::default(), "{end}");
        assert_eq!(sales(&jobs, &record).await, [1], "{end}");
    }
    let report = running.stop().await;
    assert_eq!((report.settled, report.interrupted, report.released), (12, 0, 0));
}

#[tokio::test]
async fn done_without_a_commit_is_a_failure_that_says_so() {
    let jobs = open_sqlite().await;
    let running = start(&jobs, &shop_of(&jobs).await);
    for fate in ["rolled back", "dropped", "savepoint rolled back"] {
        let id = jobs.enqueue(act(fate)).await.unwrap().id();
        let record = ended(&jobs, id).await;
        assert_eq!((record.state, record.counters.failures), (State::Dead, 1), "{fate}");
        assert_eq!(record.error_class.as_deref(), Some("finish_not_committed"), "{fate}");
        assert!(record.error.as_deref().unwrap().contains("commit it before"), "{fate}");
        let wanted: &[i64] = if fate == "savepoint rolled back" { &[1] } else { &[] };
        assert_eq!(sales(&jobs, &record).await, wanted, "{fate}");
    }
    running.stop().await;
}

#[tokio::test]
async fn after_a_finish_that_was_undone_the_handlers_own_word_counts() {
    let jobs = open_sqlite().await;
    let running = start(&jobs, &shop_of(&jobs).await);
    let enqueue = async |how: &str| jobs.enqueue(act(how)).await.unwrap().id();
    let error = ended(&jobs, enqueue("rolled back, error").await).await;
    assert_eq!((error.state, error.error_class.as_deref()), (State::Dead, Some("late")));
    let panic = ended(&jobs, enqueue("dropped, panic").await).await;
    assert_eq!((panic.state, panic.error_class.as_deref()), (State::Dead, Some("panic")));
    let snoozed = enqueue("rolled back, snooze").await;
    let snoozed = until(&jobs, snoozed, |record| record.counters.snoozes == 1).await;
    assert_eq!((snoozed.state, snoozed.counters.failures), (State::Scheduled, 0));
    for record in [error, panic, snoozed] {
        assert!(sales(&jobs, &record).await.is_empty());
    }
    running.stop().await;
}

#[tokio::test]
async fn a_commit_still_in_flight_when_the_handler_returns_is_waited_out() {
    let jobs = open_sqlite().await;
    let shop = shop_of(&jobs).await;
    let running = start(&jobs, &shop);
    let id = jobs.enqueue(act("committed later")).await.unwrap().id();
    let record = ended(&jobs, id).await;
    assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
    shop.later.close();
    shop.later.wait().await;
    running.stop().await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, sales(&jobs, &record).await), (State::Succeeded, vec![1]));
}

#[tokio::test]
async fn a_transaction_of_another_file_is_a_clear_error() {
    let (jobs, elsewhere) = (open_sqlite().await, open_sqlite().await);
    let shop = Shop { elsewhere: Some(elsewhere.clone()), ..shop_of(&jobs).await };
    let running = start(&jobs, &shop);
    let id = jobs.enqueue(act("another file")).await.unwrap().id();
    let record = ended(&jobs, id).await;
    let text = record.error.as_deref().unwrap();
    assert_eq!(record.state, State::Dead);
    assert!(text.contains("another database"), "{text}");
    running.stop().await;
    let mut tx = elsewhere.begin::<Sqlite>().await.unwrap();
    let error = chain(&jobs.enqueue(act("")).in_tx(&mut tx).await.unwrap_err());
    assert!(error.contains("another database"), "{error}");
    let memory = fresh("memory:", Jobs::builder()).await;
    let error = memory.enqueue(act("")).in_tx(&mut tx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongTransaction);
    assert!(error.to_string().contains("in memory"), "{error}");
    assert_eq!(memory.begin::<Sqlite>().await.unwrap_err().kind(), ErrorKind::WrongTransaction);
}

#[tokio::test]
async fn a_finish_with_a_lost_lease_rolls_back() {
    let jobs = open_sqlite().await;
    let shop = shop_of(&jobs).await;
    let running = start(&jobs, &shop);
    let id = jobs.enqueue(act("stolen")).await.unwrap().id();
    let record = until(&jobs, id, |_| !shop.later.is_empty()).await;
    close_behind(&jobs, record.worker.unwrap()).await;
    let record = ended(&jobs, id).await;
    assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
    shop.later.close();
    shop.later.wait().await;
    assert_eq!(shop.lost.load(Ordering::SeqCst), 1, "the first run was told");
    assert_eq!(sales(&jobs, &record).await, [record.claim.0]);
    running.stop().await;
}

#[tokio::test]
async fn a_job_enqueued_in_a_transaction_exists_from_its_commit_on() {
    let jobs = open_sqlite().await;
    let shop = shop_of(&jobs).await;
    let neighbour = jobs.neighbour().await;
    let running = start(&jobs, &shop);
    let mut tx = jobs.begin::<Sqlite>().await.unwrap();
    let undone = jobs.enqueue(act("committed")).in_tx(&mut tx).await.unwrap().id();
    tx.rollback().await.unwrap();
    let mut tx = jobs.begin::<Sqlite>().await.unwrap();
    let many = jobs.enqueue_all(["committed", "committed"].map(act)).in_tx(&mut tx).await.unwrap();
    let scheduled = jobs.enqueue(act("committed")).delay(Duration::from_millis(50));
    let scheduled = scheduled.in_tx(&mut tx).await.unwrap().id();
    for client in [&*jobs, &neighbour] {
        assert!(client.job(many[0].id()).await.unwrap().is_none(), "seen before the commit");
    }
    assert_eq!(shop.app.count(), 0);
    tx.commit().await.unwrap();
    for id in many.iter().map(|one| one.id()).chain([scheduled]) {
        assert_eq!(ended(&neighbour, id).await.state, State::Succeeded);
    }
    running.stop().await;
    // The number of the undone one was given to the first of the others, or to none.
    let kept = jobs.job(undone).await.unwrap();
    assert!(kept.is_none() || many.iter().any(|one| one.id() == undone));
    assert_eq!(shop.app.count(), 3);
}

#[tokio::test]
async fn a_write_that_waits_on_an_own_open_transaction_fails_and_says_so() {
    async fn wait_on_oneself(_: Act, cx: JobContext<Shop>) -> Result<(), JobError> {
        let tx = cx.jobs().begin::<Sqlite>().await?;
        let stuck = cx.jobs().enqueue(act("")).queue("elsewhere").await.unwrap_err();
        drop(tx);
        Err(JobError::new(chain(&stuck)))
    }

    let outside = async {
        let jobs = open_sqlite().await;
        let tx = jobs.begin::<Sqlite>().await.unwrap();
        let (stuck, second) =
            tokio::join!(jobs.enqueue(act("")).into_future(), jobs.begin::<Sqlite>());
        for error in [stuck.unwrap_err(), second.unwrap_err()] {
            let text = chain(&error);
            assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::Busy), "{text}");
            assert!(text.contains("this process itself") && text.contains("in_tx"), "{text}");
        }
        drop(tx);
        jobs.enqueue(act("")).await.unwrap();
    };
    let in_a_handler = async {
        let jobs = open_sqlite().await;
        let handlers = Registry::new().handle(wait_on_oneself).build().unwrap();
        let worker = worker(&jobs, handlers, Shop::default()).lease(Duration::from_mins(1));
        let running = Running::start(worker);
        let id = jobs.enqueue(act("")).await.unwrap().id();
        let record = ended(&jobs, id).await;
        let text = record.error.unwrap();
        assert!(text.contains("this process itself") && text.contains("in_tx"), "{text}");
        running.stop().await;
    };
    tokio::join!(outside, in_a_handler);
}

/// Goes on with something else once its success is committed, until it is told to end.
#[derive(Clone, Default)]
struct Tidy {
    may_end: Arc<Notify>,
    has_tidied: Arc<AtomicUsize>,
}

async fn tidy_up(job: Act, cx: JobContext<Tidy>) -> Result<(), JobError> {
    if job.how == "deaf" {
        std::future::pending::<()>().await;
    }
    let mut tx = cx.begin::<Sqlite>().await?;
    cx.done_in(&mut tx).await?;
    tx.commit().await?;
    cx.state.may_end.notified().await;
    cx.state.has_tidied.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

#[tokio::test]
async fn a_handler_may_go_on_after_its_success_was_committed() {
    let (jobs, tidy) = (open_sqlite().await, Tidy::default());
    let handlers = Registry::new().handle(tidy_up).build().unwrap();
    let worker = worker(&jobs, handlers, tidy.clone()).lease(Duration::from_secs(1));
    let running = Running::start(worker);
    let id = jobs.enqueue(act("")).await.unwrap().id();
    assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
    // A deaf handler is cancelled by the second audit that hears of it, so by then there were two.
    let deaf = jobs.enqueue(act("deaf")).await.unwrap().id();
    until(&jobs, deaf, is_running).await;
    jobs.operate().cancel(&[deaf]).await.unwrap();
    assert_eq!(ended(&jobs, deaf).await.state, State::Cancelled);
    tidy.may_end.notify_one();
    let report = running.stop().await;
    assert_eq!(tidy.has_tidied.load(Ordering::SeqCst), 1, "no audit aborted it");
    assert_eq!((report.settled, report.interrupted), (1, 1));
}
