//! Deploy after deploy under load: orderly stops, kills, and processes that stand still.

use jobs_runtime::{Clock, Counters, EXIT_UNFINISHED, SystemClock};

use super::*;

const LEASE: Duration = Duration::from_millis(1_500);
const PROCESSES: usize = 4;

#[tokio::test]
async fn rolling_restarts_lose_and_double_nothing() {
    over_each_store(roll).await;
}

/// Ends a process, turn by turn: every second one by a kill. Answers whether an orderly stop was cut off,
/// as it may be by a machine that has too much else to do.
async fn end(process: Process, turn: usize) -> bool {
    if turn % 2 == 1 {
        process.kill();
        return false;
    }
    if turn % 8 == 6 {
        process.signal(Signal::STOP);
        tokio::time::sleep(LEASE * 2).await;
        process.signal(Signal::CONT);
    }
    process.signal(Signal::TERM);
    let log = process.log_file();
    let ended = tokio::task::spawn_blocking(|| process.wait()).await.unwrap();
    let log = || std::fs::read_to_string(log).unwrap_or_default();
    assert!([Some(0), Some(EXIT_UNFINISHED)].contains(&ended.code()), "{turn}: {ended}: {}", log());
    !ended.success()
}

async fn roll(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let begun = SystemClock.elapsed();
    let passed = || SystemClock.elapsed().saturating_sub(begun);
    // So few at once that there is something to do until the last restart, and so long a grace period
    // that a process outlives its longest job: what is killed five times in a row, the last time alone
    // with its worker, is dead by the rule for crashers, and nobody can tell that it is none.
    let setup = store(BINARY, folder.path())
        .with("LEASE_MS", &LEASE.as_millis())
        .with("GRACE_MS", &sized(2_000, 5_000))
        .with("CONCURRENCY", &sized(2, 10));
    let jobs = setup.open().await;
    let (wanted, longest) = (sized(80, 5_000), sized(2_000, 5_000));
    let millis = |n: u64| 50 + n * 7_919 % (longest - 50);
    jobs.enqueue_all((0..wanted).map(|n| Work { millis: millis(n) })).await.unwrap();
    // Up: a process that is asked to stop before it listens just dies.
    let start = async |turn: usize| {
        let name = format!("worker {turn}");
        let build = format!("build {}", turn / PROCESSES);
        let process = setup.clone().with("BUILD", &build).start(&name);
        until("the worker is up", Duration::from_secs(20), async || {
            let workers = jobs.inspect().workers().await.expect("the store answers");
            workers.iter().any(|worker| worker.name == name)
        })
        .await;
        process
    };
    let mut processes = Vec::new();
    for turn in 0..PROCESSES {
        processes.push(start(turn).await);
    }
    let (restarts, mut cut_off) = (sized(8, 100), 0);
    for turn in 0..restarts {
        let victim = turn % PROCESSES;
        // The new one is up before the old one goes, as in a rolling deploy.
        let new = start(turn + PROCESSES).await;
        let old = std::mem::replace(&mut processes[victim], new);
        cut_off += usize::from(end(old, turn).await);
        tokio::time::sleep(Duration::from_millis(sized(200, 500))).await;
    }
    let left = wanted - count(&jobs, State::Succeeded).await;
    println!("{restarts} restarts, {cut_off} of them cut off, in {:?}: {left} jobs left", passed());
    assert!(left > 0, "the restarts outlasted the load");
    until_done(&jobs, wanted, Duration::from_secs(sized(60, 600))).await;
    println!("all were done after {:?}", passed());
    assert_each_succeeded_once(&jobs, &setup, usize::try_from(wanted).unwrap()).await;
    for process in &processes {
        process.signal(Signal::TERM);
    }
    for process in processes {
        assert!(process.wait().success());
    }
    tell(&jobs, restarts).await;
}

/// Waits until every job has succeeded; says what has not.
async fn until_done(jobs: &Jobs, wanted: u64, limit: Duration) {
    let all_succeed = async || count(jobs, State::Succeeded).await == wanted;
    let done = until("every job has succeeded", Duration::MAX, all_succeed);
    if tokio::time::timeout(limit, done).await.is_err() {
        for record in all(jobs).await.iter().filter(|record| record.state != State::Succeeded) {
            println!("{record:?}");
        }
        println!("{:?}", jobs.inspect().workers().await.expect("the store answers"));
        panic!("not within {limit:?}: every job has succeeded");
    }
}

/// Prints what a reader of the run wants to know.
async fn tell(jobs: &Jobs, restarts: usize) {
    let (mut interruptions, mut crashes) = (0, 0);
    for record in all(jobs).await {
        let Counters { interruptions: i, crashes: c, .. } = record.counters;
        interruptions += i;
        crashes = crashes.max(c);
    }
    println!("{restarts} restarts: {interruptions} interruptions, at most {crashes} crashes a job");
    let mut by_crashes = std::collections::BTreeMap::new();
    for record in all(jobs).await {
        *by_crashes.entry(record.counters.crashes).or_insert(0) += 1;
    }
    println!("jobs by crashes in a row: {by_crashes:?}");
    for deploy in jobs.inspect().deploys().await.expect("the store answers") {
        println!("{deploy:?}, share by expiry {:?}", deploy.share_by_expiry());
    }
}
