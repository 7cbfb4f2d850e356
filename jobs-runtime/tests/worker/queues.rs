//! Several queues a worker: shares, limits, and what they promise.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_runtime::ErrorKind;
use jobs_runtime::State;
use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use tokio::sync::Semaphore;

use crate::support::{Act, Running, act, ended, open, open_sqlite, worker};

/// Counts who runs at once, and holds the slow ones.
#[derive(Debug, Clone)]
struct Crowd {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Crowd {
    fn new() -> Self {
        let gate = Arc::new(Semaphore::new(0));
        Self { now: Arc::default(), most: Arc::default(), gate }
    }
}

async fn run(job: Act, cx: JobContext<Crowd>) -> Result<(), JobError> {
    if job.how == "slow" {
        let now = cx.state.now.fetch_add(1, Ordering::SeqCst) + 1;
        cx.state.most.fetch_max(now, Ordering::SeqCst);
        let passed = cx.state.gate.acquire().await?;
        passed.forget();
        cx.state.now.fetch_sub(1, Ordering::SeqCst);
    }
    Ok(())
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let look = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), look).await.expect(what);
}

async fn slow(jobs: &Jobs, count: usize) {
    let slow = (0..count).map(|_| act("slow"));
    jobs.enqueue_all(slow).queue("slow").await.unwrap();
}

#[tokio::test]
async fn a_slow_backlog_of_one_queue_holds_no_other_queue_up() {
    for jobs in open().await {
        slow(&jobs, 50).await;
        let crowd = Crowd::new();
        let handlers = Registry::new().handle(run).build().unwrap();
        let sharing = worker(&jobs, handlers, crowd.clone())
            .concurrency(8)
            .queue("slow")
            .queue("fast")
            .queue_weight("slow", 3)
            .queue_weight("fast", 1);
        let running = Running::start(sharing);
        // It borrows what the other queue doesn't use, but never the last slot.
        until("the slow ones fill their slots", || crowd.now.load(Ordering::SeqCst) == 7).await;
        for _ in 0..20 {
            let id = jobs.enqueue(act("fast")).queue("fast").await.unwrap().id();
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        assert_eq!(crowd.most.load(Ordering::SeqCst), 7);
        crowd.gate.add_permits(50);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_queue_keeps_to_its_own_concurrency_and_goes_on_when_a_run_ends() {
    for jobs in open().await {
        slow(&jobs, 30).await;
        let crowd = Crowd::new();
        let handlers = Registry::new().handle(run).build().unwrap();
        // The poll is too slow to help: the end of a run starts the next one.
        let limited = worker(&jobs, handlers, crowd.clone())
            .poll_interval(Duration::from_mins(1))
            .queue("slow")
            .queue_concurrency("slow", 3);
        let running = Running::start(limited);
        until("three run", || crowd.now.load(Ordering::SeqCst) == 3).await;
        crowd.gate.add_permits(30);
        let done = async || {
            let filter = Filter { state: Some(State::Succeeded), ..Filter::default() };
            jobs.inspect().jobs(&filter, u32::MAX).await.unwrap().len()
        };
        let all = async {
            while done().await < 30 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), all).await.expect("all run");
        assert!(crowd.most.load(Ordering::SeqCst) <= 3);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_limit_of_the_fleet_holds_over_all_workers() {
    for jobs in open().await {
        slow(&jobs, 40).await;
        let crowd = Crowd::new();
        let start = || {
            let handlers = Registry::new().handle(run).build().unwrap();
            let limited = worker(&jobs, handlers, crowd.clone())
                .queue("slow")
                .queue_fleet_concurrency("slow", 4);
            Running::start(limited)
        };
        let workers = [start(), start(), start()];
        until("four run", || crowd.now.load(Ordering::SeqCst) == 4).await;
        let left = async || {
            let filter = Filter { state: Some(State::Succeeded), ..Filter::default() };
            40 - jobs.inspect().jobs(&filter, u32::MAX).await.unwrap().len()
        };
        crowd.gate.add_permits(40);
        let all = async {
            while left().await > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("all run");
        assert!(crowd.most.load(Ordering::SeqCst) <= 4, "{crowd:?}");
        for worker in workers {
            worker.stop().await;
        }
    }
}

#[tokio::test]
async fn a_share_or_a_limit_that_means_nothing_is_refused() {
    let jobs = open_sqlite().await;
    let refused = async |change: fn(Worker<Crowd>) -> Worker<Crowd>| {
        let handlers = Registry::new().handle(run).build().unwrap();
        let worker = change(worker(&jobs, handlers, Crowd::new()).queue("a"));
        let error = worker.run_until(async {}).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        error.to_string()
    };
    let weight = refused(|worker| worker.queue_weight("a", 0)).await;
    assert_eq!(weight, r#"the weight 0 of the queue "a" is not one of 1 to 1,000"#);
    let other = refused(|worker| worker.queue_weight("b", 1)).await;
    assert_eq!(other, r#"the worker shares its slots with the queue "b", but does not work it"#);
    for zero in [
        refused(|worker| worker.queue_concurrency("a", 0)).await,
        refused(|worker| worker.queue_fleet_concurrency("a", 0)).await,
    ] {
        assert_eq!(zero, r#"a limit of 0 for the queue "a": pause the queue instead"#);
    }
}
