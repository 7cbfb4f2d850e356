//! What people and tools look at. Each answer is one statement, so no read stays open.

use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{
    BuildRecord, Count, Drained, Filter, Inspect, Paused, Phase, Waiting, WorkerRecord,
};
use jobs_core::{Event, JobId, JobRecord, WorkerId};
use sqlx::sqlite::SqliteRow;

use super::error::{During, Result};
use super::row::Columns;
use super::{SqliteStore, rollout, sql};

const DOING: &str = "looking at the store";

#[async_trait]
impl Inspect for SqliteStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>> {
        let row = sqlx::query(sql::JOB).bind(id.0).fetch_optional(self.reads()).await;
        let record = row.during(DOING)?.map(|row| Columns::new(&row).record());
        record.transpose().during(DOING)
    }

    async fn events(&self, id: JobId) -> Result<Vec<Event>> {
        let rows = sqlx::query(sql::EVENTS).bind(id.0).fetch_all(self.reads()).await;
        let events = rows.during(DOING)?.iter().map(|row| Columns::new(row).event()).collect();
        let events: Vec<_> = Result::<_, sqlx::Error>::during(events, DOING)?;
        Ok(events.into_iter().flatten().collect())
    }

    async fn jobs(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>> {
        let rows = sqlx::query(sql::JOBS)
            .bind(filter.state.map(jobs_core::State::as_str))
            .bind(filter.queue.as_deref())
            .bind(filter.kind.as_deref())
            .bind(filter.after.map(|id| id.0))
            .bind(limit)
            .fetch_all(self.reads());
        let rows = rows.await.during(DOING)?;
        rows.iter().map(|row| Columns::new(row).record()).collect::<Result<_, _>>().during(DOING)
    }

    async fn counts(&self) -> Result<Vec<Count>> {
        let rows = sqlx::query(sql::COUNTS).fetch_all(self.reads()).await.during(DOING)?;
        let mut counts = rows.iter().map(count).collect::<Result<Vec<Count>, _>>().during(DOING)?;
        counts.sort_unstable_by(|a, b| {
            let key = |count: &Count| {
                (count.queue.clone(), count.kind.clone(), count.version.clone(), count.state)
            };
            key(a).cmp(&key(b))
        });
        Ok(counts)
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        let rows = sqlx::query(sql::WAITING).fetch_all(self.reads()).await.during(DOING)?;
        let rows = rows.iter().map(rollout::waiting);
        let mut waiting = rows.collect::<Result<Vec<Waiting>, _>>().during(DOING)?;
        waiting.sort_unstable_by(|a, b| a.place().cmp(&b.place()));
        Ok(waiting)
    }

    async fn builds(&self) -> Result<Vec<BuildRecord>> {
        let rows = sqlx::query(sql::BUILDS).fetch_all(self.reads()).await.during(DOING)?;
        rows.iter().map(rollout::build).collect::<Result<_, _>>().during(DOING)
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        let rows = sqlx::query(sql::WORKERS).fetch_all(self.reads()).await.during(DOING)?;
        rows.iter().map(worker).collect::<Result<_, _>>().during(DOING)
    }

    async fn paused(&self) -> Result<Vec<Paused>> {
        let rows = sqlx::query(sql::PAUSED).fetch_all(self.reads()).await.during(DOING)?;
        rows.iter().map(paused).collect::<Result<_, _>>().during(DOING)
    }
}

fn count(row: &SqliteRow) -> Result<Count, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(Count {
        queue: columns.text()?,
        kind: columns.text()?,
        version: columns.text()?,
        state: columns.state()?,
        jobs: columns.number()?.max(0).unsigned_abs(),
    })
}

fn worker(row: &SqliteRow) -> Result<WorkerRecord, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(WorkerRecord {
        id: WorkerId(columns.number()?),
        name: columns.text()?,
        build: columns.text()?,
        manifest: columns.text()?,
        // A newer build may know more phases; for people, it works.
        phase: Phase::from_name(&columns.text()?).unwrap_or(Phase::Working),
        started_at: columns.instant()?,
        ended_at: columns.instant_or_null()?,
        is_taken_back: columns.flag()?,
        reclaimed: columns.number()?.max(0).unsigned_abs(),
        drained: drained(&mut columns)?,
        held: columns.number()?.max(0).unsigned_abs(),
    })
}

/// A worker's report, where it has left one.
fn drained(columns: &mut Columns<'_>) -> Result<Option<Drained>, sqlx::Error> {
    let mut next = || Ok::<_, sqlx::Error>(columns.number_or_null()?.map(i64::unsigned_abs));
    let (settled, interrupted, released) = (next()?, next()?, next()?);
    let (abandoned, took_us) = (next()?, next()?);
    Ok(settled.map(|settled| Drained {
        settled,
        interrupted: interrupted.unwrap_or(0),
        released: released.unwrap_or(0),
        abandoned: abandoned.unwrap_or(0),
        took: Duration::from_micros(took_us.unwrap_or(0)),
    }))
}

fn paused(row: &SqliteRow) -> Result<Paused, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(Paused {
        queue: columns.text()?,
        by: columns.text()?,
        reason: columns.text()?,
        at: columns.instant()?,
    })
}
