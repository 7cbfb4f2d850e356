//! The promises of the spine with real processes over one SQLite file.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Filter, WorkerRecord};
use jobs_runtime::{Clock, Counters, JobRecord, State};
use rustix::process::Signal;
use tests::process::{Process, Setup};
use tests::{Stay, Staying, Work, ledger, sized, until};

const BINARY: &str = env!("CARGO_BIN_EXE_worker-process");

async fn count(jobs: &Jobs, state: State) -> u64 {
    let counts = jobs.inspect().counts().await.expect("the store answers");
    counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum()
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
    const PROCESSES: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("CONCURRENCY", &16);
    let jobs = Jobs::open(&setup.url).await.unwrap();
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
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("GRACE_MS", &15_000);
    let jobs = Jobs::open(&setup.url).await.unwrap();
    let id = jobs.enqueue(Work { millis: sized(5_000, 8_000) }).await.unwrap().id();
    let first = setup.start("first");
    let is = async |state| jobs.job(id).await.unwrap().unwrap().state == state;
    until("the job runs", Duration::from_secs(20), async || is(State::Running).await).await;
    let second = setup.start("second");
    first.signal(Signal::TERM);
    assert!(first.wait().success());
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.claim.0), (State::Succeeded, 1));
    assert_eq!(record.counters, jobs_runtime::Counters::default());
    second.signal(Signal::TERM);
    assert!(second.wait().success());
}

/// Stops a process while a handler of a kind stays, and answers how it ended, after how long, and
/// the job once it is ready again.
async fn stopped(how: Staying, runtime: &str) -> (Option<i32>, Duration, JobRecord) {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path())
        .with("GRACE_MS", &GRACE.as_millis())
        .with("RUNTIME", &runtime);
    let jobs = Jobs::open(&setup.url).await.unwrap();
    let id = jobs.enqueue(Stay { how }).await.unwrap().id();
    let first = setup.start("first");
    let has_started = async || ledger::read(&setup.ledger).contains_key(&id.0);
    until("the handler starts", Duration::from_secs(20), has_started).await;
    let clock = jobs_runtime::SystemClock;
    let asked_at = clock.elapsed();
    first.signal(Signal::TERM);
    let status = tokio::task::spawn_blocking(|| first.wait()).await.unwrap();
    let took = clock.elapsed().checked_sub(asked_at).unwrap();
    // Another worker, of a queue of its own, takes back what the first one could not give back.
    let second = setup.clone().with("QUEUE", &"elsewhere").start("second");
    let is_ready = async || jobs.job(id).await.unwrap().unwrap().state == State::Ready;
    until("the job is ready again", Duration::from_secs(10), is_ready).await;
    let is_open = |worker: &WorkerRecord| worker.name == "second" && worker.ended_at.is_none();
    let works = async || jobs.inspect().workers().await.unwrap().iter().any(is_open);
    until("the second worker works", Duration::from_secs(10), works).await;
    second.signal(Signal::TERM);
    let log = second.log();
    let ended = second.wait();
    assert!(ended.success(), "{ended}: {log}");
    (status.code(), took, jobs.job(id).await.unwrap().unwrap())
}

const GRACE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_handler_that_can_be_ended_is_given_back_before_a_clean_exit() {
    for how in [Staying::Cooperative, Staying::Deaf] {
        let (status, took, record) = stopped(how, "several").await;
        assert_eq!(status, Some(0), "{how:?}");
        assert!(took < GRACE, "{how:?} took {took:?}");
        assert_eq!((record.counters.interruptions, record.counters.crashes), (1, 0), "{how:?}");
    }
}

#[tokio::test]
async fn a_handler_that_can_not_be_ended_holds_no_process_and_is_no_crash() {
    let cases = [
        (Staying::Spinning, "several"),
        (Staying::Spinning, "current-thread"),
        (Staying::Blocking, "several"),
    ];
    for (how, runtime) in cases {
        let (status, took, record) = stopped(how, runtime).await;
        assert_eq!(status, Some(jobs_runtime::EXIT_UNFINISHED), "{how:?} on {runtime}");
        assert!(took < GRACE, "{how:?} on {runtime} took {took:?}");
        let Counters { failures, interruptions, crashes, .. } = record.counters;
        assert_eq!((failures, interruptions, crashes), (0, 1, 0), "{how:?} on {runtime}");
    }
}
