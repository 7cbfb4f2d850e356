//! How often a worker asks its store: the calls of the contract are the statements of a database. And what
//! becomes of its schedules when some of them fail.

mod statements_store;

use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Random, SeededRandom, SystemClock};
use serde::{Deserialize, Serialize};
use statements_store::{Calls, Counted};
use tokio::sync::oneshot;

#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "test.nothing", version = "1.0.0")]
struct Nothing {}

async fn nothing(_: Nothing, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

/// Works for a span of tokio's paused clock; answers how often what was called meanwhile.
async fn calls(waiting: usize, concurrency: usize, span: Duration) -> Calls {
    let store = Counted::new(Arc::new(SystemClock), SeededRandom::new(7).draw());
    let calls = store.calls();
    let jobs = Jobs::builder().over(store).expect("the label is fine");
    jobs.enqueue_all(vec![Nothing {}; waiting]).await.expect("the jobs are stored");
    let handlers = Registry::new().handle(nothing).build().expect("one handler");
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(&jobs, handlers, ()).concurrency(concurrency);
    let working = worker.run_until(async {
        drop(stopped.await);
    });
    let stopping = async {
        tokio::time::sleep(span).await;
        let calls = calls.take();
        drop(stop);
        calls
    };
    let (report, calls) = tokio::join!(working, stopping);
    assert_eq!(report.expect("the worker runs").settled, waiting as u64);
    calls
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_asks_less_than_twice_a_second() {
    let seconds = 600;
    let calls = calls(0, 10, Duration::from_secs(seconds)).await;
    // The heartbeat's thread has a clock of its own: a renewal and an audit every ten seconds, and a
    // sweep of an SQL store is up to three statements.
    let heartbeats = 2 * seconds / 10;
    let sweeps = 2 * calls.of("sweep");
    let all = calls.all() + heartbeats + sweeps;
    assert!(all < 2 * seconds, "{all} statements in {seconds} s: {calls:?}");
}

#[tokio::test(start_paused = true)]
async fn what_ends_together_is_claimed_and_settled_by_one_call_each() {
    let calls = calls(1_000, 100, Duration::from_secs(1)).await;
    assert!(calls.of("claim") <= 10 + 3, "{calls:?}");
    assert!(calls.of("settle") <= 10 + 3, "{calls:?}");
    assert!(calls.of("routes") <= 3, "{calls:?}");
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, Job)]
#[job(kind = "test.tick", version = "1.0.0", schedule = "every 1s")]
struct Tick {}

async fn tick(_: Tick, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test]
async fn a_leader_whose_start_meets_errors_runs_everything_once_they_have_passed() {
    let store = Counted::new(Arc::new(SystemClock), SeededRandom::new(7).draw());
    let calls = store.calls();
    let jobs = Jobs::builder().over(store).expect("the label is fine");
    for method in ["declare", "take_duty", "schedules", "advance", "advance"] {
        calls.fail(method);
    }
    let handlers = Registry::new()
        .handle(tick)
        .schedule(jobs_runtime::Schedule::new("every 1s", &Tick {}).named("the other"));
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(&jobs, handlers.build().expect("one handler"), ());
    let working = worker.run_until(async { drop(stopped.await) });
    let watching = async {
        let both_tick = async || {
            let ticked = async |name: &str| !jobs.ticks(name).await.expect("ticks").is_empty();
            ticked("test.tick").await && ticked("the other").await
        };
        while calls.to_fail() > 0 || !both_tick().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(stop);
    };
    let watching = tokio::time::timeout(Duration::from_secs(30), watching);
    let (report, watched) = tokio::join!(working, watching);
    watched.expect("every schedule ticks, whatever failed first");
    report.expect("the worker drains");
}
