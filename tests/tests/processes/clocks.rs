//! Processes on one store whose clocks differ, and step while they work.

use jobs_runtime::Counters;

use super::*;

const LEASE: Duration = Duration::from_millis(1_500);
const MINUTE_MS: i64 = 60_000;

/// A worker whose clock is ahead, or behind where that is negative.
fn start_with_clock(setup: &Setup, name: &str, ahead_ms: i64, step_ms: i64) -> Process {
    let setup = setup.clone().with("CLOCK_AHEAD_MS", &ahead_ms);
    setup.with("CLOCK_STEP_MS", &step_ms).start(name)
}

#[tokio::test]
async fn clocks_that_differ_or_step_neither_free_nor_freeze_a_lease() {
    over_each_store(differ_and_step).await;
}

async fn differ_and_step(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    // Minutes of work, in which a busy machine must not cost anyone a lease.
    let lease = sized(LEASE, LEASE * 4);
    let setup =
        store(BINARY, folder.path()).with("LEASE_MS", &lease.as_millis()).with("CONCURRENCY", &5);
    let jobs = setup.open().await;
    let wanted = sized(60, 500);
    let millis = |n: u64| sized(300, 2_000) + (n * 97) % sized(600, 4_000);
    let (now, later): (Vec<u64>, Vec<u64>) = (0..wanted).partition(|n| n % 4 > 0);
    jobs.enqueue_all(now.into_iter().map(|n| Work { millis: millis(n) })).await.unwrap();
    let later = later.into_iter().map(|n| Work { millis: millis(n) });
    jobs.enqueue_all(later).delay(Duration::from_secs(2)).await.unwrap();
    let right = start_with_clock(&setup, "right", 0, 60 * MINUTE_MS);
    let fast = start_with_clock(&setup, "fast", 10 * MINUTE_MS, -120 * MINUTE_MS);
    let slow = start_with_clock(&setup, "slow", -10 * MINUTE_MS, 60 * MINUTE_MS);
    for (part, process) in [(5, &right), (3, &fast), (2, &slow)] {
        until("a part is done", Duration::from_secs(200), async || {
            count(&jobs, State::Succeeded).await >= wanted / part
        })
        .await;
        process.signal(Signal::USR1);
    }
    let limit = Duration::from_secs(sized(60, 600));
    until("all is done", limit, async || count(&jobs, State::Succeeded).await == wanted).await;
    for record in all(&jobs).await {
        let undisturbed = (record.claim.0, record.counters);
        let events = jobs.inspect().events(record.id).await.unwrap();
        assert_eq!(undisturbed, (1, Counters::default()), "job {}: {events:?}", record.id);
    }
    assert_each_succeeded_once(&jobs, &setup, usize::try_from(wanted).unwrap()).await;
    for process in [right, fast, slow] {
        process.signal(Signal::TERM);
        assert!(process.wait().success());
    }
}

#[tokio::test]
async fn jobs_fall_due_by_the_servers_clock_whatever_workers_believe() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_postgres(BINARY, folder.path()).with("CONCURRENCY", &20);
    let jobs = setup.open().await;
    let workers = [("fast", 10 * MINUTE_MS), ("slow", -10 * MINUTE_MS)]
        .map(|(name, ahead_ms)| start_with_clock(&setup, name, ahead_ms, 0));
    let work = (0..sized(20, 100)).map(|_| Work { millis: 0 });
    let soon = jobs.enqueue_all(work).delay(Duration::from_secs(2)).await.unwrap();
    // The fast one would take it at once.
    let later = jobs.enqueue(Work { millis: 0 }).delay(Duration::from_mins(5)).await.unwrap().id();
    for id in &soon {
        let record = until_state(&jobs, id.id(), State::Succeeded, Duration::from_secs(20)).await;
        let started_us = ledger::read(&setup.ledger)[&record.id.0][&record.claim.0].started_us;
        let waited_ms = (started_us - record.due_at.as_micros()) / 1_000;
        assert!((0..5_000).contains(&waited_ms), "job {} started {waited_ms} ms late", record.id);
    }
    assert_eq!(jobs.job(later).await.unwrap().unwrap().state, State::Scheduled);
    for process in workers {
        process.signal(Signal::TERM);
        assert!(process.wait().success());
    }
}

#[tokio::test]
async fn over_a_file_due_times_go_with_the_clock_of_the_host_and_leases_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
    let jobs = setup.open().await;
    let works = jobs.enqueue(Work { millis: 4_000 }).await.unwrap().id();
    let due_in = async |hours| {
        let delayed = jobs.enqueue(Work { millis: 0 }).delay(Duration::from_hours(hours));
        delayed.await.unwrap().id()
    };
    let (soon, late) = (due_in(1).await, due_in(3).await);
    let stepping = start_with_clock(&setup, "stepping", 0, 120 * MINUTE_MS);
    until_state(&jobs, works, State::Running, Duration::from_secs(20)).await;
    assert_eq!(jobs.job(soon).await.unwrap().unwrap().state, State::Scheduled);
    stepping.signal(Signal::USR1);
    // It looks at the clock at least every 5 s, however long the next wait was to be.
    let record = until_state(&jobs, soon, State::Succeeded, Duration::from_secs(12)).await;
    assert_eq!((record.claim.0, record.counters), (1, Counters::default()));
    let record = until_state(&jobs, works, State::Succeeded, Duration::from_secs(12)).await;
    assert_eq!((record.claim.0, record.counters), (1, Counters::default()));
    assert_eq!(jobs.job(late).await.unwrap().unwrap().state, State::Scheduled);
    stepping.signal(Signal::TERM);
    assert!(stepping.wait().success());
}

#[tokio::test]
async fn a_lease_ends_by_no_clock_but_the_observers_own_count() {
    // Who stands still is an hour ahead, or behind: what it wrote of its time must not matter.
    for ahead_ms in [60 * MINUTE_MS, -60 * MINUTE_MS] {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
        let jobs = Jobs::open(&setup.url).await.unwrap();
        let id = jobs.enqueue(Work { millis: 1_000 }).await.unwrap().id();
        let still = start_with_clock(&setup, "still", ahead_ms, 0);
        until_state(&jobs, id, State::Running, Duration::from_secs(10)).await;
        still.stand_still(&setup).await;
        let _second = start_with_clock(&setup, "second", 0, 0);
        let record = until_state(&jobs, id, State::Succeeded, Duration::from_secs(12)).await;
        assert_eq!((record.counters.failures, record.counters.crashes), (0, 1));
        still.kill();
    }
}
