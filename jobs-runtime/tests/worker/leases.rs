//! The lease: kept under a handler that blocks, given up when it is lost, audited at each beat.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Claim, Claimed, Head};
use jobs_runtime::{Clock, Counters, Place, QueueName, Route, State, SystemClock, WorkerId};

use crate::support::{
    Act, App, Running, act, close_behind, ended, is_running, open, seen, until, worker,
};

const LEASE: Duration = Duration::from_secs(2);

/// Holds its thread without yielding, for two leases.
async fn spin(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    let ends_at = SystemClock.elapsed() + LEASE * 2;
    while SystemClock.elapsed() < ends_at {
        std::hint::spin_loop();
    }
    Ok(())
}

fn spin_on(runtime: &tokio::runtime::Runtime, threads: usize) {
    runtime.block_on(async {
        for jobs in open().await {
            let handlers = || Registry::new().handle(spin).build().unwrap();
            let app = App::default();
            let busy = worker(&jobs, handlers(), app.clone()).lease(LEASE).concurrency(threads);
            let busy = Running::start(busy);
            let mut ids = Vec::new();
            for _ in 0..threads {
                ids.push(jobs.enqueue(act("spin")).await.unwrap().id());
            }
            let watcher = watch_from_another_thread(&jobs, app.clone());
            for id in ids {
                let record = ended(&jobs, id).await;
                assert_eq!(record.state, State::Succeeded);
                assert_eq!(record.counters.interruptions, 0);
            }
            assert_eq!(app.count(), threads, "every handler started once");
            busy.stop().await;
            watcher.stop();
        }
    });
}

/// A second worker on a runtime of its own, which would take over what a first one lost.
struct Watcher {
    stop: tokio::sync::oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

fn watch_from_another_thread(jobs: &Jobs, app: App) -> Watcher {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let jobs = jobs.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handlers = Registry::new().handle(spin).build().unwrap();
        let worker = worker(&jobs, handlers, app).lease(LEASE).concurrency(1);
        // It has a queue of its own, so that it sweeps but never claims by itself.
        let worker = worker.queue("elsewhere");
        let until_stopped = async {
            drop(stopped.await);
        };
        runtime.block_on(worker.run_until(until_stopped)).unwrap();
    });
    Watcher { stop, thread }
}

impl Watcher {
    fn stop(self) {
        self.stop.send(()).expect("the watcher still waits");
        self.thread.join().expect("the watcher does not panic");
    }
}

#[test]
fn handlers_that_spin_on_every_thread_starve_no_heartbeat() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    spin_on(&runtime.unwrap(), 2);
}

#[test]
fn a_handler_that_spins_on_a_single_thread_starves_no_heartbeat() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    spin_on(&runtime.unwrap(), 1);
}

async fn wait_for_stop(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    if cx.state.count() == 1 {
        cx.stopping().await;
        cx.check().await?;
    }
    Ok(())
}

async fn worker_of(jobs: &Jobs) -> WorkerId {
    jobs.inspect().workers().await.unwrap()[0].id
}

#[tokio::test]
async fn a_worker_whose_lease_was_ended_registers_anew_and_goes_on() {
    for jobs in open().await {
        let handlers = Registry::new().handle(wait_for_stop).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()).lease(LEASE));
        let id = jobs.enqueue(act("")).await.unwrap().id();
        until(&jobs, id, is_running).await;
        let first = worker_of(&jobs).await;
        close_behind(&jobs, first).await;
        let record = ended(&jobs, id).await;
        assert_eq!(record.state, State::Succeeded);
        assert_eq!((record.counters.failures, record.counters.crashes), (0, 0));
        assert_ne!(worker_of(&jobs).await, first, "it has a new id");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_given_back_unrun() {
    for jobs in open().await {
        // The worker never claims from this queue by itself, so that only the lost answer holds it.
        let handlers = Registry::new().handle(wait_for_stop).build().unwrap();
        let worker = worker(&jobs, handlers, App::default()).lease(LEASE).queue("elsewhere");
        let running = Running::start(worker);
        let workers = || async { jobs.inspect().workers().await.unwrap() };
        let me = seen(async || workers().await.first().map(|worker| worker.id)).await;
        let id = jobs.enqueue(act("")).await.unwrap().id();
        let route = Route::derive("test.act", "1.0.0", None);
        let head = Head { queue: QueueName::default(), route, from: Place::FIRST, limit: 1 };
        let claim = Claim { worker: me, heads: std::slice::from_ref(&head), limit: 1 };
        let claimed = jobs.store().claim(claim).await.unwrap();
        assert!(matches!(claimed, Claimed::Jobs(jobs) if jobs.len() == 1));
        let record = until(&jobs, id, |record| record.state == State::Ready).await;
        assert_eq!(record.counters, Counters::default(), "it never started");
        running.stop().await;
    }
}

async fn done(_: Act, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test]
async fn a_worker_whose_build_is_no_text_keeps_no_lost_run_from_being_taken_back() {
    let jobs = crate::support::open_sqlite().await;
    let mut shell = jobs.shell().await;
    let added = jobs.enqueue_all(["a", "b"].map(crate::support::act)).await.unwrap();
    sqlx::raw_sql(
        "INSERT INTO jobs_worker (id, name, build, manifest, lock_file, lease_us, started_at_us,
            renewed_at_us, ended_at_us)
        VALUES (1000, 'damaged', CAST(x'ff' AS TEXT), '{}', 'gone', 1000000, 0, 0, 1);
        UPDATE jobs_job SET state = 'running', claim_number = 1, worker_id = 999 + id",
    )
    .execute(&mut shell)
    .await
    .unwrap();
    let handlers = Registry::new().handle(done).build().unwrap();
    let running = crate::support::Running::start(crate::support::worker(&jobs, handlers, ()));
    for job in added {
        assert_eq!(crate::support::ended(&jobs, job.id()).await.state, State::Succeeded);
    }
    running.stop().await;
}
