//! Waiting jobs: how they become ready, or end because nobody started them in time.

use async_trait::async_trait;
use jobs_core::store::{EXPIRED, Promoted};
use jobs_core::{EventKind, NewEvent, Route, Timestamp};
use sqlx::{Executor, Sqlite, SqliteConnection};

use super::error::{During, Result};
use super::event::{self, Line};
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};

const PROMOTING: &str = "promoting jobs";

/// When the next scheduled job is due.
pub(super) async fn next_due<'c>(
    connection: impl Executor<'c, Database = Sqlite>,
) -> Result<Option<Timestamp>> {
    let due: Option<i64> =
        sqlx::query_scalar(sql::NEXT_DUE).fetch_one(connection).await.during(PROMOTING)?;
    Ok(due.map(Timestamp::from_micros))
}

/// A promotion to be made.
pub(super) struct Promote {
    pub(super) limit: u32,
}

#[async_trait]
impl Write for Promote {
    type Answer = Promoted;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Promoted> {
        let promote = sqlx::query(sql::PROMOTE).bind(now.as_micros()).bind(self.limit);
        let promoted = promote.execute(&mut *tx).await.during(PROMOTING)?.rows_affected();
        Ok(Promoted {
            count: u32::try_from(promoted).unwrap_or(u32::MAX),
            next_in: next_due(tx).await?.map(|due_at| due_at.since(now)),
        })
    }

    fn wakes(&self, promoted: &Promoted) -> bool {
        promoted.count > 0
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
        const TEXT: &str = "no run was started in time";
        let expire = sqlx::query(sql::EXPIRE).bind(now.as_micros()).bind(self.limit);
        let rows = expire.bind(EXPIRED).bind(TEXT).fetch_all(&mut *tx).await.during(DOING)?;
        let line = |row| {
            let mut columns = Columns::new(row);
            let fence = columns.fence()?;
            let (class, text) = (EXPIRED.to_owned(), TEXT.to_owned());
            let event = NewEvent { kind: EventKind::Failed, class, text };
            Ok(Line { fence, number: columns.number()?, event })
        };
        let lines: Vec<Line> = rows.iter().map(line).collect::<Result<_, _>>().during(DOING)?;
        event::record(tx, now, None, &lines).await?;
        Ok(u32::try_from(lines.len()).unwrap_or(u32::MAX))
    }

    fn wakes(&self, _: &u32) -> bool {
        false
    }
}
