//! Runs beside one another.

use std::sync::{Arc, Barrier, Condvar, Mutex};

use jobs_runtime::State;
use jobs_runtime::prelude::*;
use tokio::sync::Notify;

use crate::support::{Act, Running, act, ended, is_running, open, worker};

/// What handlers wait for, one without yielding.
#[derive(Debug, Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar, Notify)>);

impl Gate {
    fn block(&self) {
        let (is_open, opened, _) = &*self.0;
        let closed = is_open.lock().unwrap();
        drop(opened.wait_while(closed, |is_open| !*is_open).unwrap());
    }

    async fn wait(&self) {
        self.0.2.notified().await;
    }

    fn open(&self) {
        let (is_open, opened, told) = &*self.0;
        *is_open.lock().unwrap() = true;
        opened.notify_all();
        told.notify_one();
    }
}

async fn block_or_pass(act: Act, cx: JobContext<Gate>) -> Result<(), JobError> {
    match act.how.as_str() {
        "block" => cx.state.block(),
        "yield, then block" => {
            tokio::task::yield_now().await;
            cx.state.block();
        }
        "block in place" => tokio::task::block_in_place(|| cx.state.block()),
        "wait" => cx.state.wait().await,
        _ => {}
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_handler_that_blocks_its_thread_holds_up_no_other() {
    for how in ["block", "yield, then block"] {
        for jobs in open().await {
            let gate = Gate::default();
            let handlers = Registry::new().handle(block_or_pass).build().unwrap();
            let running = Running::start(worker(&jobs, handlers, gate.clone()).concurrency(4));
            // More than there are slots, so that tasks are used again beside it.
            let blocked = jobs.enqueue(act(how)).await.unwrap().id();
            for _ in 0..20 {
                let id = jobs.enqueue(act("")).await.unwrap().id();
                assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
            }
            assert!(is_running(&jobs.job(blocked).await.unwrap().unwrap()));
            gate.open();
            assert_eq!(ended(&jobs, blocked).await.state, State::Succeeded);
            assert_eq!(running.stop().await.settled, 21);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_block_their_threads_hold_up_none_that_were_claimed_with_them() {
    for jobs in open().await {
        let gate = Gate::default();
        let handlers = Registry::new().handle(block_or_pass).build().unwrap();
        // Before the worker starts, so that one claim takes them all: three of four threads block.
        let mut blocked = Vec::new();
        let mut passing = Vec::new();
        for nth in 0..60 {
            if nth % 20 == 7 {
                blocked.push(jobs.enqueue(act("block")).await.unwrap().id());
            } else {
                passing.push(jobs.enqueue(act("")).await.unwrap().id());
            }
        }
        let running = Running::start(worker(&jobs, handlers, gate.clone()).concurrency(60));
        for id in passing {
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        for id in &blocked {
            assert!(is_running(&jobs.job(*id).await.unwrap().unwrap()));
        }
        gate.open();
        assert_eq!(running.stop().await.settled, 60);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_block_in_place_beside_one_that_blocks_hold_up_none_that_were_claimed_with_them()
 {
    for jobs in open().await {
        let gate = Gate::default();
        let handlers = Registry::new().handle(block_or_pass).build().unwrap();
        for how in ["block in place"; 4].into_iter().chain(["block"]) {
            jobs.enqueue(act(how)).await.unwrap();
        }
        let mut passing = Vec::new();
        for _ in 0..10 {
            passing.push(jobs.enqueue(act("")).await.unwrap().id());
        }
        let running = Running::start(worker(&jobs, handlers, gate.clone()).concurrency(15));
        for id in passing {
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        gate.open();
        assert_eq!(running.stop().await.settled, 15);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_waits_beside_one_that_blocks_holds_up_none_that_were_claimed_with_them() {
    for jobs in open().await {
        let gate = Gate::default();
        let handlers = Registry::new().handle(block_or_pass).build().unwrap();
        let mut passing = Vec::new();
        for how in ["wait", "block"] {
            jobs.enqueue(act(how)).await.unwrap();
        }
        for _ in 0..10 {
            passing.push(jobs.enqueue(act("")).await.unwrap().id());
        }
        let running = Running::start(worker(&jobs, handlers, gate.clone()).concurrency(12));
        for id in passing {
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        gate.open();
        assert_eq!(running.stop().await.settled, 12);
    }
}

async fn meet_in_place(_: Act, cx: JobContext<Arc<Barrier>>) -> Result<(), JobError> {
    tokio::task::block_in_place(|| cx.state.wait());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_in_place_run_beside_one_another_whatever_the_threads() {
    const RUNS: usize = 20;
    for jobs in open().await {
        let handlers = Registry::new().handle(meet_in_place).build().unwrap();
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            runs.push(jobs.enqueue(act("")).await.unwrap().id());
        }
        // Nobody passes before all are there.
        let barrier = Arc::new(Barrier::new(RUNS));
        let running = Running::start(worker(&jobs, handlers, barrier).concurrency(RUNS));
        for id in runs {
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        assert_eq!(running.stop().await.settled, 20);
    }
}
