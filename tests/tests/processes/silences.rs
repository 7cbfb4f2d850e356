//! Workers that can't speak for a while: their handlers spin, others hold the file, they are stopped.

use jobs_runtime::{Clock, Counters, SystemClock};
use tests::{Late, Spin};
use tokio::time::sleep;

use super::*;

const LEASE: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(15);

async fn running(jobs: &Jobs, ids: &[JobId]) {
    for id in ids {
        until_state(jobs, *id, State::Running, SOON).await;
    }
}

#[tokio::test]
async fn handlers_that_spin_are_named_and_never_start_twice() {
    for (threads, spinning) in [(2, 2), (0, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let lease = sized(LEASE, LEASE * 2);
        let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &lease.as_millis());
        let jobs = Jobs::open(&setup.url).await.unwrap();
        let spin = || Spin { millis: sized(4_000, 30_000) };
        let added = jobs.enqueue_all((0..spinning).map(|_| spin())).await.unwrap();
        let ids: Vec<JobId> = added.iter().map(|added| added.id()).collect();
        let busy = setup.clone().with("THREADS", &threads).start("busy");
        running(&jobs, &ids).await;
        let watching = setup.start("watching");
        for id in &ids {
            let record = until_state(&jobs, *id, State::Succeeded, sized(SOON, SOON * 3)).await;
            assert_eq!((record.claim.0, record.counters), (1, Counters::default()));
            let named = |line: &str| {
                line.contains("blocks its thread")
                    && line.contains(&format!("job={id} "))
                    && line.contains("kind=test.spin")
            };
            let log = busy.log();
            assert!(log.lines().any(named), "job {id} is not named: {log}");
        }
        assert_each_succeeded_once(&jobs, &setup, ids.len()).await;
        drop(watching);
    }
}

/// Holds the write lock of the file for a while, from this process.
async fn hold(shell: &mut SqliteConnection, span: Duration) {
    sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut *shell).await.unwrap();
    sleep(span).await;
    sqlx::raw_sql("COMMIT").execute(shell).await.unwrap();
}

/// Waits for every worker's next renewal.
async fn renewed(shell: &mut SqliteConnection) {
    let renewals = "SELECT sum(renewals) FROM jobs_worker";
    let shell = tokio::sync::Mutex::new(shell);
    let count = async || -> i64 {
        sqlx::query_scalar(renewals).fetch_one(&mut **shell.lock().await).await.unwrap()
    };
    let before = count().await;
    until("a renewal", SOON, async || count().await > before).await;
}

#[tokio::test]
async fn a_file_that_others_hold_for_a_while_fails_no_handler() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
    let jobs = Jobs::open(&setup.url).await.unwrap();
    let added = jobs.enqueue_all((0..5).map(|_| Work { millis: 7_000 })).await.unwrap();
    let ids: Vec<JobId> = added.iter().map(|added| added.id()).collect();
    let first = setup.start("first");
    running(&jobs, &ids).await;
    let mut shell = shell(&setup).await;
    for _ in 0..2 {
        renewed(&mut shell).await;
        hold(&mut shell, LEASE * 6 / 10).await;
    }
    let second = setup.start("second");
    let undisturbed = |record: &JobRecord| {
        record.claim.0 == 1 && record.counters == Counters::default() && !record.state.is_waiting()
    };
    renewed(&mut shell).await;
    assert!(all(&jobs).await.iter().all(undisturbed), "{:?}", all(&jobs).await);
    hold(&mut shell, LEASE * 2).await;
    for id in &ids {
        let record = until_state(&jobs, *id, State::Succeeded, SOON * 2).await;
        assert_eq!((record.counters.failures, record.counters.crashes), (0, 0));
    }
    assert_each_succeeded_once(&jobs, &setup, ids.len()).await;
    for process in [first, second] {
        process.signal(Signal::TERM);
        assert!(process.wait().success());
    }
}

#[tokio::test]
async fn a_process_that_stood_still_for_two_leases_writes_nothing_stale() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
    let jobs = Jobs::open(&setup.url).await.unwrap();
    let added = jobs.enqueue_all((0..5).map(|_| Work { millis: 3_500 })).await.unwrap();
    let ids: Vec<JobId> = added.iter().map(|added| added.id()).collect();
    let stopped = setup.start("stopped");
    running(&jobs, &ids).await;
    let second = setup.start("second");
    let still_since = SystemClock.elapsed();
    stopped.stand_still(&setup).await;
    // Goes on while the others run its jobs: its own handlers then end first.
    until("two leases have passed, and the jobs run elsewhere", SOON, async || {
        let taken = |record: &JobRecord| record.state == State::Running && record.claim.0 > 1;
        SystemClock.elapsed() >= still_since + LEASE * 2 && all(&jobs).await.iter().all(taken)
    })
    .await;
    stopped.signal(Signal::CONT);
    for id in &ids {
        let record = until_state(&jobs, *id, State::Succeeded, SOON).await;
        assert_eq!((record.counters.failures, record.counters.crashes), (0, 1));
        let run = ledger::read(&setup.ledger)[&id.0][&record.claim.0];
        let (ended, finished) = (run.ended_us.unwrap(), record.finished_at.unwrap().as_micros());
        assert!(ended <= finished, "job {id} was settled at {finished}, before its run had ended");
    }
    assert_each_succeeded_once(&jobs, &setup, ids.len()).await;
    // It has registered anew and works on.
    second.signal(Signal::TERM);
    assert!(second.wait().success());
    let next = jobs.enqueue(Work { millis: 0 }).await.unwrap().id();
    until_state(&jobs, next, State::Succeeded, SOON).await;
    stopped.signal(Signal::TERM);
    assert!(stopped.wait().success());
}

#[tokio::test]
async fn what_a_process_writes_after_three_leases_of_silence_is_refused() {
    over_each_store(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let setup = store(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
        let jobs = setup.open().await;
        let added =
            jobs.enqueue_all([true, false].map(|finishes| Late { finishes })).await.unwrap();
        let ids: Vec<JobId> = added.iter().map(|added| added.id()).collect();
        let stopped = setup.start("stopped");
        until("the handlers have started", SOON, async || {
            ledger::read(&setup.ledger).len() == ids.len()
        })
        .await;
        let second = setup.start("second");
        let still_since = SystemClock.elapsed();
        stopped.stand_still(&setup).await;
        for id in &ids {
            until_state(&jobs, *id, State::Succeeded, SOON).await;
        }
        until("three leases have passed", SOON, async || {
            SystemClock.elapsed() >= still_since + LEASE * 3
        })
        .await;
        stopped.signal(Signal::CONT);
        until("both late writes are answered", SOON, async || {
            stopped.log().matches("a late write was answered").count() == ids.len()
        })
        .await;
        let log = stopped.log();
        assert_eq!(log.matches("lost=true").count(), ids.len(), "{log}");
        // The settlement of what it gave up came too late as well.
        until("the outcomes are dropped", SOON, async || {
            stopped.log().matches("its outcome is dropped").count() == ids.len()
        })
        .await;
        for id in &ids {
            let record = jobs.job(*id).await.unwrap().unwrap();
            assert_eq!(record.state, State::Succeeded, "the successor's result stands");
            let checkpoint = record.checkpoint.expect("the successor saved one");
            assert_eq!(checkpoint.text, format!("{{\"claim\":{}}}", record.claim.0));
        }
        // It has registered anew, and claims again.
        second.signal(Signal::TERM);
        assert!(second.wait().success());
        let next = jobs.enqueue(Work { millis: 0 }).await.unwrap().id();
        until_state(&jobs, next, State::Succeeded, LEASE).await;
        stopped.kill();
    })
    .await;
}
