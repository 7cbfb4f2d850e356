//! Claims that are on their way when the worker is told to stop, over a file whose write lock somebody
//! holds: what a slow network is to a server.

use std::fs::{File, TryLockError};

use jobs_runtime::{Clock, Counters, EXIT_UNFINISHED, SystemClock};

use super::*;

const SOON: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(5);

/// For how long the lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Until the worker has heard of the stop.
    PastTheStop,
    /// Until its process is gone.
    PastTheExit,
}

/// Whether somebody waits for the write lock: who does holds a shared lock on this file.
fn is_waited_for(setup: &Setup) -> bool {
    let path = setup.url.strip_prefix("sqlite://").expect("a SQLite file");
    let turn = File::open(format!("{path}-workers/turn")).expect("who waits can be seen");
    matches!(turn.try_lock(), Err(TryLockError::WouldBlock))
}

async fn execute(shell: &mut SqliteConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(shell).await.expect("the file takes it");
}

#[tokio::test]
async fn a_claim_that_waits_for_the_file_at_the_stop_goes_back_unrun_and_counts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Of all that a worker writes by the clock, only a claim is due within this lease's third.
    let setup = Setup::over_sqlite(BINARY, folder.path())
        .with("LEASE_MS", &60_000)
        .with("GRACE_MS", &GRACE.as_millis());
    let jobs = setup.open().await;
    let mut shell = shell(&setup).await;
    let (turns, mut on_the_wire) = (sized(12, 200), 0);
    let mut late = 0;
    let mut ids = Vec::new();
    for turn in 0..turns * 2 {
        if ids.len() == turns {
            break;
        }
        let held = if turn % 10 == 9 { Held::PastTheExit } else { Held::PastTheStop };
        let what = format!("turn {turn}, held {held:?}");
        let process = setup.start(&format!("worker {turn}"));
        until("the worker is idle", SOON, async || process.log().contains("registered")).await;
        // Known to the worker's claims and beyond their reach from the same instant on.
        let id =
            jobs.enqueue(Work { millis: 0 }).delay(Duration::from_hours(1)).await.unwrap().id();
        execute(&mut shell, "BEGIN IMMEDIATE").await;
        let ready = sqlx::query("UPDATE jobs_job SET state = 'ready', due_at_us = 1 WHERE id = ?1");
        ready.bind(id.0).execute(&mut shell).await.unwrap();
        execute(&mut shell, "COMMIT; BEGIN IMMEDIATE").await;
        if jobs.job(id).await.unwrap().unwrap().state != State::Ready {
            // The worker came in between, which is no turn.
            execute(&mut shell, "COMMIT").await;
            process.kill();
            continue;
        }
        until("a claim waits for the file", SOON, async || is_waited_for(&setup)).await;
        let asked_at = SystemClock.elapsed();
        process.signal(Signal::TERM);
        until("it drains", SOON, async || process.log().contains("drain phase=")).await;
        if held == Held::PastTheStop {
            execute(&mut shell, "COMMIT").await;
        }
        let log = process.log_file();
        let status = tokio::task::spawn_blocking(|| process.wait()).await.unwrap();
        let took = SystemClock.elapsed().saturating_sub(asked_at);
        assert!(took < GRACE, "{what}: {took:?}");
        let log = std::fs::read_to_string(log).unwrap();
        match held {
            Held::PastTheStop => assert!(status.success(), "{what}: {log}"),
            Held::PastTheExit => {
                assert_eq!(status.code(), Some(EXIT_UNFINISHED), "{what}: {log}");
                execute(&mut shell, "COMMIT").await;
            }
        }
        let record = jobs.job(id).await.unwrap().unwrap();
        assert_eq!((record.state, record.counters), (State::Ready, Counters::default()), "{what}");
        assert!(jobs.inspect().events(id).await.unwrap().is_empty(), "{what}");
        late += usize::from(held == Held::PastTheStop);
        on_the_wire += usize::from(record.claim.0 > 0);
        jobs.operate().cancel(&[id]).await.unwrap();
        ids.push(id);
    }
    assert_eq!(ids.len(), turns, "too often the worker came first");
    let runs = ledger::read(&setup.ledger);
    assert!(ids.iter().all(|id| !runs.contains_key(&id.0)), "nobody ran any of them");
    println!(
        "{turns} stops, {late} answered after them: {on_the_wire} claims taken and given back"
    );
    assert!(on_the_wire * 3 >= late, "only {on_the_wire} of {late} claims were on their way");
}
