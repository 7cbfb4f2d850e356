//! The promises of the spine with real processes over one SQLite file or schema.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{JobId, JobRecord, State};
use rustix::process::Signal;
use sqlx::sqlite::SqliteConnection;
use tests::process::{Process, Setup};
use tests::{Work, ledger, sized, until};

mod clocks;
mod crashers;
mod deaths;
mod deploys;
mod foreign;
mod prunes;
mod races;
mod rolling;
mod rollouts;
mod silences;
mod steps;
mod stops;
mod supervisors;
mod wire;

const BINARY: &str = env!("CARGO_BIN_EXE_worker-process");

type MakeSetup = fn(&str, &std::path::Path) -> Setup;

/// One way to a setup for each store that processes can share.
const STORES: [MakeSetup; 2] = [Setup::over_sqlite, Setup::over_postgres];

/// Does the same over each store, at the same time: most of it is waiting.
async fn over_each_store(test: impl AsyncFn(MakeSetup)) {
    let [one, other] = STORES;
    tokio::join!(Box::pin(test(one)), Box::pin(test(other)));
}

/// Waits for a process's end, and keeps nobody else from waiting.
async fn ended(process: Process) -> std::process::ExitStatus {
    tokio::task::spawn_blocking(|| process.wait()).await.expect("the wait does not panic")
}

async fn count(jobs: &Jobs, state: State) -> u64 {
    let counts = jobs.inspect().counts().await.expect("the store answers");
    counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum()
}

/// Polls until a job is in a state, and reads it.
async fn until_state(jobs: &Jobs, id: JobId, state: State, limit: Duration) -> JobRecord {
    let read = async || jobs.job(id).await.expect("the store answers").expect("the job is there");
    until(&format!("job {id} is {state}"), limit, async || read().await.state == state).await;
    read().await
}

/// A connection such as a person with a shell has.
async fn shell(setup: &Setup) -> SqliteConnection {
    setup.shell(Duration::from_secs(30)).await
}

async fn all(jobs: &Jobs) -> Vec<JobRecord> {
    jobs.inspect().jobs(&Filter::default(), u32::MAX).await.expect("the store answers")
}

/// By the store every job succeeded once; by the ledger the run whose outcome was accepted ended,
/// and nothing ran more often than interruptions explain.
async fn assert_each_succeeded_once(jobs: &Jobs, setup: &Setup, wanted: usize) {
    let runs = ledger::read(&setup.ledger);
    let records = all(jobs).await;
    assert_eq!(records.len(), wanted);
    for record in records {
        let id = record.id.0;
        assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0), "job {id}");
        let of_job = runs.get(&id).unwrap_or_else(|| panic!("job {id} succeeded unrun"));
        let accepted = of_job.get(&record.claim.0);
        assert!(accepted.is_some_and(|run| run.ended_us.is_some()), "job {id}: {of_job:?}");
        let starts = u32::try_from(of_job.len()).unwrap();
        assert!(starts <= 1 + record.counters.interruptions, "job {id}: {of_job:?}");
    }
}

#[tokio::test]
async fn processes_that_are_killed_every_second_lose_and_double_nothing() {
    for store in STORES {
        kill_every_second(store).await;
    }
}

async fn kill_every_second(store: MakeSetup) {
    const PROCESSES: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let setup = store(BINARY, folder.path()).with("CONCURRENCY", &16);
    let jobs = setup.open().await;
    let wanted = sized(4_000, 20_000);
    jobs.enqueue_all((0..wanted).map(|n| Work { millis: n % 20 })).await.unwrap();
    let name = |n: usize| format!("worker-{n}");
    let mut processes: Vec<Process> = (0..PROCESSES).map(|n| setup.start(&name(n))).collect();
    for turn in 0.. {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if count(&jobs, State::Succeeded).await == wanted {
            break;
        }
        assert!(turn < 300, "not done after {turn} s");
        let victim = turn % PROCESSES;
        std::mem::replace(&mut processes[victim], setup.start(&name(victim))).kill();
    }
    for process in processes {
        process.signal(Signal::TERM);
        let log = process.log();
        assert!(!log.contains("locked") && !log.contains("busy"), "{log}");
        assert!(process.wait().success());
    }
    assert_each_succeeded_once(&jobs, &setup, usize::try_from(wanted).unwrap()).await;
}

#[tokio::test]
async fn a_killed_and_restarted_process_resumes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // A lease of a minute: only the lock file tells so soon that the first process is dead.
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &60_000);
    let jobs = Jobs::open(&setup.url).await.unwrap();
    let id = jobs.enqueue(Work { millis: 500 }).await.unwrap().id();
    let first = setup.start("same-name");
    let is = async |state| jobs.job(id).await.unwrap().unwrap().state == state;
    until("the job runs", Duration::from_secs(20), async || is(State::Running).await).await;
    first.kill();
    let second = setup.start("same-name");
    until("the job succeeds", Duration::from_secs(10), async || is(State::Succeeded).await).await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.counters.failures, record.counters.crashes), (0, 1));
    second.signal(Signal::TERM);
    assert!(second.wait().success());
}

#[tokio::test]
async fn a_drain_lets_a_running_handler_finish_and_nobody_else_takes_its_job() {
    over_each_store(drain_beside_another).await;
}

async fn drain_beside_another(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(BINARY, folder.path()).with("GRACE_MS", &15_000);
    let jobs = setup.open().await;
    let id = jobs.enqueue(Work { millis: sized(5_000, 8_000) }).await.unwrap().id();
    let first = setup.start("first");
    let is = async |state| jobs.job(id).await.unwrap().unwrap().state == state;
    until("the job runs", Duration::from_secs(20), async || is(State::Running).await).await;
    let second = setup.start("second");
    first.signal(Signal::TERM);
    assert!(ended(first).await.success());
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.claim.0), (State::Succeeded, 1));
    assert_eq!(record.counters, jobs_runtime::Counters::default());
    second.signal(Signal::TERM);
    assert!(second.wait().success());
}
