//! Fills a real disk under workers and producers, keeps it full for longer than a lease, and makes room
//! again: first with a SQLite file on it, then with a tablespace of PostgreSQL.
//!
//! 1. Whoever stores hears that the disk is full, and what was acknowledged is there afterwards, once.
//! 2. Workers wait, say each thing once, and go on without a restart when there is room.
//! 3. No job fails, and what had ended meanwhile is settled late and not run again.
//! 4. Processes that are killed on the full disk leave a file that their successors go on with.
//!
//! Its argument is a folder that is a small, empty file system; `scripts/full-disk` makes one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{ErrorKind as IoErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{
    Clock, Counters, ErrorKind, JobId, JobRecord, State, StoreErrorKind, SystemClock, chain,
};
use rustix::process::Signal;
use tests::cluster::Cluster;
use tests::process::{Process, Setup};
use tests::{Work, ledger, until};

const LEASE: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_mins(1);
/// How many jobs the workers have to run.
const JOBS: u64 = 400;
/// Each kind of trouble is told once a minute: claiming, settling, renewing, registering, and upkeep.
const MOST_LINES: usize = 8;

/// A disk that something else fills too.
struct Disk(PathBuf);

impl Disk {
    /// Takes all the room that is left, to the last byte.
    fn fill(&self) {
        let file = OpenOptions::new().create(true).append(true).open(self.filler());
        let mut file = file.expect("the filler can be opened");
        for size in [1 << 20, 4096, 1] {
            let bytes = vec![0; size];
            let refused = loop {
                if let Err(error) = file.write_all(&bytes) {
                    break error;
                }
            };
            assert_eq!(refused.kind(), IoErrorKind::StorageFull, "{refused}");
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("the filler can be removed");
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

/// Stores a few jobs at a time, which nobody runs, and remembers what was acknowledged.
#[derive(Default)]
struct Producer {
    acknowledged: RefCell<BTreeSet<JobId>>,
    refused: Cell<u32>,
    is_over: Cell<bool>,
}

impl Producer {
    async fn produce(&self, jobs: &Jobs) {
        while !self.is_over.get() {
            let some = (0..5).map(|_| Work { millis: 0 });
            match jobs.enqueue_all(some).queue("elsewhere").await {
                Ok(added) => {
                    self.acknowledged.borrow_mut().extend(added.iter().map(|job| job.id()));
                }
                Err(error) => {
                    let full = ErrorKind::Store(StoreErrorKind::Full);
                    assert_eq!(error.kind(), full, "{}", chain(&error));
                    self.refused.set(self.refused.get() + 1);
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn succeeded(jobs: &Jobs) -> u64 {
    let counts = jobs.inspect().counts().await.expect("the store answers");
    counts.iter().filter(|count| count.state == State::Succeeded).map(|count| count.jobs).sum()
}

/// Fills the disk while jobs run, and keeps it full for two leases.
async fn fill_for_a_while(jobs: &Jobs, disk: &Disk, producer: &Producer) {
    let before = succeeded(jobs).await;
    until("some jobs have run", SOON, async || succeeded(jobs).await > before).await;
    let (refused, since) = (producer.refused.get(), SystemClock.elapsed());
    until("the disk was full for two leases", SOON, async || {
        disk.fill();
        let is_refused = producer.refused.get() >= refused + 50;
        is_refused && SystemClock.elapsed() >= since + LEASE * 2
    })
    .await;
}

/// Fills the disk twice: once it gets room with its workers waiting, once after they were killed.
async fn survive(setup: &Setup, disk: &Disk) {
    let (jobs, producer) = (setup.open().await, Producer::default());
    let work = || (0..JOBS).map(|_| Work { millis: 200 });
    let run = async {
        jobs.enqueue_all(work()).await.expect("there is room");
        let workers = ["one", "two"].map(|name| setup.start(name));
        fill_for_a_while(&jobs, disk, &producer).await;
        disk.make_room();
        until("all go on by themselves", SOON, async || succeeded(&jobs).await == JOBS).await;
        let counters = check_runs(&jobs, setup).await;
        assert_eq!(counters.crashes, 0, "nobody has died");
        workers.iter().for_each(assert_calm);
        println!("  filled for {:?}: {} interruptions", LEASE * 2, counters.interruptions);

        jobs.enqueue_all(work()).await.expect("there is room");
        fill_for_a_while(&jobs, disk, &producer).await;
        workers.into_iter().for_each(Process::kill);
        disk.make_room();
        let workers = ["three", "four"].map(|name| setup.start(name));
        until("the next ones go on", SOON, async || succeeded(&jobs).await == 2 * JOBS).await;
        let counters = check_runs(&jobs, setup).await;
        println!("  killed at the brim: {} crashes", counters.crashes);
        producer.is_over.set(true);
        for worker in workers {
            worker.signal(Signal::TERM);
            assert!(worker.wait().success());
        }
    };
    tokio::join!(producer.produce(&jobs), run);
    let stored: BTreeSet<JobId> =
        in_queue(&jobs, "elsewhere").await.iter().map(|job| job.id).collect();
    let acknowledged = producer.acknowledged.into_inner();
    assert!(
        stored == acknowledged,
        "{} are stored, {} acknowledged",
        stored.len(),
        acknowledged.len()
    );
    println!("  acknowledged and there: {}; refused: {}", stored.len(), producer.refused.get());
}

async fn in_queue(jobs: &Jobs, queue: &str) -> Vec<JobRecord> {
    let filter = Filter { queue: Some(queue.to_owned()), ..Filter::default() };
    jobs.inspect().jobs(&filter, u32::MAX).await.expect("the store answers")
}

/// Every job succeeded, its accepted run has ended, and nothing ran more often than interruptions
/// explain. Answers what is counted over all of them.
async fn check_runs(jobs: &Jobs, setup: &Setup) -> Counters {
    let (runs, mut sum) = (ledger::read(&setup.ledger), Counters::default());
    for record in in_queue(jobs, "default").await {
        let (id, counters) = (record.id.0, record.counters);
        assert_eq!((record.state, counters.failures), (State::Succeeded, 0), "job {id}");
        let of_job = &runs[&id];
        assert!(of_job[&record.claim.0].ended_us.is_some(), "job {id}: {of_job:?}");
        let starts = u32::try_from(of_job.len()).expect("a small number");
        assert!(starts <= 1 + counters.interruptions, "job {id}: {of_job:?}");
        sum.interruptions += counters.interruptions;
        sum.crashes += counters.crashes;
    }
    sum
}

fn assert_calm(worker: &Process) {
    let log = worker.log();
    let lines = log.lines().filter(|line| line.contains("disk is full")).count();
    assert!((1..=MOST_LINES).contains(&lines), "{lines} lines: {log}");
}

#[tokio::main]
async fn main() {
    let disk = std::env::args_os().nth(1).expect("the folder of a small, empty file system");
    let disk = Disk(disk.into());
    let binary = std::env::current_exe().expect("this binary").with_file_name("worker-process");
    let over = |url: String, folder: &Path| Setup {
        url,
        ..Setup::over_sqlite(&binary.to_string_lossy(), folder).with("LEASE_MS", &LEASE.as_millis())
    };

    println!("a SQLite file on a full disk");
    let (files, beside) = (disk.0.join("files"), tempfile::tempdir().expect("a folder"));
    std::fs::create_dir(&files).expect("the disk is empty");
    let setup = over(format!("sqlite://{}", files.join("jobs.db").display()), beside.path());
    survive(&setup, &disk).await;
    let check = sqlx::query_scalar("PRAGMA integrity_check");
    let found: String = check.fetch_one(&mut setup.shell(SOON).await).await.expect("a check");
    assert_eq!(found, "ok");
    std::fs::remove_dir_all(&files).expect("the folder can be removed");

    println!("a tablespace of PostgreSQL on a full disk");
    let (cluster, beside) = (Cluster::start(&[]).await, tempfile::tempdir().expect("a folder"));
    cluster.database_in("small", &disk.0.join("space"));
    survive(&over(cluster.url_of("small"), beside.path()), &disk).await;
}
