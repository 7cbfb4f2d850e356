//! Transactions of the application, and of others, that stay open for long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Counters, JobId, State};
use serde::{Deserialize, Serialize};
use sqlx::Postgres;
use tests::cluster::Cluster;
use tests::{sized, until};
use tokio::sync::watch;

use crate::crew::*;

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct Step(u32);

/// Saves a checkpoint in a transaction, and holds that open for a while.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.hold", version = "1.0.0", checkpoint = Step, max_failures = 1)]
struct Hold {
    millis: u64,
}

/// Saves a checkpoint by itself.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.save", version = "1.0.0", checkpoint = Step, max_failures = 1)]
struct Save {}

/// Does nothing.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.pass", version = "1.0.0", max_failures = 1)]
struct Pass {}

/// Keeps handlers from saving until it opens, and counts those that then save.
#[derive(Clone)]
struct Gate {
    is_open: watch::Sender<bool>,
    saving: Arc<AtomicUsize>,
}

impl Gate {
    fn closed() -> Self {
        Self { is_open: watch::Sender::new(false), saving: Arc::default() }
    }
}

async fn hold(job: Hold, cx: JobContext<Gate, Step>) -> Result<(), JobError> {
    let mut tx = cx.begin::<Postgres>().await?;
    cx.checkpoint_in(&mut tx, &Step(1)).await?;
    tokio::time::sleep(Duration::from_millis(job.millis)).await;
    cx.done_in(&mut tx).await?;
    Ok(tx.commit().await?)
}

async fn save(_: Save, cx: JobContext<Gate, Step>) -> Result<(), JobError> {
    cx.state.is_open.subscribe().wait_for(|is_open| *is_open).await?;
    cx.progress("about to save");
    cx.state.saving.fetch_add(1, Ordering::SeqCst);
    cx.checkpoint(&Step(1)).await
}

async fn pass(_: Pass, _: JobContext<Gate>) -> Result<(), JobError> {
    Ok(())
}

fn worker(jobs: &Jobs, gate: &Gate) -> Worker<Gate> {
    let handlers = Registry::new().handle(hold).handle(save).handle(pass).build().unwrap();
    Worker::new(jobs, handlers, gate.clone())
        .concurrency(40)
        .poll_interval(Duration::from_millis(100))
        .lease(Duration::from_secs(3))
        .grace_period(Duration::from_secs(8))
}

async fn until_running(jobs: &Jobs, wanted: u64) {
    until("they run", SOON, async || count(jobs, State::Running).await == Some(wanted)).await;
}

/// Jobs go through beside those that stand still, which stay as they are.
async fn assert_others_go_through(jobs: &Jobs, standing: &BTreeSet<JobId>) {
    let wanted = 400;
    jobs.enqueue_all((0..wanted).map(|_| Pass {})).await.unwrap();
    until_succeeded(jobs, wanted).await;
    for record in all(jobs).await.iter().filter(|record| standing.contains(&record.id)) {
        let undisturbed = (record.state, record.claim.0, record.counters);
        assert_eq!(undisturbed, (State::Running, 1, Counters::default()), "job {}", record.id);
    }
}

async fn assert_succeeded(jobs: &Jobs, ids: &BTreeSet<JobId>) {
    for id in ids {
        let record = jobs.wait(*id).timeout(SOON * 3).await.unwrap();
        let ended = (record.state, record.claim.0, record.counters);
        assert_eq!(ended, (State::Succeeded, 1, Counters::default()), "job {id}");
        assert_eq!(record.checkpoint.unwrap().text, "1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_a_handler_that_stays_open_blocks_no_other_job() {
    let cluster = Cluster::start(&[]).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let crew = Crew::start([worker(&jobs, &Gate::closed())]);
    let hold = || Hold { millis: sized(5_000, 60_000) };
    let added = jobs.enqueue_all((0..5).map(|_| hold())).await.unwrap();
    let ids = added.iter().map(|added| added.id()).collect();
    until_running(&jobs, 5).await;
    assert_others_go_through(&jobs, &ids).await;
    assert_succeeded(&jobs, &ids).await;
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_that_wait_for_rows_that_others_hold_keep_no_connection_from_other_jobs() {
    let cluster = Cluster::start(&[]).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let gate = Gate::closed();
    let crew = Crew::start([worker(&jobs, &gate)]);
    // More than the store has connections.
    let added = jobs.enqueue_all((0..15).map(|_| Save {})).await.unwrap();
    let ids: BTreeSet<JobId> = added.iter().map(|added| added.id()).collect();
    until_running(&jobs, 15).await;
    let mut shell = shell(&cluster.url()).await;
    let held = "BEGIN; SELECT FROM jobs.job WHERE kind = 'test.save' FOR UPDATE";
    sqlx::raw_sql(held).execute(&mut shell).await.unwrap();
    gate.is_open.send_replace(true);
    until("they save", SOON, async || gate.saving.load(Ordering::SeqCst) == 15).await;
    assert_others_go_through(&jobs, &ids).await;
    sqlx::raw_sql("COMMIT").execute(&mut shell).await.unwrap();
    assert_succeeded(&jobs, &ids).await;
    crew.stop().await;
}
