//! A cursor that moves on batch by batch, whatever ends its runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use jobs_runtime::prelude::*;
use jobs_runtime::{JobRecord, State};
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;
use tokio::sync::Notify;

use crate::support::{Running, ended, open, open_sqlite, worker};

const ROWS: i64 = 10;
const BATCH: usize = 3;

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct After(i64);

/// Works off ten rows, three at a time, and stands still before one of them.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.rows", version = "1.0.0", checkpoint = After)]
struct Rows {
    stands_before: i64,
    how: How,
    is_in_transactions: bool,
}

/// What a handler does where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum How {
    /// Hears that it is to return, and goes on to its checkpoint.
    Hears,
    /// Hears nothing and is aborted.
    IsDeaf,
    Fails,
    Panics,
}

#[derive(Clone, Default)]
struct App {
    processed: Arc<Mutex<Vec<i64>>>,
    stands: Arc<Notify>,
}

type Cx = JobContext<App, After>;

fn rows_behind(after: i64) -> impl Iterator<Item = i64> {
    (after + 1..=ROWS).take(BATCH)
}

async fn stand(job: &Rows, cx: &Cx, row: i64) -> Result<(), JobError> {
    if cx.claim().0 > 1 || row != job.stands_before {
        return Ok(());
    }
    match job.how {
        How::Hears => {
            cx.state.stands.notify_one();
            cx.stopping().await;
        }
        How::IsDeaf => {
            cx.state.stands.notify_one();
            std::future::pending::<()>().await;
        }
        How::Fails => return Err(JobError::new("as told").retry_in(Duration::ZERO)),
        How::Panics => panic!("as told"),
    }
    Ok(())
}

impl Handler<App> for Rows {
    async fn run(self, cx: Cx) -> Result<Outcome, JobError> {
        let mut cursor = cx.cursor(After(0));
        if self.is_in_transactions {
            while let Some(mut batch) = cursor.begin::<Sqlite>().await? {
                let mut last = None;
                for row in rows_behind(batch.at().0) {
                    stand(&self, &cx, row).await?;
                    let insert = sqlx::query("INSERT INTO processed (row) VALUES (?1)").bind(row);
                    insert.execute(&mut *batch.tx).await?;
                    last = Some(row);
                }
                batch.commit(last.filter(|last| *last < ROWS).map(After)).await?;
            }
        } else {
            while let Some(After(after)) = cursor.at() {
                let mut last = None;
                for row in rows_behind(*after) {
                    stand(&self, &cx, row).await?;
                    cx.state.processed.lock().unwrap().push(row);
                    last = Some(row);
                }
                cursor.move_to(last.filter(|last| *last < ROWS).map(After)).await?;
            }
        }
        Ok(Outcome::Done)
    }

    fn ladder() -> jobs_runtime::Ladder {
        jobs_runtime::Ladder::Fixed(Duration::ZERO)
    }
}

/// Runs the job to its end, by a second worker where the first is told to stop. It has a queue of its
/// own, so that no worker takes the job of another position.
async fn run(jobs: &Jobs, app: &App, job: Rows) -> JobRecord {
    let Rows { how, stands_before, .. } = job;
    let queue = format!("{how:?} before {stands_before}");
    let start = || {
        let handlers = Registry::new().job::<Rows>().build().unwrap();
        let worker = worker(jobs, handlers, app.clone()).queue(&queue);
        // So many at once may stand still for a while, and who hears of a stop ends its batch.
        let worker = worker.lease(Duration::from_secs(30));
        Running::start(worker.grace_period(Duration::from_secs(3)))
    };
    let mut running = start();
    let id = jobs.enqueue(job).queue(&queue).await.unwrap().id();
    if matches!(how, How::Hears | How::IsDeaf) {
        app.stands.notified().await;
        running.stop().await;
        running = start();
    }
    let record = ended(jobs, id).await;
    running.stop().await;
    // Who hears of a stop within the last batch ends with it.
    let is_interrupted = how != How::Hears || stands_before != ROWS;
    assert_eq!(record.state, State::Succeeded, "{queue}");
    assert_eq!(record.claim.0 > 1, is_interrupted, "{queue}");
    record
}

const HOWS: [How; 4] = [How::Hears, How::IsDeaf, How::Fails, How::Panics];

#[tokio::test]
async fn an_interruption_at_any_row_repeats_one_batch_at_most_and_skips_none() {
    for jobs in open().await {
        for how in HOWS {
            join_all((1..=ROWS).map(|stands_before| one_position(&jobs, how, stands_before))).await;
        }
    }
}

async fn one_position(jobs: &Jobs, how: How, stands_before: i64) {
    let app = App::default();
    let record = run(jobs, &app, Rows { stands_before, how, is_in_transactions: false }).await;
    let mut times = BTreeMap::new();
    for row in app.processed.lock().unwrap().iter() {
        *times.entry(*row).or_insert(0) += 1;
    }
    assert!(times.keys().copied().eq(1..=ROWS), "{how:?} before {stands_before}: {times:?}");
    let repeated = times.iter().filter(|(_, times)| **times > 1).map(|(row, _)| (row - 1) / 3);
    let batches: BTreeSet<i64> = repeated.collect();
    let most = usize::try_from(record.claim.0 - 1).unwrap();
    assert!(batches.len() <= most, "{how:?} before {stands_before}: {times:?}");
}

#[tokio::test]
async fn batches_in_transactions_are_exact_wherever_a_run_is_interrupted() {
    let positions = HOWS.into_iter().flat_map(|how| (1..=ROWS).map(move |row| (how, row)));
    // One writer a file: each position has one of its own.
    let each = positions.map(|(how, stands_before)| async move {
        let jobs = open_sqlite().await;
        let table = "CREATE TABLE processed (row INTEGER NOT NULL)";
        sqlx::query(table).execute(&mut jobs.shell().await).await.unwrap();
        let job = Rows { stands_before, how, is_in_transactions: true };
        run(&jobs, &App::default(), job).await;
        let rows = sqlx::query_scalar("SELECT row FROM processed ORDER BY row");
        let rows: Vec<i64> = rows.fetch_all(&mut jobs.shell().await).await.unwrap();
        assert_eq!(rows, (1..=ROWS).collect::<Vec<_>>(), "{how:?} before {stands_before}");
    });
    join_all(each).await;
}
