//! The SQLite store between real processes, some of which are killed.
//!
//! A child is this test binary again, told by the environment which part to play. All clocks stand
//! still, so nothing here can rest on one.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Inspect, Phase, Settled, Store, Sweep};
use jobs_core::{ManualClock, State, WorkerId};
use jobs_runtime::store::sqlite::SqliteStore;
use sqlite_scene::{START, claim, finish, job, options, register, runtime, shell, sweep};

const PART: &str = "JOBS_SQLITE_PART";
const DATABASE: &str = "JOBS_SQLITE_DATABASE";
/// Longer than any lease that has stood still could be old.
const HOUR: Duration = Duration::from_hours(1);

/// What a child does.
#[test]
fn part() {
    let Ok(part) = std::env::var(PART) else { return };
    let database = std::env::var(DATABASE).expect("a child is told its database");
    let seed = u64::from(std::process::id());
    runtime().block_on(async {
        match part.as_str() {
            "open" => drop(open(&database, seed).await),
            "hold" => hold(&open(&database, seed).await).await,
            "start" => start(&open(&database, seed).await).await,
            "hammer" => hammer(&open(&database, seed).await).await,
            part => panic!("no part is called {part:?}"),
        }
    });
    println!("ended well");
}

fn child(part: &str, database: &str) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["part", "--exact", "--nocapture"])
        .envs([(PART, part), (DATABASE, database)])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a child")
}

fn says(output: &mut BufReader<ChildStdout>, wanted: &str) -> bool {
    output.lines().map_while(Result::ok).any(|line| line.contains(wanted))
}

/// Waits for the end of a child that plays its part to the end.
fn ends_well(child: Child) -> bool {
    let output = child.wait_with_output().expect("its end");
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains("ended well")
}

fn output(child: &mut Child) -> BufReader<ChildStdout> {
    BufReader::new(child.stdout.take().expect("a piped output"))
}

/// How often something is repeated: as the environment says, or so often that it is soon over.
fn times(name: &str, few: usize) -> usize {
    std::env::var(name).map_or(few, |text| text.parse().expect("a number"))
}

async fn open(database: &str, seed: u64) -> SqliteStore {
    let clock = Arc::new(ManualClock::new(START));
    SqliteStore::open(database, options(&clock, seed)).await.expect("a store")
}

/// A sweep that leaves every lease alone that may only be late.
fn sweep_dead(by: WorkerId) -> Sweep {
    Sweep { grace: HOUR, ..sweep(by) }
}

/// Claims a job and never comes back.
async fn hold(store: &SqliteStore) {
    let worker = register(store).await;
    let claimed = claim(store, worker).await;
    println!("holds {}", claimed.len());
    std::future::pending::<()>().await;
}

/// Starts as a worker does, with all of it at once, and writes down what it ran.
async fn start(store: &SqliteStore) {
    let worker = register(store).await;
    let sweep = sweep_dead(worker);
    let work = async {
        store.enqueue(&[job("{}")]).await.expect("an enqueue");
        let jobs = claim(store, worker).await;
        let mut tx = store.begin().await.expect("a transaction");
        for job in &jobs {
            let ran = sqlx::query("INSERT INTO ran (job) VALUES (?1)").bind(job.fence.job.0);
            ran.execute(&mut *tx).await.expect("a row");
        }
        tx.commit().await.expect("a commit");
        let settled = finish(store, worker, &jobs).await;
        assert!(
            settled.iter().all(|settled| *settled != Settled::LeaseLost),
            "a run keeps its claim"
        );
    };
    let ((), swept) = tokio::join!(work, store.sweep(&sweep));
    assert_eq!(swept.expect("a sweep").jobs, [], "a sweep at the start takes nothing that runs");
}

const ROUNDS: usize = 50;
const BATCH: usize = 4;

/// Writes as fast as it can in every way there is.
async fn hammer(store: &SqliteStore) {
    let worker = register(store).await;
    let mut heartbeat = store.heartbeat().await.expect("a heartbeat");
    let work = async {
        for _ in 0..ROUNDS {
            store.enqueue(&vec![job("{}"); BATCH]).await.expect("an enqueue");
            let jobs = claim(store, worker).await;
            finish(store, worker, &jobs).await;
        }
    };
    let transactions = async {
        for _ in 0..ROUNDS {
            let mut tx = store.begin().await.expect("a transaction");
            store.enqueue_in(&mut tx, &[job("{}")]).await.expect("an enqueue");
            tx.commit().await.expect("a commit");
        }
    };
    let renewals = async {
        for _ in 0..ROUNDS {
            heartbeat
                .renew(worker, Phase::Working, Duration::from_secs(5))
                .await
                .expect("a renewal");
        }
    };
    tokio::join!(work, transactions, renewals);
}

#[test]
fn a_killed_worker_is_taken_back_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = sqlite_scene::path(&folder);
    runtime().block_on(async {
        let store = open(&database, 1).await;
        let here = register(&store).await;
        let (mut ids, mut children, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..2 {
            ids.extend(store.enqueue(&[job("{}")]).await.expect("an enqueue"));
            let mut holder = child("hold", &database);
            let mut said = output(&mut holder);
            assert!(says(&mut said, "holds 1"));
            children.push(holder);
            outputs.push(said);
        }

        let swept = store.sweep(&sweep_dead(here)).await.expect("a sweep");
        assert_eq!((swept.workers, swept.jobs), (vec![], vec![]), "all of them live");

        for child in &mut children {
            child.kill().expect("a child to kill");
            child.wait().expect("its end");
        }
        let swept = store.sweep(&sweep_dead(here)).await.expect("a sweep");
        assert_eq!(swept.workers.len(), 2);
        let jobs: BTreeSet<_> = swept.jobs.iter().map(|(id, state)| (*id, *state)).collect();
        assert_eq!(jobs, ids.iter().map(|id| (id.id(), State::Ready)).collect());
        let left = std::fs::read_dir(folder.path().join("jobs.db-workers")).expect("a folder");
        assert_eq!(left.count(), 4, "its own lock file, and three that say whose turn it is");
        assert_eq!(claim(&store, here).await.len(), 2);
    });
}

#[test]
fn a_killed_worker_whose_row_is_gone_is_taken_back_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = sqlite_scene::path(&folder);
    runtime().block_on(async {
        let store = open(&database, 1).await;
        store.enqueue(&[job("{}")]).await.expect("an enqueue");
        let mut killed = child("hold", &database);
        let mut output = output(&mut killed);
        assert!(says(&mut output, "holds 1"));
        killed.kill().expect("a child to kill");
        killed.wait().expect("its end");
        let mut shell = shell(Path::new(&database)).await;
        sqlx::query("DELETE FROM jobs_worker").execute(&mut shell).await.expect("a retention");

        let here = register(&store).await;
        let swept = store.sweep(&sweep_dead(here)).await.expect("a sweep");
        assert_eq!(swept.jobs.len(), 1);
        assert_eq!(claim(&store, here).await.len(), 1);
    });
}

#[test]
fn every_start_runs_its_job_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = sqlite_scene::path(&folder);
    let starts = times("JOBS_STARTS", 24);
    runtime().block_on(async {
        let _store = open(&database, 1).await;
        let mut shell = shell(Path::new(&database)).await;
        let create = sqlx::query("CREATE TABLE ran (job INTEGER PRIMARY KEY)");
        create.execute(&mut shell).await.expect("a table of the user");
        // Two at a time, so that one starts while another runs.
        for _ in 0..starts / 2 {
            let children = [child("start", &database), child("start", &database)];
            assert!(children.into_iter().all(ends_well));
        }
        let count = sqlx::query_scalar("SELECT count(*) FROM ran");
        let ran: i64 = count.fetch_one(&mut shell).await.expect("a count");
        assert_eq!(ran, i64::try_from(starts / 2 * 2).expect("a small number"));
    });
}

#[test]
fn four_processes_that_write_without_pause_never_see_busy() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = sqlite_scene::path(&folder);
    let children: Vec<_> = (0..4).map(|_| child("hammer", &database)).collect();
    assert!(children.into_iter().all(ends_well));
    runtime().block_on(async {
        let store = open(&database, 1).await;
        let counts = store.counts().await.expect("counts");
        let total: u64 = counts.iter().map(|count| count.jobs).sum();
        assert_eq!(total, u64::try_from(4 * ROUNDS * (BATCH + 1)).expect("a small number"));
    });
}

#[test]
fn sixteen_processes_migrate_an_empty_file_at_once() {
    for _ in 0..times("JOBS_MIGRATIONS", 3) {
        let folder = tempfile::tempdir().expect("a folder");
        let database = sqlite_scene::path(&folder);
        let mut children: Vec<_> = (0..16).map(|_| child("open", &database)).collect();
        // Wherever it is by now.
        let mut killed = children.remove(0);
        killed.kill().expect("a child to kill");
        killed.wait().expect("its end");
        assert!(children.into_iter().all(ends_well));
        runtime().block_on(async {
            let store = open(&database, 1).await;
            store.enqueue(&[job("{}")]).await.expect("an enqueue");
            let mut shell = shell(Path::new(&database)).await;
            let check = sqlx::query_scalar("PRAGMA integrity_check");
            let found: String = check.fetch_one(&mut shell).await.expect("a check");
            assert_eq!(found, "ok");
        });
    }
}
