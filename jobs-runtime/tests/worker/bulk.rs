//! Very many jobs in one call.

use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{Enqueued, JobId, State};
use sqlx::Sqlite;

use crate::support::{act, open, open_sqlite};

/// More than any limit on parameters: 65,535 of PostgreSQL, 32,766 of SQLite.
const MANY: usize = 100_000;

async fn waiting(jobs: &Jobs) -> u64 {
    let counts = jobs.inspect().counts().await.unwrap();
    counts.iter().filter(|count| count.state == State::Ready).map(|count| count.jobs).sum()
}

#[tokio::test]
async fn a_hundred_thousand_jobs_commit_or_vanish_with_the_callers_row() {
    let jobs = open_sqlite().await;
    let mut shell = jobs.shell().await;
    sqlx::query("CREATE TABLE campaign (jobs INTEGER)").execute(&mut shell).await.unwrap();
    for is_kept in [false, true] {
        let mut tx = jobs.begin::<Sqlite>().await.unwrap();
        let insert = sqlx::query("INSERT INTO campaign VALUES (?1)");
        insert.bind(i64::try_from(MANY).unwrap()).execute(&mut *tx).await.unwrap();
        let answers = jobs.enqueue_all((0..MANY).map(|_| act(""))).in_tx(&mut tx).await.unwrap();
        assert_eq!(answers.len(), MANY);
        let added = |answer: &Enqueued| matches!(answer, Enqueued::Added(_));
        assert!(answers.iter().all(added));
        assert!(answers.is_sorted_by_key(|answer| answer.id()));
        if is_kept {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
        let wanted = if is_kept { MANY as u64 } else { 0 };
        assert_eq!(waiting(&jobs).await, wanted);
        let rows: Vec<i64> =
            sqlx::query_scalar("SELECT jobs FROM campaign").fetch_all(&mut shell).await.unwrap();
        assert_eq!(rows.len(), usize::from(is_kept));
    }
}

#[tokio::test]
async fn no_jobs_are_enqueued_without_a_word() {
    for jobs in open().await {
        assert_eq!(jobs.enqueue_all(Vec::<crate::support::Act>::new()).await.unwrap(), []);
        assert!(jobs.inspect().jobs(&Filter::default(), 1).await.unwrap().is_empty());
    }
    let jobs = open_sqlite().await;
    let mut tx = jobs.begin::<Sqlite>().await.unwrap();
    let none = jobs.enqueue_all(Vec::<crate::support::Act>::new()).in_tx(&mut tx).await.unwrap();
    assert_eq!(none, []);
    tx.commit().await.unwrap();
    assert!(jobs.job(JobId(1)).await.unwrap().is_none());
}
