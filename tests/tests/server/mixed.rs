//! Everything at once on one server: enqueues that meet over unique keys, transactions of the
//! application, cancels, pauses, redrives and prunes beside workers whose handlers fail and save.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Redrive, Reschedule, Retention};
use jobs_runtime::{
    Clock, Due, Enqueued, JobId, OnConflict, Priority, QueueName, Random, SeededRandom, State,
    SystemClock, below, chain,
};
use serde::{Deserialize, Serialize};
use sqlx::Postgres;
use tests::cluster::Cluster;
use tests::{sized, until};

use crate::crew::*;

/// Jobs of which few can wait at a time: bulk enqueues of them meet in every order.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "mixed.keyed", version = "1.0.0", unique("key"), retry = "10ms")]
struct Keyed {
    key: u64,
    fails: bool,
}

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct Step(u32);

/// Jobs that save their progress, on a queue that is paused time and again.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(
    kind = "mixed.saving",
    version = "1.0.0",
    queue = "saving",
    checkpoint = Step,
    max_failures = 2,
    retry = "10ms"
)]
struct Saving {
    fails: bool,
}

async fn keyed(job: Keyed, cx: JobContext<Load>) -> Result<(), JobError> {
    cx.state.ran.fetch_add(1, Ordering::Relaxed);
    if job.fails && cx.failures() == 0 { Err(JobError::new("once")) } else { Ok(()) }
}

async fn saving(job: Saving, cx: JobContext<Load, Step>) -> Result<(), JobError> {
    cx.checkpoint(&Step(1)).await?;
    cx.state.ran.fetch_add(1, Ordering::Relaxed);
    if job.fails { Err(JobError::new("always")) } else { Ok(()) }
}

/// What the actors share.
#[derive(Clone)]
struct Load {
    ran: Arc<AtomicU64>,
    /// Jobs of late, for those who meddle with them.
    recent: Arc<Mutex<Vec<JobId>>>,
    random: Arc<SeededRandom>,
    /// By the clock that counts since the start of the machine.
    until: Duration,
}

impl Load {
    fn goes_on(&self) -> bool {
        SystemClock.elapsed() < self.until
    }

    fn draw(&self, bound: u64) -> u64 {
        below(self.random.draw(), bound)
    }

    fn added(&self, ids: impl IntoIterator<Item = JobId>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.extend(ids);
        let excess = recent.len().saturating_sub(2_000);
        recent.drain(..excess);
    }

    /// Some of them, in an order of their own.
    fn some(&self) -> Vec<JobId> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.is_empty() {
            return Vec::new();
        }
        let one = |_| recent[usize::try_from(self.draw(recent.len() as u64)).expect("an index")];
        (0..20).map(one).collect()
    }

    async fn enqueue(&self, jobs: &Jobs) -> Result<(), jobs_runtime::Error> {
        let keys = (0..50).map(|_| Keyed { key: self.draw(200), fails: self.draw(20) == 0 });
        let on_conflict = [
            OnConflict::Keep,
            OnConflict::Replace,
            OnConflict::Reschedule,
            OnConflict::ReplaceAndReschedule,
        ][usize::try_from(self.draw(4)).expect("an index")];
        let keyed = jobs.enqueue_all(keys.collect::<Vec<_>>()).on_conflict(on_conflict).await?;
        self.added(keyed.into_iter().map(Enqueued::id));
        let plain = (0..20).map(|_| Saving { fails: self.draw(10) == 0 });
        let delay = Duration::from_millis(self.draw(3) * 50);
        let plain = jobs.enqueue_all(plain.collect::<Vec<_>>()).delay(delay).await?;
        self.added(plain.into_iter().map(Enqueued::id));
        Ok(())
    }

    /// Two enqueues in one transaction that is held for a while and often rolled back.
    async fn transact(&self, jobs: &Jobs) -> Result<(), jobs_runtime::Error> {
        let mut tx = jobs.begin::<Postgres>().await?;
        let one = Keyed { key: self.draw(200), fails: false };
        let one = jobs.enqueue(one).in_tx(&mut tx).await?.id();
        tokio::time::sleep(Duration::from_millis(self.draw(5))).await;
        let two = jobs.enqueue(Saving { fails: false }).in_tx(&mut tx).await?.id();
        if self.draw(2) == 0 {
            tx.commit().await.expect("the server takes it");
            self.added([one, two]);
        } else {
            tx.rollback().await.expect("the server takes it");
        }
        Ok(())
    }

    async fn meddle(&self, jobs: &Jobs) -> Result<(), jobs_runtime::Error> {
        let (some, operate) = (self.some(), jobs.operate());
        match self.draw(6) {
            0 => drop(operate.cancel(&some).await?),
            1 => drop(operate.redrive(&some, Redrive::default()).await?),
            2 => drop(operate.run_now(&some).await?),
            3 => {
                let priority = Priority::new(i16::from(self.draw(2) == 0));
                let due = Some(Due::In(Duration::from_millis(self.draw(100))));
                drop(operate.reschedule(&some, Reschedule { due, priority }).await?);
            }
            4 => {
                let brief = Duration::from_millis(500);
                let retention = Retention { succeeded: brief, cancelled: brief, dead: brief };
                jobs.prune(retention, 500).await?;
            }
            _ => {
                let queue = QueueName::new("saving").expect("a name");
                operate.pause(&queue, "test", "for a while").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
                operate.resume(&queue).await?;
            }
        }
        Ok(())
    }

    /// Repeats an act until the time is over. None of its calls may fail.
    async fn act(self, jobs: Jobs, act: Act) {
        while self.goes_on() {
            let outcome = match act {
                Act::Enqueue => self.enqueue(&jobs).await,
                Act::Transact => self.transact(&jobs).await,
                Act::Meddle => self.meddle(&jobs).await,
            };
            if let Err(error) = outcome {
                panic!("{act:?}: {}", chain(&error));
            }
            // Not faster than the workers.
            while self.goes_on() && count(&jobs, State::Ready).await > Some(2_000) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Enqueue,
    Transact,
    Meddle,
}

fn mixed_worker(jobs: &Jobs, load: &Load) -> Worker<Load> {
    let handlers = Registry::new().handle(keyed).handle(saving).build().expect("two handlers");
    Worker::new(jobs, handlers, load.clone())
        .queue("default")
        .queue("saving")
        .concurrency(20)
        .poll_interval(Duration::from_millis(100))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mixed_load_meets_no_deadlock_and_no_error() {
    let cluster = Cluster::start(&["max_connections = 200"]).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let load = Load {
        ran: Arc::default(),
        recent: Arc::default(),
        random: Arc::new(SeededRandom::new(7)),
        until: SystemClock.elapsed() + Duration::from_secs(sized(6, 600)),
    };
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(Jobs::open(&cluster.url()).await.unwrap());
    }
    let crew = Crew::start(clients.iter().map(|jobs| mixed_worker(jobs, &load)));
    let mut actors = tokio::task::JoinSet::new();
    for act in [Act::Enqueue, Act::Enqueue, Act::Transact, Act::Transact, Act::Meddle, Act::Meddle]
    {
        let own = Jobs::open(&cluster.url()).await.unwrap();
        actors.spawn(load.clone().act(own, act));
    }
    actors.join_all().await;
    until_idle(&jobs).await;
    crew.stop().await;
    let mut shell = shell(&cluster.url()).await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let deadlocks: i64 = sqlx::query_scalar(deadlocks).fetch_one(&mut shell).await.unwrap();
    let log = cluster.read_log();
    let told = log.lines().skip_while(|line| !line.contains("deadlock detected")).take(40);
    assert_eq!(deadlocks, 0, "{}", told.collect::<Vec<_>>().join("\n"));
    let (ran, least) = (load.ran.load(Ordering::Relaxed), sized(500, 100_000));
    println!("{ran} runs");
    assert!(ran >= least, "{ran} runs");
    // Each has ended: the cancelled, the dead, and those that ran.
    for record in all(&jobs).await {
        assert!(record.state.is_finished(), "job {}: {:?}", record.id, record.state);
    }
    until("no session is left inside a transaction", SOON, async || {
        let open = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
        let open: i64 = sqlx::query_scalar(open).fetch_one(&mut shell).await.unwrap();
        open == 0
    })
    .await;
}
