//! Calls whose futures are dropped at any instant, as time-outs, `select!` and cancelled handlers do.

use std::time::Duration;

use jobs_core::store::conformance::model::seeds;
use jobs_runtime::prelude::*;
use jobs_runtime::store::{Claim, Head, NewWorker};
use jobs_runtime::{
    BuildId, JobId, Lease, Place, QueueName, Random, Route, SeededRandom, State, WorkerName, below,
};
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;

use crate::support::{
    Act, App, Fresh, Running, act, close_behind, ended, open_sqlite, sized, until, worker,
};

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At(u64);

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.stepwise", version = "1.0.0", checkpoint = At)]
struct Stepwise {
    steps: u64,
}

/// Saves checkpoints and opens transactions, and drops most of these calls half-way.
async fn step(job: Stepwise, mut cx: JobContext<App, At>) -> Result<(), JobError> {
    let random = SeededRandom::new(cx.id().0.unsigned_abs());
    let At(first) = cx.resume_or(At(0));
    for at in first..job.steps {
        let _ = for_a_moment(&random, cx.checkpoint(&At(at))).await;
        let _ = for_a_moment(&random, async {
            let mut tx = cx.jobs().begin::<Sqlite>().await?;
            cx.checkpoint_in(&mut tx, &At(at)).await?;
            Ok::<_, JobError>(tx.commit().await?)
        })
        .await;
        let _ = for_a_moment(&random, cx.check()).await;
    }
    cx.checkpoint(&At(job.steps)).await?;
    cx.state.ran();
    Ok(())
}

/// Polls a call for 0 to 3 ms and drops it then.
async fn for_a_moment<T>(random: &SeededRandom, call: impl Future<Output = T>) -> Option<T> {
    let span = Duration::from_micros(below(random.draw(), 3_000));
    tokio::time::timeout(span, call).await.ok()
}

/// Random calls, each dropped at a random instant; the jobs that were acknowledged.
async fn call_and_drop(jobs: &Fresh, random: &SeededRandom, calls: u64) -> Vec<JobId> {
    let worker = jobs.store().register(&new_worker()).await.unwrap();
    let route = Route::derive("test.stepwise", "1.0.0", None);
    let head = Head { queue: QueueName::default(), route, from: Place::FIRST, limit: 3 };
    let mut acknowledged = Vec::new();
    for _ in 0..calls {
        match below(random.draw(), 6) {
            0 => {
                let enqueue = jobs.enqueue(Stepwise { steps: 0 }).into_future();
                let answer = for_a_moment(random, enqueue).await;
                acknowledged.extend(answer.map(|answer| answer.unwrap().id()));
            }
            1 => {
                let many = jobs.enqueue_all((0..20).map(|_| Stepwise { steps: 0 })).into_future();
                let answers = for_a_moment(random, many).await;
                let answers = answers.map(Result::unwrap).unwrap_or_default();
                acknowledged.extend(answers.iter().map(|answer| answer.id()));
            }
            2 => drop(for_a_moment(random, jobs.begin::<Sqlite>()).await),
            3 => {
                let committed = for_a_moment(random, async {
                    let mut tx = jobs.begin::<Sqlite>().await.unwrap();
                    let enqueue = jobs.enqueue(Stepwise { steps: 0 }).in_tx(&mut tx);
                    let id = enqueue.await.unwrap().id();
                    tx.commit().await.unwrap();
                    id
                });
                acknowledged.extend(committed.await);
            }
            4 => {
                let claim = Claim { worker, heads: std::slice::from_ref(&head), limit: 3 };
                drop(for_a_moment(random, jobs.store().claim(claim)).await);
            }
            _ => {
                drop(for_a_moment(random, jobs.inspect().counts()).await);
                drop(for_a_moment(random, jobs.wait(JobId(1)).into_future()).await);
            }
        }
    }
    close_behind(jobs, worker).await;
    acknowledged
}

fn new_worker() -> NewWorker {
    let name = WorkerName::new("dropper").unwrap();
    let lease = Lease::new(Duration::from_mins(1)).unwrap();
    NewWorker { name, build: BuildId::default(), manifest: String::new(), lease }
}

/// Keeps the write lock busy from elsewhere, so that calls are dropped while they wait for it.
async fn disturb(jobs: &Fresh, random: &SeededRandom) {
    let mut shell = jobs.shell().await;
    loop {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut shell).await.unwrap();
        tokio::time::sleep(Duration::from_micros(below(random.draw(), 3_000))).await;
        sqlx::query("ROLLBACK").execute(&mut shell).await.unwrap();
        tokio::time::sleep(Duration::from_micros(below(random.draw(), 3_000))).await;
    }
}

#[tokio::test]
async fn calls_dropped_at_any_instant_leave_no_transaction_and_lose_nothing_acknowledged() {
    let calls = sized(200, 2_000);
    for seed in seeds(sized(1, 20)) {
        println!("see it again: JOBS_SEED={seed} cargo nextest run -E 'test(drops)'");
        let random = SeededRandom::new(seed);
        let jobs = open_sqlite().await;
        let stepwise = jobs.enqueue(Stepwise { steps: calls / 10 }).await.unwrap().id();
        let handlers = || Registry::new().handle(step).build().unwrap();
        let app = App::default();
        let running = Running::start(worker(&jobs, handlers(), app.clone()).queue("elsewhere"));
        let acknowledged = tokio::select! {
            acknowledged = call_and_drop(&jobs, &random, calls) => acknowledged,
            () = disturb(&jobs, &random) => unreachable!("it never ends"),
        };
        running.stop().await;
        // Nobody holds the write lock any more.
        let mut shell = jobs.shell().await;
        sqlx::raw_sql("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK")
            .execute(&mut shell)
            .await
            .expect("a dropped call holds the write lock");
        let neighbour = jobs.neighbour().await;
        for id in &acknowledged {
            let job = neighbour.job(*id).await.unwrap();
            assert!(job.is_some(), "job {id} was acknowledged and is not there");
        }
        let running = Running::start(worker(&jobs, handlers(), app.clone()));
        for id in &acknowledged {
            assert_eq!(ended(&neighbour, *id).await.state, State::Succeeded);
        }
        let record = until(&neighbour, stepwise, |record| record.state.is_finished()).await;
        assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
        assert_eq!(record.checkpoint.unwrap().text, (calls / 10).to_string());
        running.stop().await;
        assert!(!acknowledged.is_empty(), "no call was ever answered");
    }
}

#[tokio::test]
async fn a_sqlite_file_is_whole_by_itself_after_a_clean_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    let log = folder.path().join("app.db-wal");
    let in_log = || std::fs::metadata(&log).map_or(0, |log| log.len());
    let jobs = Jobs::open(&format!("sqlite://{}", database.display())).await.expect("it opens");
    let all = jobs.enqueue_all((0..300).map(|_| act("done"))).await.unwrap();
    assert!(in_log() > 0, "what was written last is in the log");
    let handlers = Registry::new().handle(count).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    for enqueued in &all {
        ended(&jobs, enqueued.id()).await;
    }
    running.stop().await;
    assert_eq!(in_log(), 0, "the worker has ended, and the client is open still");

    let last = jobs.enqueue(act("done")).await.unwrap().id();
    assert!(in_log() > 0);
    drop(jobs);
    assert_eq!(in_log(), 0, "the client was dropped");
    let copy = folder.path().join("copy.db");
    std::fs::copy(&database, &copy).unwrap();
    let copied = Jobs::open(&format!("sqlite://{}", copy.display())).await.unwrap();
    assert_eq!(copied.job(last).await.unwrap().map(|job| job.state), Some(State::Ready));
}

async fn count(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}
