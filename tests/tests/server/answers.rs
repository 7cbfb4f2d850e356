//! Answers that are lost after the server has committed.

use std::collections::BTreeSet;

use jobs_runtime::prelude::*;
use tests::cluster::Cluster;
use tests::proxy::Proxy;
use tests::{Work, until};

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
    lose_answers_to("FOR NO KEY UPDATE SKIP LOCKED\n    ) AS next\n)\nUPDATE").await;
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
