//! Writing history: a ring of the latest events of each job.

use jobs_core::store::Author;
use jobs_core::{Fence, NewEvent, Timestamp};
use sqlx::SqliteConnection;

use super::error::{During, Result};
use super::{json, sql};

/// A line of history under its number.
pub(super) struct Line {
    /// The job and the claim that it is about.
    pub(super) fence: Fence,
    /// Its number within the job's history, which the job's row counts.
    pub(super) number: i64,
    /// What happened.
    pub(super) event: NewEvent,
}

/// Writes lines over the hundredth before each.
pub(super) async fn record(
    tx: &mut SqliteConnection,
    now: Timestamp,
    by: Option<&Author>,
    lines: &[Line],
) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let row = |line: &'_ Line| {
        let NewEvent { kind, class, text } = &line.event;
        let (fence, number) = (line.fence, line.number);
        (fence.job.0, number, fence.claim.0, kind.as_str(), class.clone(), text.clone())
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    sqlx::query(sql::RECORD_EVENTS)
        .bind(json::rows(&rows))
        .bind(now.as_micros())
        .bind(by.and_then(|by| by.worker).map(|worker| worker.0))
        .bind(by.map(|by| by.build.as_str()))
        .execute(tx)
        .await
        .map(drop)
        .during("writing history")
}

/// The number of a job's next event, when so many were written before.
pub(super) fn next(written: i64) -> i64 {
    written.clamp(0, i64::MAX - 1) + 1
}
