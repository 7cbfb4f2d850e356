//! Many rows, written in halves where one of them would spoil it for all.
//!
//! A write that fails for the fault of a row is made again part by part, each under a savepoint of the same
//! transaction, so that all but those at fault are written by one commit. Which rows a write tries, and how
//! far it goes: [`poison`](crate::store::poison).
//!
//! A trigger that says `RAISE(ROLLBACK)` ends the transaction itself, so it undoes the others all the same.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{EXPIRED, Retention};
use jobs_core::{Clock, JobId, Route, StoreError, StoreErrorKind, Timestamp, micros};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Sqlite, SqliteConnection};

use super::due::{EXPIRED_TEXT, record_expired};
use super::error::{During, Result};
use super::finish::finish;
use super::operate::{forget_pruned, prune_the_rest};
use super::row::Columns;
use super::writer::{LONGEST_HOLD, Write};
use super::{json, sql};
use crate::store::poison::{Call, Halves, Operation, Poison};

const DOING: &str = "writing rows apart";

/// The rows that are known, and the clock that they are passed over by.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) poison: Arc<Poison>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Known {
    /// Together, unless a row is known.
    pub(super) fn way(&self, operation: Operation) -> Way {
        if self.poison.is_known(operation) { Way::InHalves } else { Way::Together }
    }

    /// A write of at most `limit` rows in halves, which holds the write lock no longer than others do.
    pub(super) fn call(&self, operation: Operation, limit: u32) -> Call<'_, StoreError> {
        let over_at = self.clock.elapsed().saturating_add(LONGEST_HOLD);
        self.poison.call(operation, limit).until(over_at)
    }

    /// How many rows the write looks at next; none where it is over.
    pub(super) fn look(&self, call: &mut Call<'_, StoreError>) -> Option<u32> {
        call.look(self.clock.elapsed())
    }

    /// Which of these rows, whose first column is the job, are tried: those in the second list last.
    pub(super) fn chosen(
        &self,
        call: &Call<'_, StoreError>,
        found: Vec<SqliteRow>,
    ) -> Result<[Vec<SqliteRow>; 2]> {
        let job = |row: SqliteRow| Ok((with_job(&row)?.0, row));
        let found = found.into_iter().map(job).collect::<Result<_>>()?;
        Ok(call.choose(found, self.clock.elapsed()))
    }

    /// Writes rows that were chosen, whose first column is the job.
    pub(super) async fn write_in_halves(
        &self,
        tx: &mut SqliteConnection,
        now: Timestamp,
        call: &mut Call<'_, StoreError>,
        change: &mut impl Change,
        rows: &[SqliteRow],
    ) -> Result<()> {
        let mut halves = Halves::of(rows.iter().map(with_job).collect::<Result<_>>()?);
        while let Some(part) = call.next(&mut halves, self.clock.elapsed()) {
            let rows: Vec<&SqliteRow> = part.iter().map(|(_, row)| *row).collect();
            match apart(tx, async |tx| change.write(tx, now, &rows).await).await? {
                Ok(count) => call.written(part.into_iter().map(|(job, _)| job), count),
                Err(error) => {
                    let told = jobs_core::chain(&error);
                    call.failed(&mut halves, part, (error, &told), self.clock.elapsed());
                }
            }
        }
        Ok(())
    }
}

fn with_job(row: &SqliteRow) -> Result<(JobId, &SqliteRow)> {
    Ok((JobId(Columns::new(row).number().during(DOING)?), row))
}

/// How a write of many rows is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Together,
    /// A row has just been in the way: to be made again.
    Spoiled,
    InHalves,
}

impl Way {
    /// What an attempt at all rows together tells.
    pub(super) fn tried<T>(&mut self, tried: Result<T>) -> Result<T> {
        tried.inspect_err(|error| {
            if is_of_a_row(error) {
                *self = Self::Spoiled;
            }
        })
    }
}

/// Whether it may be about one row of many: a trigger or a constraint does not want it, or it is damaged.
fn is_of_a_row(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::Invalid | StoreErrorKind::Corrupt)
}

/// A change of many rows.
pub(super) trait Change {
    /// Writes rows; answers how many.
    fn write(
        &mut self,
        tx: &mut SqliteConnection,
        now: Timestamp,
        rows: &[&SqliteRow],
    ) -> impl Future<Output = Result<usize>> + Send;
}

/// A write of the upkeep, made in halves where a row is in the way of the others.
pub(super) struct Upkeep<W> {
    together: W,
    many: Many,
    limit: u32,
    known: Known,
    way: Way,
}

/// What is answered after the commit: what was refused takes nothing from what was written.
pub(super) struct Upkept {
    rows: u32,
    refused: Option<StoreError>,
}

impl Upkept {
    /// How many rows were written.
    ///
    /// # Errors
    /// None at all could be, or what goes with them could not.
    pub(super) fn rows(self) -> Result<u32> {
        self.refused.map_or(Ok(self.rows), Err)
    }
}

impl<W: Write<Answer = u32>> Upkeep<W> {
    pub(super) fn new(together: W, many: Many, limit: u32, known: Known) -> Self {
        let way = known.way(many.operation());
        Self { together, many, limit, known, way }
    }

    async fn in_halves(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Upkept> {
        let Self { many, limit, known, .. } = self;
        let mut call = known.call(many.operation(), *limit);
        while let Some(most) = known.look(&mut call) {
            let found = many.find(now, most).fetch_all(&mut *tx).await.during(DOING)?;
            for rows in known.chosen(&call, found)? {
                known.write_in_halves(tx, now, &mut call, many, &rows).await?;
            }
        }
        let ended = call.end();
        let (rows, mut refused) = ended.map_or_else(|error| (0, Some(error)), |rows| (rows, None));
        if let Many::Prune(_) = many
            && rows < *limit
        {
            let rest = apart(tx, async |tx| prune_the_rest(tx, now, *limit).await).await?;
            refused = refused.or(rest.err());
        }
        Ok(Upkept { rows, refused })
    }
}

#[async_trait]
impl<W: Write<Answer = u32>> Write for Upkeep<W> {
    type Answer = Upkept;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Upkept> {
        match self.way {
            Way::Together => {
                let tried = self.together.run(tx, now).await;
                let rows = self.way.tried(tried)?;
                Ok(Upkept { rows, refused: None })
            }
            Way::Spoiled | Way::InHalves => {
                self.way = Way::InHalves;
                self.in_halves(tx, now).await
            }
        }
    }

    fn is_to_be_repeated(&self) -> bool {
        self.way == Way::Spoiled
    }

    fn wakes(&self, upkept: &Upkept) -> bool {
        self.together.wakes(&upkept.rows)
    }
}

/// Makes a part of a transaction under a savepoint; what a row refuses of it is undone alone.
///
/// # Errors
/// What is no row's fault. The transaction is to be undone.
async fn apart<T>(
    tx: &mut SqliteConnection,
    part: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T>,
) -> Result<Result<T>> {
    sqlx::query(sql::SAVEPOINT).execute(&mut *tx).await.during(DOING)?;
    match part(&mut *tx).await {
        Ok(written) => {
            sqlx::query(sql::RELEASE).execute(&mut *tx).await.during(DOING)?;
            Ok(Ok(written))
        }
        Err(error) if is_of_a_row(&error) => {
            sqlx::raw_sql(sql::UNDO).execute(&mut *tx).await.during(DOING)?;
            Ok(Err(error))
        }
        Err(error) => Err(error),
    }
}

/// What the upkeep does to many rows.
#[derive(Debug)]
pub(super) enum Many {
    Promote,
    /// Of these routes, as the statement takes them.
    Recall(String),
    Expire,
    Prune(Retention),
}

impl Many {
    const fn operation(&self) -> Operation {
        match self {
            Self::Promote => Operation::Promote,
            Self::Recall(_) => Operation::Recall,
            Self::Expire => Operation::Expire,
            Self::Prune(_) => Operation::Prune,
        }
    }

    /// The refused jobs of routes.
    pub(super) fn recall(routes: &[Route]) -> Self {
        let routes: Vec<_> = routes.iter().map(Route::as_str).collect();
        Self::Recall(json::rows(&routes))
    }

    /// At most so many of the rows that it is about.
    fn find(&self, now: Timestamp, limit: u32) -> Query<'_, Sqlite, SqliteArguments> {
        let before = |kept: Duration| now.as_micros().saturating_sub(micros(kept));
        match self {
            Self::Promote => sqlx::query(sql::DUE).bind(limit).bind(now.as_micros()),
            Self::Recall(routes) => sqlx::query(sql::REFUSED).bind(limit).bind(routes),
            Self::Expire => sqlx::query(sql::EXPIRED_JOBS).bind(limit).bind(now.as_micros()),
            Self::Prune(Retention { succeeded, cancelled, dead }) => sqlx::query(sql::OLD)
                .bind(limit)
                .bind(before(*succeeded))
                .bind(before(*cancelled))
                .bind(before(*dead)),
        }
    }
}

impl Change for Many {
    async fn write(
        &mut self,
        tx: &mut SqliteConnection,
        now: Timestamp,
        rows: &[&SqliteRow],
    ) -> Result<usize> {
        let jobs = rows.iter().map(|row| Columns::new(row).number());
        let jobs: Vec<i64> = jobs.collect::<Result<_, _>>().during(DOING)?;
        let ids = json::rows(&jobs);
        match self {
            Self::Promote | Self::Recall(_) => {
                let ready = sqlx::query(sql::MAKE_READY).bind(ids).bind(now.as_micros());
                let written = finish(tx, ready).await.during("making jobs ready")?;
                Ok(usize::try_from(written).unwrap_or(usize::MAX))
            }
            Self::Expire => {
                let end = sqlx::query(sql::END_WAITING).bind(ids).bind(now.as_micros());
                let end = end.bind(EXPIRED).bind(EXPIRED_TEXT);
                let ended = end.fetch_all(&mut *tx).await.during("ending expired jobs")?;
                record_expired(tx, now, &ended).await
            }
            Self::Prune(_) => {
                let delete = sqlx::query_scalar(sql::DELETE_FINISHED).bind(ids);
                let deleted: Vec<i64> = delete.fetch_all(&mut *tx).await.during("pruning jobs")?;
                forget_pruned(tx, now, &deleted).await?;
                Ok(deleted.len())
            }
        }
    }
}
