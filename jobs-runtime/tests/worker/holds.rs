//! A write transaction of the application that stays open in a file. A file has one writer, so the
//! others wait for it; none of them fails for it, and no lease is lost. On a server nobody waits: see
//! `server/holds.rs` of the package `tests`.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Counters, State};
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;
use tokio::sync::watch;

use crate::support::{Running, is_running, open_sqlite, sized, until, worker};

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct Held(u32);

/// Opens a transaction and commits it much later.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.hold", version = "1.0.0", checkpoint = Held, max_failures = 1)]
struct Hold {
    millis: u64,
}

/// Ends while that is open.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.beside", version = "1.0.0", max_failures = 1)]
struct Beside {}

/// Whether the transaction is open.
type IsOpen = watch::Sender<bool>;

async fn hold(job: Hold, cx: JobContext<IsOpen, Held>) -> Result<(), JobError> {
    let mut tx = cx.begin::<Sqlite>().await?;
    cx.checkpoint_in(&mut tx, &Held(1)).await?;
    cx.state.send_replace(true);
    tokio::time::sleep(Duration::from_millis(job.millis)).await;
    cx.done_in(&mut tx).await?;
    Ok(tx.commit().await?)
}

async fn beside(_: Beside, cx: JobContext<IsOpen>) -> Result<(), JobError> {
    cx.state.subscribe().wait_for(|is_open| *is_open).await?;
    Ok(())
}

#[tokio::test]
async fn a_transaction_that_stays_open_keeps_other_jobs_waiting_and_fails_none() {
    let jobs = open_sqlite().await;
    let added = jobs.enqueue_all((0..20).map(|_| Beside {})).await.unwrap();
    let mut ids: Vec<_> = added.iter().map(|added| added.id()).collect();
    let handlers = Registry::new().handle(hold).handle(beside).build().unwrap();
    let is_open = IsOpen::new(false);
    // A lease of three seconds, shorter than the transaction is open.
    let running = Running::start(worker(&jobs, handlers, is_open.clone()).concurrency(32));
    for id in &ids {
        until(&jobs, *id, is_running).await;
    }
    // Longer than a write waits for its own process.
    let open_for = sized(7_000, 60_000);
    ids.push(jobs.enqueue(Hold { millis: open_for }).await.unwrap().id());
    is_open.subscribe().wait_for(|is_open| *is_open).await.unwrap();
    for id in ids {
        let limit = Duration::from_millis(open_for) + Duration::from_secs(30);
        let record = jobs.wait(id).timeout(limit).await.unwrap();
        let ended = (record.state, record.claim.0, record.counters);
        assert_eq!(ended, (State::Succeeded, 1, Counters::default()), "job {id}: {record:?}");
    }
    running.stop().await;
}
