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

use jobs_core::store::{
    Author, Claim, Claimed, Head, Inspect, NewWorker, Phase, Settled, Store, Sweep,
};
use jobs_core::{
    Budget, BuildId, ClaimedJob, Due, Ending, Kind, Ladder, Lease, ManualClock, MinReader, NewJob,
    Priority, QueueName, Route, Run, State, Version, WorkerId, WorkerName, transition,
};
use jobs_runtime::store::sqlite::SqliteStore;
use sqlite_scene::{START, options, runtime, shell};

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

fn job() -> NewJob {
    NewJob {
        queue: QueueName::default(),
        kind: Kind::new("mail.send").expect("a kind"),
        version: Version::new(1, 0, 0),
        min_reader: MinReader { major: 1, minor: 0 },
        payload: "{}".to_owned(),
        headers: None,
        priority: Priority::default(),
        due: Due::Unchanged,
        unique_key: None,
        budget: Budget::default(),
        build: None,
    }
}

async fn register(store: &SqliteStore) -> WorkerId {
    let worker = NewWorker {
        name: WorkerName::new("the same for all").expect("a name"),
        build: BuildId::new("shop 1").expect("a build"),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    store.register(&worker).await.expect("a lease")
}

fn author(worker: WorkerId) -> Author {
    Author { worker: Some(worker), build: BuildId::new("shop 1").expect("a build") }
}

async fn claim(store: &SqliteStore, worker: WorkerId, limit: u32) -> Vec<ClaimedJob> {
    let route = Route::new("mail.send", MinReader { major: 1, minor: 0 });
    let heads = [Head { queue: QueueName::default(), route, after: None, limit }];
    match store.claim(Claim { worker, heads: &heads, limit }).await.expect("a claim") {
        Claimed::Jobs(jobs) => jobs,
        Claimed::WorkerEnded => Vec::new(),
    }
}

async fn finish(store: &SqliteStore, worker: WorkerId, jobs: &[ClaimedJob]) -> usize {
    let done = |job| transition(&Run::from(job), &Ending::Done, &Ladder::default(), 0);
    let settlements: Vec<_> = jobs.iter().map(done).collect();
    let settled = store.settle(&author(worker), &settlements).await.expect("an answer");
    settled.iter().filter(|settled| **settled == Settled::Applied(State::Succeeded)).count()
}

fn sweep(by: WorkerId) -> Sweep {
    Sweep { by: author(by), grace: HOUR, limit: 1000, draw: 1 }
}

/// Claims a job and never comes back.
async fn hold(store: &SqliteStore) {
    let worker = register(store).await;
    let claimed = claim(store, worker, 1).await;
    println!("holds {}", claimed.len());
    std::future::pending::<()>().await;
}

/// Starts as a worker does, with all of it at once, and writes down what it ran.
async fn start(store: &SqliteStore) {
    let worker = register(store).await;
    let sweep = sweep(worker);
    let work = async {
        store.enqueue(&[job()]).await.expect("an enqueue");
        let jobs = claim(store, worker, 10).await;
        let mut tx = store.begin().await.expect("a transaction");
        for job in &jobs {
            let ran = sqlx::query("INSERT INTO ran (job) VALUES (?1)").bind(job.fence.job.0);
            ran.execute(&mut *tx).await.expect("a row");
        }
        tx.commit().await.expect("a commit");
        assert_eq!(finish(store, worker, &jobs).await, jobs.len(), "a run keeps its claim");
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
            store.enqueue(&vec![job(); BATCH]).await.expect("an enqueue");
            let jobs = claim(store, worker, 10).await;
            finish(store, worker, &jobs).await;
        }
    };
    let transactions = async {
        for _ in 0..ROUNDS {
            let mut tx = store.begin().await.expect("a transaction");
            store.enqueue_in(&mut tx, &[job()]).await.expect("an enqueue");
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
        let ids = store.enqueue(&[job(), job()]).await.expect("an enqueue");
        let mut children = [child("hold", &database), child("hold", &database)];
        let mut outputs: Vec<_> = children.iter_mut().map(output).collect();
        assert!(outputs.iter_mut().all(|output| says(output, "holds 1")));

        let swept = store.sweep(&sweep(here)).await.expect("a sweep");
        assert_eq!((swept.workers, swept.jobs), (vec![], vec![]), "all of them live");

        for child in &mut children {
            child.kill().expect("a child to kill");
            child.wait().expect("its end");
        }
        let swept = store.sweep(&sweep(here)).await.expect("a sweep");
        assert_eq!(swept.workers.len(), 2);
        let jobs: BTreeSet<_> = swept.jobs.iter().map(|(id, state)| (*id, *state)).collect();
        assert_eq!(jobs, ids.iter().map(|id| (id.id(), State::Ready)).collect());
        let left = std::fs::read_dir(folder.path().join("jobs.db-workers")).expect("a folder");
        assert_eq!(left.count(), 2, "its own lock file and the file of turns");
        assert_eq!(claim(&store, here, 10).await.len(), 2);
    });
}

#[test]
fn a_killed_worker_whose_row_is_gone_is_taken_back_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = sqlite_scene::path(&folder);
    runtime().block_on(async {
        let store = open(&database, 1).await;
        store.enqueue(&[job()]).await.expect("an enqueue");
        let mut killed = child("hold", &database);
        let mut output = output(&mut killed);
        assert!(says(&mut output, "holds 1"));
        killed.kill().expect("a child to kill");
        killed.wait().expect("its end");
        let mut shell = shell(Path::new(&database)).await;
        sqlx::query("DELETE FROM jobs_worker").execute(&mut shell).await.expect("a retention");

        let here = register(&store).await;
        let swept = store.sweep(&sweep(here)).await.expect("a sweep");
        assert_eq!(swept.jobs.len(), 1);
        assert_eq!(claim(&store, here, 10).await.len(), 1);
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
            store.enqueue(&[job()]).await.expect("an enqueue");
            let mut shell = shell(Path::new(&database)).await;
            let check = sqlx::query_scalar("PRAGMA integrity_check");
            let found: String = check.fetch_one(&mut shell).await.expect("a check");
            assert_eq!(found, "ok");
        });
    }
}
