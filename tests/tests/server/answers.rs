//! Answers that are lost after the server has committed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::State;
use jobs_runtime::prelude::*;
use tests::cluster::Cluster;
use tests::ledger::Ledger;
use tests::proxy::Proxy;
use tests::steps::{Stage, WriteRows, handlers};
use tests::{Work, sized, until};

use crate::crew::*;

/// Runs jobs while some answers to a statement are lost, and checks what became of them.
async fn lose_answers_to(statement: &str) {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let (jobs, told) = (Jobs::open(&cluster.url()).await.unwrap(), Told::default());
    let far = Jobs::open(&proxy.url()).await.unwrap();
    let crew = Crew::start([worker(&far, &told).concurrency(4)]);
    proxy.lose_answers(statement, 3);
    let mut acknowledged = BTreeSet::new();
    until("answers are lost", SOON, async || {
        let added = jobs.enqueue_all((0..4).map(|millis| Work { millis: millis * 20 })).await;
        acknowledged.extend(added.unwrap().iter().map(|added| added.id()));
        proxy.answers_to_lose() == 0
    })
    .await;
    until_idle(&jobs).await;
    assert_each_succeeded_once(&jobs, &acknowledged, &told).await;
    for record in all(&jobs).await {
        assert_eq!(record.counters, jobs_runtime::Counters::default(), "job {}", record.id);
    }
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_is_lost_is_given_back_and_runs_once() {
    lose_answers_to("spent AS MATERIALIZED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_whose_answer_is_lost_stands_and_runs_nothing_twice() {
    lose_answers_to("SET state = 'succeeded'").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_whose_answer_is_lost_is_an_error_that_passes_and_is_there_once() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let far = Jobs::open(&proxy.url()).await.unwrap();
    // The one with a key is a transaction of several statements.
    for (key, statement) in [(None, "INSERT INTO"), (Some("k"), "^COMMIT$")] {
        let before = all(&far).await.len();
        proxy.lose_answers(statement, 1);
        let enqueue = far.enqueue(Work { millis: 0 });
        let lost = match key {
            None => enqueue.await,
            Some(key) => enqueue.unique_key(key).await,
        };
        assert!(lost.unwrap_err().is_transient());
        assert_eq!(proxy.answers_to_lose(), 0);
        assert_eq!(all(&far).await.len(), before + 1);
    }
}

/// Which rows a job of so many steps leaves.
async fn assert_exact_rows(shell: &mut sqlx::PgConnection, jobs: &[i64], steps: i64) {
    let rows = sqlx::query_as("SELECT job, step FROM step ORDER BY job, step");
    let rows: Vec<(i64, i64)> = rows.fetch_all(&mut *shell).await.unwrap();
    let wanted: Vec<(i64, i64)> =
        jobs.iter().flat_map(|job| (1..=steps).map(|step| (*job, step))).collect();
    assert_eq!(rows, wanted);
    let ends = sqlx::query_scalar("SELECT job FROM finish ORDER BY job");
    let ends: Vec<i64> = ends.fetch_all(shell).await.unwrap();
    assert_eq!(ends, jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_of_the_application_whose_answer_is_lost_doubles_and_loses_no_row() {
    const STEPS: u32 = 10;
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let far = Jobs::open(&proxy.url()).await.unwrap();
    let mut shell = shell(&cluster.url()).await;
    let tables = "CREATE TABLE step (job BIGINT NOT NULL, step BIGINT NOT NULL);
                  CREATE TABLE finish (job BIGINT NOT NULL)";
    sqlx::raw_sql(tables).execute(&mut shell).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage {
        ledger: Ledger::open(&folder.path().join("ledger")),
        tables: String::new(),
        fate: None,
        begun: Arc::default(),
    };
    let worker = Worker::new(&far, handlers(&proxy.url()).unwrap(), stage)
        .lease(Duration::from_secs(3))
        .poll_interval(Duration::from_millis(100))
        .grace_period(Duration::from_secs(8));
    let crew = Crew::start([worker]);
    let mut ids = Vec::new();
    let mut interrupted = 0;
    for _ in 0..sized(4, 40) {
        proxy.lose_answers("^COMMIT$", 1);
        let id = jobs.enqueue(WriteRows { steps: STEPS }).await.unwrap().id();
        ids.push(id.0);
        let record = jobs.wait(id).timeout(SOON).await.unwrap();
        assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
        interrupted += record.claim.0 - 1;
    }
    assert_eq!(proxy.answers_to_lose(), 0);
    assert!(interrupted > 0, "no answer to a commit within a run was lost");
    assert_exact_rows(&mut shell, &ids, STEPS.into()).await;
    crew.stop().await;
}
