//! Waiting jobs: how they become ready, or end because nobody started them in time.

use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::EXPIRED;
use jobs_core::{EventKind, JobId, NewEvent, Route, Timestamp};
use sqlx::sqlite::SqliteRow;
use sqlx::{Executor, Sqlite, SqliteConnection};

use super::error::{During, Result};
use super::event::{self, Line};
use super::halves::Known;
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};
use crate::store::poison::Operation;

const PROMOTING: &str = "promoting jobs";
/// What the error of an expired job says.
pub(super) const EXPIRED_TEXT: &str = "no run was started in time";

/// What is scheduled next.
pub(super) enum Next {
    Nothing,
    /// Some are due, and can be promoted as far as is known.
    Due,
    /// Nothing for so long.
    In(Duration),
}

/// When the next scheduled job is to be promoted, but those that are passed over.
pub(super) async fn next_due<'c>(
    connection: impl Executor<'c, Database = Sqlite>,
    now: Timestamp,
    known: &Known,
) -> Result<Next> {
    let Known { poison, clock } = known;
    let elapsed = clock.elapsed();
    let limit = poison.paused(Operation::Promote, elapsed).saturating_add(1);
    let rows = sqlx::query(sql::NEXT_DUE).bind(limit).fetch_all(connection).await;
    let due = |row: &SqliteRow| {
        let mut columns = Columns::new(row);
        Ok((JobId(columns.number()?), columns.instant()?.since(now)))
    };
    let due = rows.during(PROMOTING)?.iter().map(due).collect::<Result<Vec<_>, _>>();
    let due_in = poison.first_free(Operation::Promote, due.during(PROMOTING)?, elapsed);
    if due_in.is_some_and(|due_in| due_in.is_zero()) {
        return Ok(Next::Due);
    }
    let retried_in = poison.next_in(Operation::Promote, elapsed);
    Ok(due_in.into_iter().chain(retried_in).min().map_or(Next::Nothing, Next::In))
}

impl Next {
    pub(super) fn due_in(self) -> Option<Duration> {
        match self {
            Self::Nothing => None,
            Self::Due => Some(Duration::ZERO),
            Self::In(span) => Some(span),
        }
    }
}

/// A promotion to be made.
pub(super) struct Promote {
    pub(super) limit: u32,
}

#[async_trait]
impl Write for Promote {
    type Answer = u32;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<u32> {
        let promote = sqlx::query(sql::PROMOTE).bind(now.as_micros()).bind(self.limit);
        let promoted = promote.execute(&mut *tx).await.during(PROMOTING)?.rows_affected();
        Ok(u32::try_from(promoted).unwrap_or(u32::MAX))
    }

    fn wakes(&self, promoted: &u32) -> bool {
        *promoted > 0
    }
}

/// Refused jobs to be made ready.
pub(super) struct Recall {
    routes: String,
    limit: u32,
}

impl Recall {
    pub(super) fn new(routes: &[Route], limit: u32) -> Self {
        let routes: Vec<_> = routes.iter().map(Route::as_str).collect();
        Self { routes: json::rows(&routes), limit }
    }
}

#[async_trait]
impl Write for Recall {
    type Answer = u32;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<u32> {
        let recall = sqlx::query(sql::RECALL).bind(&self.routes).bind(now.as_micros());
        let recalled = recall.bind(self.limit).execute(tx).await.during("recalling jobs")?;
        Ok(u32::try_from(recalled.rows_affected()).unwrap_or(u32::MAX))
    }

    fn wakes(&self, recalled: &u32) -> bool {
        *recalled > 0
    }
}

/// Waiting jobs to be ended that no run may start of any more.
pub(super) struct Expire {
    pub(super) limit: u32,
}

#[async_trait]
impl Write for Expire {
    type Answer = u32;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<u32> {
        const DOING: &str = "ending expired jobs";
        let expire = sqlx::query(sql::EXPIRE).bind(now.as_micros()).bind(self.limit);
        let expire = expire.bind(EXPIRED).bind(EXPIRED_TEXT);
        let ended = expire.fetch_all(&mut *tx).await.during(DOING)?;
        let ended = record_expired(tx, now, &ended).await?;
        Ok(u32::try_from(ended).unwrap_or(u32::MAX))
    }

    fn wakes(&self, _: &u32) -> bool {
        false
    }
}

/// Writes the history of jobs that were ended because no run was started in time; answers how many.
pub(super) async fn record_expired(
    tx: &mut SqliteConnection,
    now: Timestamp,
    ended: &[SqliteRow],
) -> Result<usize> {
    let line = |row| {
        let mut columns = Columns::new(row);
        let fence = columns.fence()?;
        let (class, text) = (EXPIRED.to_owned(), EXPIRED_TEXT.to_owned());
        let event = NewEvent { kind: EventKind::Failed, class, text };
        Ok(Line { fence, number: columns.number()?, event })
    };
    let lines: Result<Vec<Line>, _> = ended.iter().map(line).collect();
    let lines = lines.during("ending expired jobs")?;
    event::record(tx, now, None, &lines).await?;
    Ok(lines.len())
}
