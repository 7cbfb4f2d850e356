//! Claims beside a look at the head of the ready index.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::State;
use jobs_runtime::prelude::*;
use tokio::sync::Semaphore;

use crate::planted::Planted;
use crate::support::{Act, App, Running, act, ended, is_running, open, until, worker};

async fn run(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}

#[tokio::test]
async fn a_look_that_stands_still_holds_no_job_up_of_a_kind_that_runs() {
    let store = Planted::new();
    let jobs = store.jobs();
    let handlers = Registry::new().handle(run).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    let first = jobs.enqueue(act("first")).await.unwrap().id();
    ended(&jobs, first).await;
    {
        let mut plan = store.plan();
        plan.stuck.insert("routes");
        plan.met.clear();
    }
    store.until(|plan| plan.met.contains("routes")).await;
    for how in ["second", "third"] {
        let id = jobs.enqueue(act(how)).await.unwrap().id();
        assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
    }
    store.plan().stuck.clear();
    running.stop().await;
}

/// Takes a moment, so that a stream of them leaves no worker idle.
async fn run_on(job: Act, _: JobContext<()>) -> Result<(), JobError> {
    if job.how == "stream" {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Jobs that come before the place where the claims go on, while that always gives some.
#[tokio::test]
async fn what_stands_before_the_place_of_the_claims_starts_beside_a_backlog() {
    for jobs in open().await {
        let backlog = jobs.enqueue_all((0..3_000).map(|_| act("stream"))).await.unwrap();
        let handlers = Registry::new().handle(run_on).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, ()).concurrency(2));
        ended(&jobs, backlog[0].id()).await;
        let urgent = jobs.enqueue(act("urgent")).priority(100).await.unwrap().id();
        assert_eq!(ended(&jobs, urgent).await.state, State::Succeeded);
        let last = jobs.job(backlog[2_999].id()).await.unwrap().unwrap();
        assert_eq!(last.state, State::Ready, "the backlog is not worked off yet");
        running.stop().await;
    }
}

/// What ran, in order, and what holds each run.
#[derive(Debug, Clone)]
struct Turns {
    began: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
}

async fn wait(job: Act, cx: JobContext<Turns>) -> Result<(), JobError> {
    cx.state.began.lock().unwrap().push(job.how);
    cx.state.gate.acquire().await?.forget();
    Ok(())
}

/// What was seen before the slot was taken says nothing of what came since.
#[tokio::test]
async fn a_slot_that_was_taken_for_long_goes_to_what_is_first_by_then() {
    for jobs in open().await {
        let backlog = jobs.enqueue_all((0..3).map(|_| act("plain"))).await.unwrap();
        let turns = Turns { began: Arc::default(), gate: Arc::new(Semaphore::new(0)) };
        let handlers = Registry::new().handle(wait).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, turns.clone()).concurrency(1));
        until(&jobs, backlog[0].id(), is_running).await;
        jobs.enqueue(act("urgent")).priority(100).await.unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        turns.gate.add_permits(4);
        ended(&jobs, backlog[2].id()).await;
        assert_eq!(*turns.began.lock().unwrap(), ["plain", "urgent", "plain", "plain"]);
        running.stop().await;
    }
}
