//! Many rows, written in halves where one of them would spoil it for all.
//!
//! A write that fails for the fault of a row is made again part by part, each under a savepoint of the same
//! transaction, so that all but those at fault are written by one commit. What a known row does to a write,
//! and when it is tried again: [`Poison`].
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
use super::operate::forget_pruned;
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};
use crate::store::poison::{Halves, Poison};

const DOING: &str = "writing rows apart";

/// The rows that are known, and the clock that they are passed over by.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) poison: Arc<Poison>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Known {
    /// Together, unless a row is known.
    pub(super) fn way(&self) -> Way {
        if self.poison.is_known() { Way::InHalves } else { Way::Together }
    }

    /// How many rows are passed over.
    pub(super) fn paused(&self) -> u32 {
        self.poison.paused(self.clock.elapsed())
    }

    pub(super) fn is_paused(&self, job: JobId) -> bool {
        self.poison.is_paused(job, self.clock.elapsed())
    }

    /// How long until the first of those that are passed over is tried again.
    pub(super) fn next_in(&self) -> Option<Duration> {
        self.poison.next_in(self.clock.elapsed())
    }

    /// Writes rows, whose first column is the job, at most so many. Passes over those that are known to fail.
    pub(super) async fn write_in_halves(
        &self,
        tx: &mut SqliteConnection,
        now: Timestamp,
        change: &mut impl Change,
        rows: &[SqliteRow],
        most: u32,
    ) -> Result<Written> {
        let mut tried = Vec::new();
        for row in rows {
            let job = JobId(Columns::new(row).number().during(DOING)?);
            if !self.is_paused(job) {
                tried.push((job, row));
            }
        }
        tried.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let mut halves = Halves::of(tried);
        let mut written = Written { rows: 0, poison: 0, given_up: None };
        while let Some(part) = halves.next() {
            let rows: Vec<&SqliteRow> = part.iter().map(|(_, row)| *row).collect();
            sqlx::query(sql::SAVEPOINT).execute(&mut *tx).await.during(DOING)?;
            match change.write(tx, now, &rows).await {
                Ok(count) => {
                    sqlx::query(sql::RELEASE).execute(&mut *tx).await.during(DOING)?;
                    written.rows += count;
                    halves.written();
                    self.poison.cured(part.into_iter().map(|(job, _)| job));
                }
                Err(error) if is_of_a_row(&error) => {
                    sqlx::raw_sql(sql::UNDO).execute(&mut *tx).await.during(DOING)?;
                    if let Some((job, _)) = halves.failed(part) {
                        written.poison += 1;
                        let told = jobs_core::chain(&error);
                        self.poison.found(job, change.doing(), &told, self.clock.elapsed());
                        written.given_up = halves.is_given_up().then_some(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
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
    /// What is done, for the line that tells of a row.
    fn doing(&self) -> &'static str;

    /// Writes rows; answers how many.
    fn write(
        &mut self,
        tx: &mut SqliteConnection,
        now: Timestamp,
        rows: &[&SqliteRow],
    ) -> impl Future<Output = Result<usize>> + Send;
}

/// What became of rows that were written in halves.
pub(super) struct Written {
    rows: usize,
    /// How many can't be written at all.
    poison: usize,
    /// Why the rest was not tried.
    given_up: Option<StoreError>,
}

/// A write of the upkeep, made in halves where a row is in the way of the others.
pub(super) struct Upkeep<W> {
    together: W,
    many: Many,
    limit: u32,
    known: Known,
    way: Way,
}

impl<W: Write<Answer = u32>> Upkeep<W> {
    pub(super) fn new(together: W, many: Many, limit: u32, known: Known) -> Self {
        let way = known.way();
        Self { together, many, limit, known, way }
    }

    async fn in_halves(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<u32> {
        let (mut rows, mut given_up) = (0, None);
        while rows < self.limit && given_up.is_none() {
            let most = self.limit - rows;
            let found = self.many.find(now, most.saturating_add(self.known.paused()));
            let found = found.fetch_all(&mut *tx).await.during(DOING)?;
            let written = self.known.write_in_halves(tx, now, &mut self.many, &found, most).await?;
            rows = rows.saturating_add(u32::try_from(written.rows).unwrap_or(u32::MAX));
            given_up = written.given_up;
            if written.poison == 0 {
                break;
            }
        }
        match given_up {
            // Nothing at all is to be written.
            Some(error) if rows == 0 => Err(error),
            Some(_) | None => Ok(rows),
        }
    }
}

#[async_trait]
impl<W: Write<Answer = u32>> Write for Upkeep<W> {
    type Answer = u32;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<u32> {
        match self.way {
            Way::Together => {
                let tried = self.together.run(tx, now).await;
                self.way.tried(tried)
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

    fn wakes(&self, rows: &u32) -> bool {
        self.together.wakes(rows)
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
    fn doing(&self) -> &'static str {
        match self {
            Self::Promote => "promote a job",
            Self::Recall(_) => "recall a refused job",
            Self::Expire => "end an expired job",
            Self::Prune(_) => "prune a job",
        }
    }

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
