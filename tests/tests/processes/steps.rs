//! Jobs of many steps whose processes are killed and told to stop.

use std::collections::BTreeMap;
use std::path::Path;

use jobs_runtime::{Random, SeededRandom, below};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tests::schema::server_url;
use tests::steps::{Fate, Instant, Walk, WriteRows};

use super::*;

const STEPS_BINARY: &str = env!("CARGO_BIN_EXE_steps-process");
const SOON: Duration = Duration::from_mins(1);

/// One line of the ledger: what was told of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    is_committed: bool,
    job: i64,
    claim: i64,
    step: i64,
}

fn told(path: &Path) -> Vec<Told> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let [what, job, claim, step] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a torn line: {line:?}")
        };
        let number = |text: &str| text.parse().expect("a number");
        let is_committed = what == "committed";
        Told { is_committed, job: number(job), claim: number(claim), step: number(step) }
    };
    text.lines().map(line).collect()
}

/// The tables of the application, in the same database as the jobs.
struct Tables<'a>(&'a Setup);

impl Tables<'_> {
    /// Runs statements over both kinds of database; answers pairs of numbers.
    async fn run(&self, sql: &str) -> Vec<(i64, i64)> {
        match &self.0.schema {
            None => {
                let sql = AssertSqlSafe(sql.replace("{}", ""));
                sqlx::query_as(sql).fetch_all(&mut shell(self.0).await).await.expect("rows")
            }
            Some(schema) => {
                let sql = AssertSqlSafe(sql.replace("{}", &format!("{}.", schema.name())));
                let mut shell = PgConnection::connect(&server_url()).await.expect("a server");
                sqlx::query_as(sql).fetch_all(&mut shell).await.expect("rows")
            }
        }
    }

    async fn make(&self) {
        self.run("CREATE TABLE {}step (job BIGINT NOT NULL, step BIGINT NOT NULL)").await;
        self.run("CREATE TABLE {}finish (job BIGINT NOT NULL)").await;
    }
}

/// How a process ends: by itself at an instant of a step, which begins with its second so that each
/// gets on.
fn some_fate(random: &SeededRandom) -> Fate {
    let step = 2 + u32::try_from(below(random.draw(), 5)).expect("a small number");
    let at = match below(random.draw(), 10) {
        0..2 => Instant::Written,
        2..4 => Instant::Saved,
        4..8 => Instant::Committing(below(random.draw(), 3_000)),
        _ => Instant::Committed,
    };
    Fate { step, at }
}

fn seed() -> u64 {
    let given = std::env::var("JOBS_SEED").ok();
    given.map_or(6, |text| text.parse().expect("JOBS_SEED is a number"))
}

#[tokio::test]
async fn rows_written_with_checkpoints_are_exact_however_often_their_process_is_killed() {
    for store in STORES {
        kill_in_the_middle(store).await;
    }
}

async fn kill_in_the_middle(store: MakeSetup) {
    const STEPS: u32 = 12;
    let folder = tempfile::tempdir().unwrap();
    let setup = store(STEPS_BINARY, folder.path());
    let jobs = setup.open().await;
    let tables = Tables(&setup);
    tables.make().await;
    let (random, kills) = (SeededRandom::new(seed()), sized(15, 500));
    println!("again: JOBS_SEED={} (and JOBS_TEST_SIZE=full for all kills)", seed());
    let mut between = 0;
    for kill in 0..kills {
        // Enough to do for each process: what was killed comes back with the end of its lease.
        if kill % 2 == 0 {
            jobs.enqueue(WriteRows { steps: STEPS }).await.unwrap();
        } else {
            jobs.enqueue(Walk { steps: STEPS, millis: 1 }).await.unwrap();
        }
        let before = told(&setup.ledger).len();
        let fate = some_fate(&random);
        let mut process = setup.clone().with("FATE", &fate).start("mortal");
        until(&format!("kill {kill}, {fate}"), SOON, async || !process.is_running()).await;
        let log = process.log();
        assert!(process.wait().code().is_none(), "it ended by itself: {log}");
        let lines = told(&setup.ledger).split_off(before);
        between += usize::from(lines.last().is_some_and(|last| !last.is_committed));
    }
    println!("{between} of {kills} kills between the first write and the answer of the commit");
    assert!(between * 10 >= kills, "only {between} of {kills} kills were in between");
    let last = setup.clone().with("CONCURRENCY", &8).start("immortal");
    let is_done = async || {
        let waiting = [State::Ready, State::Running, State::Scheduled, State::Dead];
        let mut left = 0;
        for state in waiting {
            left += count(&jobs, state).await;
        }
        left == 0
    };
    until("all jobs have succeeded", SOON, is_done).await;
    last.signal(Signal::TERM);
    assert!(last.wait().success());
    assert_exact(&jobs, &setup).await;
}

/// Each row is there once, each success once; and of what is in no transaction at most one step was
/// taken again for each kill.
async fn assert_exact(jobs: &Jobs, setup: &Setup) {
    let tables = Tables(setup);
    let rows = tables.run("SELECT job, step FROM {}step ORDER BY job, step").await;
    let finished = tables.run("SELECT job, job FROM {}finish ORDER BY job").await;
    let (mut wanted_rows, mut wanted_ends) = (Vec::new(), Vec::new());
    let mut taken: BTreeMap<i64, BTreeMap<i64, u32>> = BTreeMap::new();
    for line in told(&setup.ledger).iter().filter(|line| !line.is_committed) {
        *taken.entry(line.job).or_default().entry(line.step).or_default() += 1;
    }
    for record in all(jobs).await {
        let (id, counters) = (record.id.0, record.counters);
        assert_eq!((record.state, counters.failures), (State::Succeeded, 0), "job {id}");
        if record.kind == "test.rows" {
            wanted_rows.extend((1..=12).map(|step| (id, step)));
            wanted_ends.push((id, id));
        } else {
            let steps = &taken[&id];
            assert!(steps.keys().copied().eq(1..=12), "job {id}: {steps:?}");
            let again: u32 = steps.values().map(|times| times - 1).sum();
            let runs = told(&setup.ledger)
                .iter()
                .filter(|line| line.job == id)
                .map(|line| line.claim)
                .collect::<std::collections::BTreeSet<_>>();
            assert!(again < u32::try_from(runs.len()).unwrap(), "job {id}: {steps:?}");
        }
    }
    assert_eq!(rows, wanted_rows);
    assert_eq!(finished, wanted_ends);
}

#[tokio::test]
async fn a_job_of_many_steps_survives_stop_after_stop_and_repeats_one_step_each_at_most() {
    over_each_store(stop_after_stop).await;
}

async fn stop_after_stop(store: MakeSetup) {
    let (steps, every) = (sized(30, 100), sized(Duration::from_secs(1), Duration::from_secs(2)));
    let folder = tempfile::tempdir().unwrap();
    // Asked to return after 0.8 s, aborted 0.12 s later: in the middle of a step of the full size.
    let setup = store(STEPS_BINARY, folder.path()).with("GRACE_MS", &1_000);
    let jobs = setup.open().await;
    let walk = Walk { steps, millis: sized(130, 600) };
    let id = jobs.enqueue(walk).await.unwrap().id();
    let (mut stops, mut stopped) = (0, Vec::new());
    let mut process = setup.start("worker-0");
    while !jobs.job(id).await.unwrap().unwrap().state.is_finished() {
        // One that has registered hears a signal.
        let name = format!("worker-{stops}");
        let has_registered = async || {
            jobs.inspect().workers().await.unwrap().iter().any(|worker| worker.name == name)
        };
        until("the process works", SOON, has_registered).await;
        tokio::time::sleep(every).await;
        stops += 1;
        assert!(stops < 300, "not done after {stops} stops");
        process.signal(Signal::TERM);
        let next = setup.start(&format!("worker-{stops}"));
        stopped.push(std::mem::replace(&mut process, next));
    }
    // It may not hear a signal yet.
    process.kill();
    for process in stopped {
        let log = process.log();
        // A machine with too much else to do may cut the drain off.
        let status = ended(process).await.code();
        assert!([Some(0), Some(jobs_runtime::EXIT_UNFINISHED)].contains(&status), "{log}");
    }
    let record = jobs.job(id).await.unwrap().unwrap();
    let counters = record.counters;
    assert_eq!(record.state, State::Succeeded);
    assert_eq!((counters.failures, counters.crashes), (0, 0));
    let mut times = BTreeMap::new();
    for line in told(&setup.ledger).iter().filter(|line| !line.is_committed) {
        *times.entry(line.step).or_insert(0) += 1;
    }
    assert!(times.keys().copied().eq(1..=i64::from(steps)), "{times:?}");
    let again: usize = times.values().map(|times| times - 1).sum();
    println!("{stops} stops, {again} steps taken again, {} runs", record.claim);
    assert!(again <= stops, "{again} steps were taken again over {stops} stops: {times:?}");
}
