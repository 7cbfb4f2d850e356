//! What a rollout asks of the file: what waits, what is stranded, and which builds there are.

use async_trait::async_trait;
use jobs_core::store::{Author, BuildRecord, STRANDED, Strand, Waiting};
use jobs_core::{
    BuildId, ClaimNumber, EventKind, Fence, JobId, NewEvent, Route, Timestamp, micros,
};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

use super::error::{During, Result};
use super::event::{self, Line};
use super::operate::count_events;
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};

const DOING: &str = "ending stranded jobs";
/// What a stranded job's error says.
const WHY: &str = "no live worker could read it until its deadline";

/// Stranded jobs to be ended.
pub(super) struct End {
    by: Author,
    routes: String,
    waited: std::time::Duration,
    limit: u32,
}

impl End {
    pub(super) fn of(strand: &Strand<'_>) -> Self {
        let routes: Vec<_> = strand.routes.iter().map(Route::as_str).collect();
        let Strand { ref by, waited, limit, .. } = *strand;
        Self { by: by.clone(), routes: json::rows(&routes), waited, limit }
    }

    /// Whether there is any to be ended.
    pub(super) async fn finds_any(&self, reads: &SqlitePool, now: Timestamp) -> Result<bool> {
        let found = self.found(now, 1).fetch_optional(reads).await.during(DOING)?;
        Ok(self.limit > 0 && found.is_some())
    }

    fn found(&self, now: Timestamp, limit: u32) -> Query<'_, Sqlite, SqliteArguments> {
        let before = now.as_micros().saturating_sub(micros(self.waited));
        sqlx::query(sql::STRANDED_JOBS).bind(&self.routes).bind(before).bind(limit)
    }
}

#[async_trait]
impl Write for End {
    type Answer = u32;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<u32> {
        let rows = self.found(now, self.limit).fetch_all(&mut *tx).await.during(DOING)?;
        if rows.is_empty() {
            return Ok(0);
        }
        let lines = rows.iter().map(line).collect::<Result<Vec<_>, _>>().during(DOING)?;
        let ids: Vec<_> = lines.iter().map(|line| line.fence.job.0).collect();
        let end = sqlx::query(sql::STRAND).bind(json::rows(&ids)).bind(now.as_micros());
        end.bind(STRANDED).bind(WHY).execute(&mut *tx).await.during(DOING)?;
        count_events(tx, &lines).await?;
        event::record(tx, now, Some(&self.by), &lines).await?;
        Ok(u32::try_from(lines.len()).unwrap_or(u32::MAX))
    }

    fn wakes(&self, _: &u32) -> bool {
        false
    }
}

fn line(row: &SqliteRow) -> Result<Line, sqlx::Error> {
    let mut columns = Columns::new(row);
    let (job, claim) = (JobId(columns.number()?), ClaimNumber(columns.number()?));
    let number = event::next(columns.number()?);
    let (class, text) = (STRANDED.to_owned(), WHY.to_owned());
    let event = NewEvent { kind: EventKind::Stranded, class, text };
    Ok(Line { fence: Fence { job, claim }, number, event })
}

/// A build that says something about itself.
pub(super) struct Publish {
    pub(super) build: BuildId,
    pub(super) manifest: String,
}

#[async_trait]
impl Write for Publish {
    type Answer = ();

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<()> {
        let publish = sqlx::query(sql::PUBLISH)
            .bind(self.build.as_str())
            .bind(jobs_core::store::fingerprint(&self.manifest))
            .bind(self.manifest.as_str())
            .bind(now.as_micros());
        publish.execute(tx).await.map(drop).during("publishing a manifest")
    }

    fn wakes(&self, (): &()) -> bool {
        false
    }
}

pub(super) fn waiting(row: &SqliteRow) -> Result<Waiting, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(Waiting {
        queue: columns.text()?,
        kind: columns.text()?,
        version: columns.text()?,
        min_reader: columns.text_or_null()?,
        jobs: columns.number()?.max(0).unsigned_abs(),
        refused: columns.number()?.max(0).unsigned_abs(),
        oldest_at: columns.instant()?,
    })
}

pub(super) fn build(row: &SqliteRow) -> Result<BuildRecord, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(BuildRecord {
        build: columns.text()?,
        manifest: columns.text()?,
        seen_at: columns.instant()?,
    })
}
