//! Ways to the server that are cut, held or slow.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{WorkerEnd, WorkerRecord};
use jobs_runtime::{Clock, Counters, JobId, State, SystemClock};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, Postgres, Row as _};
use tests::cluster::Cluster;
use tests::proxy::{Flow, Proxy};
use tests::{Work, sized, until};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::crew::*;

const LEASE: Duration = Duration::from_secs(3);

/// Waits until the worker's lease has just been renewed, and answers when it then ends.
async fn renewed(shell: &mut PgConnection) -> i64 {
    let sql = "SELECT expires_at_us FROM jobs.worker WHERE ended_at_us IS NULL";
    let shell = tokio::sync::Mutex::new(shell);
    let read = async || -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut **shell.lock().await).await.expect("one worker")
    };
    let before = read().await;
    until("the lease is renewed", SOON, async || read().await > before).await;
    read().await
}

async fn until_running(jobs: &Jobs, wanted: u64) {
    until("the jobs run", SOON, async || count(jobs, State::Running).await == Some(wanted)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_cuts_disturb_no_handler_and_a_long_one_ends_them_before_the_lease() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let (jobs, told) = (Jobs::open(&cluster.url()).await.unwrap(), Told::default());
    let far = Jobs::open(&proxy.url()).await.unwrap();
    let added = jobs.enqueue_all((0..5).map(|_| Work { millis: 60_000 })).await.unwrap();
    let added: BTreeSet<JobId> = added.iter().map(|added| added.id()).collect();
    let crew = Crew::start([worker(&far, &told).lease(LEASE)]);
    until_running(&jobs, 5).await;
    let mut shell = shell(&cluster.url()).await;
    for flow in [Flow::Cut, Flow::Held] {
        renewed(&mut shell).await;
        proxy.set(flow);
        sleep(LEASE * 6 / 10).await;
        proxy.set(Flow::Open);
    }
    renewed(&mut shell).await;
    for record in all(&jobs).await {
        let undisturbed = (record.state, record.claim.0, record.counters);
        assert_eq!(undisturbed, (State::Running, 1, Counters::default()), "job {}", record.id);
    }
    let ends_at_us = renewed(&mut shell).await;
    proxy.set(Flow::Cut);
    let cut_at = SystemClock.elapsed();
    until("the handlers are ended", LEASE, async || {
        told.runs().values().all(|run| run.dropped_at_us.is_some())
    })
    .await;
    for (run, told) in &*told.runs() {
        assert_eq!(told.ended_at_us, None, "{run:?}");
        assert!(told.dropped_at_us.is_some_and(|at| at < ends_at_us), "{run:?}: {told:?}");
    }
    sleep((LEASE * 2).saturating_sub(SystemClock.elapsed().saturating_sub(cut_at))).await;
    proxy.set(Flow::Open);
    until_idle(&jobs).await;
    assert_each_succeeded_once(&jobs, &added, &told).await;
    for record in all(&jobs).await {
        let Counters { failures, interruptions, crashes, .. } = record.counters;
        assert_eq!((failures, interruptions, crashes), (0, 1, 0), "job {}", record.id);
    }
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_fall_silent_hold_no_worker_up() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let (jobs, told) = (Jobs::open(&cluster.url()).await.unwrap(), Told::default());
    let brief = Jobs::builder().postgres(|options| options.statement_timeout(LEASE / 3));
    let far = brief.open(&proxy.url()).await.unwrap();
    let crew = Crew::start([worker(&far, &told).lease(LEASE)]);
    jobs.enqueue_all((0..20).map(|_| Work { millis: 10 })).await.unwrap();
    until_succeeded(&jobs, 20).await;
    let added = jobs.enqueue_all((0..5).map(|_| Work { millis: 300 })).await.unwrap();
    until_running(&jobs, 5).await;
    // As when the server's host vanishes: nobody ever answers, and nobody closes.
    proxy.strand();
    until_succeeded(&jobs, 25).await;
    let next = jobs.enqueue(Work { millis: 0 }).await.unwrap().id();
    until_idle(&jobs).await;
    let acknowledged = added.iter().map(|added| added.id()).chain([next]).collect();
    assert_each_succeeded_once(&jobs, &acknowledged, &told).await;
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_dropped_on_a_slow_way_leave_no_transaction_behind() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let url = proxy.url();
    let one = Jobs::builder().postgres(|options| options.connections(1));
    let far = one.open(&url).await.unwrap();
    let slow = Duration::from_millis(sized(100, 500));
    proxy.delay(slow);
    let mut acknowledged = BTreeSet::new();
    for round in 0..sized(60, 500) {
        let longest = slow * (1 + round * 37 % 130) / 100;
        match round % 4 {
            0 => {
                let enqueue = far.enqueue(Work { millis: 0 });
                if let Ok(answer) = timeout(longest, enqueue).await {
                    acknowledged.insert(answer.unwrap().id());
                }
            }
            1 => {
                let enqueue = far.enqueue(Work { millis: 0 }).unique_key(round.to_string());
                if let Ok(answer) = timeout(longest, enqueue).await {
                    acknowledged.insert(answer.unwrap().id());
                }
            }
            2 => {
                let ids: Vec<JobId> = acknowledged.iter().rev().take(3).copied().collect();
                drop(timeout(longest, far.operate().cancel(&ids)).await);
            }
            _ => {
                let begin = async {
                    let mut tx = far.begin::<Postgres>().await.unwrap();
                    far.enqueue(Work { millis: 0 }).in_tx(&mut tx).await.unwrap();
                };
                drop(timeout(longest, begin).await);
            }
        }
    }
    proxy.delay(Duration::ZERO);
    let last = far.enqueue(Work { millis: 0 }).await.unwrap().id();
    let mut tx = far.begin::<Postgres>().await.unwrap();
    let committed = far.enqueue(Work { millis: 0 }).in_tx(&mut tx).await.unwrap().id();
    tx.commit().await.unwrap();
    acknowledged.extend([last, committed]);
    let elsewhere = Jobs::open(&cluster.url()).await.unwrap();
    let there: BTreeSet<JobId> = all(&elsewhere).await.iter().map(|record| record.id).collect();
    assert!(acknowledged.is_subset(&there), "{:?}", acknowledged.difference(&there));
    let mut shell = shell(&cluster.url()).await;
    let shell = tokio::sync::Mutex::new(&mut shell);
    until("no session is idle in a transaction", SOON, async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
        let row = sqlx::query(sql).fetch_one(&mut **shell.lock().await).await.unwrap();
        row.get::<i64, _>(0) == 0
    })
    .await;
    let log = cluster.read_log();
    for wrong in ["current transaction is aborted", "already a transaction"] {
        assert!(!log.contains(wrong), "{log}");
    }
}

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct Step(u32);

/// Puts a checkpoint off, and fails once it may.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.seldom", version = "1.0.0", checkpoint = Step, checkpoint_every = "1h")]
struct Seldom {}

/// Says that a handler waits, and that it may go on.
type Gate = (Arc<Notify>, Arc<Notify>);

async fn save_seldom(_: Seldom, cx: JobContext<Gate, Step>) -> Result<(), JobError> {
    cx.checkpoint(&Step(1)).await?;
    cx.checkpoint(&Step(2)).await?;
    cx.state.0.notify_one();
    cx.state.1.notified().await;
    Err(JobError::new("not now").retry_in(Duration::from_hours(1)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_was_put_off_is_written_when_the_server_is_back() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let far = Jobs::open(&proxy.url()).await.unwrap();
    let gate = Gate::default();
    let handlers = Registry::new().handle(save_seldom).build().unwrap();
    let crew = Crew::start([Worker::new(&far, handlers, gate.clone())]);
    let id = jobs.enqueue(Seldom {}).await.unwrap().id();
    gate.0.notified().await;
    proxy.set(Flow::Cut);
    gate.1.notify_one();
    until("it was tried in vain", SOON, async || proxy.refused() >= 5).await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.checkpoint.unwrap().text.as_str()), (State::Running, "1"));
    proxy.set(Flow::Open);
    let has_failed = async || jobs.job(id).await.unwrap().unwrap().state == State::Scheduled;
    until("the failure is settled", SOON, has_failed).await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.counters.failures, record.checkpoint.unwrap().text.as_str()), (1, "2"));
    crew.stop().await;
}

/// Saves a checkpoint, and another once it may.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.often", version = "1.0.0", checkpoint = Step)]
struct Often {}

async fn save_often(_: Often, cx: JobContext<Gate, Step>) -> Result<(), JobError> {
    cx.checkpoint(&Step(1)).await?;
    cx.state.0.notify_one();
    cx.state.1.notified().await;
    cx.checkpoint(&Step(2)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_shorter_than_the_lease_interrupts_no_run_that_saves_checkpoints() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let far = Jobs::open(&proxy.url()).await.unwrap();
    let gate = Gate::default();
    let handlers = Registry::new().handle(save_often).build().unwrap();
    let crew = Crew::start([Worker::new(&far, handlers, gate.clone())]);
    let id = jobs.enqueue(Often {}).await.unwrap().id();
    gate.0.notified().await;
    proxy.set(Flow::Cut);
    gate.1.notify_one();
    until("it was tried in vain", SOON, async || proxy.refused() >= 5).await;
    proxy.set(Flow::Open);
    until_succeeded(&jobs, 1).await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.claim.0, record.counters), (1, Counters::default()));
    assert_eq!(record.checkpoint.unwrap().text, "2");
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_registers_anew_leaves_no_row_that_dies() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let (jobs, told) = (Jobs::open(&cluster.url()).await.unwrap(), Told::default());
    let far = Jobs::open(&proxy.url()).await.unwrap();
    jobs.enqueue(Work { millis: 60_000 }).await.unwrap();
    let crew = Crew::start([worker(&far, &told).lease(LEASE)]);
    until_running(&jobs, 1).await;
    proxy.set(Flow::Cut);
    until("the handler is ended", SOON, async || {
        told.runs().values().all(|run| run.dropped_at_us.is_some())
    })
    .await;
    proxy.set(Flow::Open);
    let ends = async || -> Vec<WorkerEnd> {
        jobs.inspect().workers().await.unwrap().iter().map(WorkerRecord::end).collect()
    };
    let is_open = |end: &WorkerEnd| *end == WorkerEnd::Open;
    until("one of two is open", SOON, async || {
        let ends = ends().await;
        ends.len() == 2 && ends.into_iter().filter(|end| is_open(end)).count() == 1
    })
    .await;
    assert!(ends().await.contains(&WorkerEnd::Drained), "the earlier one left by its own word");
    crew.stop().await;
}
