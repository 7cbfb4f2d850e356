//! A worker process that is told to stop while a handler stays.

use std::time::Duration;

use jobs_runtime::store::WorkerRecord;
use jobs_runtime::{Clock, Counters, JobRecord, State};
use rustix::process::Signal;
use tests::process::Setup;
use tests::{Stay, Staying, ledger, until};

use crate::{BINARY, MakeSetup};

const GRACE: Duration = Duration::from_secs(5);

/// A process that was stopped while a handler stayed.
struct Stopped {
    status: Option<i32>,
    took: Duration,
    /// The job's state when the process was gone.
    left: State,
    /// The job once it is ready again.
    record: JobRecord,
}

/// Stops a process while a handler of a kind stays.
async fn stopped(store: MakeSetup, how: Staying, threads: usize) -> Stopped {
    let folder = tempfile::tempdir().unwrap();
    let setup =
        store(BINARY, folder.path()).with("GRACE_MS", &GRACE.as_millis()).with("THREADS", &threads);
    let jobs = setup.open().await;
    let id = jobs.enqueue(Stay { how }).await.unwrap().id();
    let first = setup.start("first");
    let has_started = async || ledger::read(&setup.ledger).contains_key(&id.0);
    until("the handler starts", Duration::from_secs(20), has_started).await;
    let clock = jobs_runtime::SystemClock;
    let asked_at = clock.elapsed();
    first.signal(Signal::TERM);
    let status = tokio::task::spawn_blocking(|| first.wait()).await.unwrap();
    let took = clock.elapsed().checked_sub(asked_at).unwrap();
    let left = jobs.job(id).await.unwrap().unwrap().state;
    // Another worker, of a queue of its own, takes back what the first one could not give back.
    let second = setup.clone().with("QUEUES", &"elsewhere").start("second");
    let is_ready = async || jobs.job(id).await.unwrap().unwrap().state == State::Ready;
    until("the job is ready again", Duration::from_secs(10), is_ready).await;
    let is_open = |worker: &WorkerRecord| worker.name == "second" && worker.ended_at.is_none();
    let works = async || jobs.inspect().workers().await.unwrap().iter().any(is_open);
    until("the second worker works", Duration::from_secs(10), works).await;
    second.signal(Signal::TERM);
    let log = second.log();
    let ended = second.wait();
    assert!(ended.success(), "{ended}: {log}");
    let record = jobs.job(id).await.unwrap().unwrap();
    Stopped { status: status.code(), took, left, record }
}

#[tokio::test]
async fn a_handler_that_can_be_ended_is_given_back_before_a_clean_exit() {
    let check = async |how, store: MakeSetup| {
        let Stopped { status, took, left, record } = stopped(store, how, 2).await;
        assert_eq!((status, left), (Some(0), State::Ready), "{how:?}");
        assert!(took < GRACE, "{how:?} took {took:?}");
        assert_eq!((record.counters.interruptions, record.counters.crashes), (1, 0), "{how:?}");
    };
    for how in [Staying::Cooperative, Staying::Deaf] {
        tokio::join!(check(how, Setup::over_sqlite), check(how, Setup::over_postgres));
    }
}

#[tokio::test]
async fn a_handler_that_can_not_be_ended_holds_no_process_and_is_no_crash() {
    let check = async |how, threads, store: MakeSetup| {
        let Stopped { status, took, left, record } = stopped(store, how, threads).await;
        let ended = (status, left);
        // Of a closure that blocks, the handler that waits for it can be ended, and its job given back.
        let state = if how == Staying::Blocking { State::Ready } else { State::Running };
        let wanted = (Some(jobs_runtime::EXIT_UNFINISHED), state);
        assert_eq!(ended, wanted, "{how:?} on {threads} threads");
        assert!(took < GRACE, "{how:?} on {threads} threads took {took:?}");
        let Counters { failures, interruptions, crashes, .. } = record.counters;
        assert_eq!((failures, interruptions, crashes), (0, 1, 0), "{how:?} on {threads} threads");
    };
    for (how, threads) in [(Staying::Spinning, 2), (Staying::Spinning, 0), (Staying::Blocking, 2)] {
        let over = |store| check(how, threads, store);
        tokio::join!(over(Setup::over_sqlite), over(Setup::over_postgres));
    }
}
