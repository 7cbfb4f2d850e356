//! Processes on one file whose clocks differ, and step while they work.

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
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path())
        .with("LEASE_MS", &LEASE.as_millis())
        .with("CONCURRENCY", &5);
    let jobs = Jobs::open(&setup.url).await.unwrap();
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
        assert_eq!(undisturbed, (1, Counters::default()), "job {}", record.id);
    }
    assert_each_succeeded_once(&jobs, &setup, usize::try_from(wanted).unwrap()).await;
    for process in [right, fast, slow] {
        process.signal(Signal::TERM);
        assert!(process.wait().success());
    }
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
        still.signal(Signal::STOP);
        let _second = start_with_clock(&setup, "second", 0, 0);
        let record = until_state(&jobs, id, State::Succeeded, Duration::from_secs(12)).await;
        assert_eq!((record.counters.failures, record.counters.crashes), (0, 1));
        still.kill();
    }
}
