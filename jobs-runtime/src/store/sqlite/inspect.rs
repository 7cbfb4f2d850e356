//! What people and tools look at. Each answer is one statement, so no read stays open.

use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{
    Brief, BuildRecord, Count, Depth, Drained, Filter, Inspect, Paused, Phase, Span, Waiting,
    WorkerRecord,
};
use jobs_core::{Event, JobId, JobRecord, Priority, Route, Timestamp, WorkerId};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow};

use super::error::{During, Result};
use super::row::Columns;
use super::{SqliteStore, json, rollout, sql};

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
        let rows =
            filtered(sql::JOBS, filter, limit).fetch_all(self.reads()).await.during(DOING)?;
        rows.iter().map(|row| Columns::new(row).record()).collect::<Result<_, _>>().during(DOING)
    }

    async fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>> {
        let rows = filtered(sql::NEWEST, filter, limit).fetch_all(self.reads()).await;
        let rows = rows.during(DOING)?;
        rows.iter().map(|row| Columns::new(row).record()).collect::<Result<_, _>>().during(DOING)
    }

    async fn briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>> {
        let rows = filtered(sql::BRIEFS, filter, limit).fetch_all(self.reads()).await;
        rows.during(DOING)?.iter().map(brief).collect::<Result<_, _>>().during(DOING)
    }

    async fn newest_briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>> {
        let rows = filtered(sql::NEWEST_BRIEFS, filter, limit).fetch_all(self.reads()).await;
        rows.during(DOING)?.iter().map(brief).collect::<Result<_, _>>().during(DOING)
    }

    async fn briefs_of(&self, jobs: &[JobId]) -> Result<Vec<Brief>> {
        let ids: Vec<i64> = jobs.iter().map(|id| id.0).collect();
        let briefs = sqlx::query(sql::BRIEFS_OF).bind(json::rows(&ids));
        let rows = briefs.fetch_all(self.reads()).await.during(DOING)?;
        rows.iter().map(brief).collect::<Result<_, _>>().during(DOING)
    }

    async fn depth(&self, most: u32) -> Result<Depth> {
        let states = sqlx::query(sql::DEPTH_STATES).bind(most).fetch_all(self.reads()).await;
        let routes = sqlx::query(sql::DEPTH_ROUTES).bind(most).fetch_all(self.reads()).await;
        let running = sqlx::query(sql::DEPTH_RUNNING).fetch_all(self.reads()).await;
        let state = |row| {
            let mut columns = Columns::new(row);
            Ok((columns.state()?, columns.amount()?))
        };
        let route = |row| {
            let mut columns = Columns::new(row);
            Ok((columns.text()?, columns.amount()?, columns.instant()?))
        };
        let queue = |row| {
            let mut columns = Columns::new(row);
            Ok((columns.text()?, columns.amount()?))
        };
        let states: Result<_, sqlx::Error> = states.during(DOING)?.iter().map(state).collect();
        let routes: Result<Vec<_>, sqlx::Error> = routes.during(DOING)?.iter().map(route).collect();
        let running: Result<Vec<_>, sqlx::Error> =
            running.during(DOING)?.iter().map(queue).collect();
        let (states, routes) = (states.during(DOING)?, routes.during(DOING)?);
        Ok(Depth::gather(states, routes, running.during(DOING)?, most))
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

    async fn count_due(&self, routes: &[Route], most: u32) -> Result<Vec<u64>> {
        let routes: Vec<_> = routes.iter().map(Route::as_str).collect();
        let count = sqlx::query(sql::COUNT_DUE).bind(json::rows(&routes)).bind(most);
        let rows = count.fetch_all(self.reads()).await.during(DOING)?;
        let jobs = rows.iter().map(|row| Columns::new(row).amount());
        jobs.collect::<Result<_, sqlx::Error>>().during(DOING)
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

/// A statement with what a filter binds.
fn filtered<'a>(
    statement: &'static str,
    filter: &'a Filter,
    limit: u32,
) -> Query<'a, Sqlite, SqliteArguments> {
    let Span { from: enqueued_from, before: enqueued_before } = filter.enqueued;
    let Span { from: ended_from, before: ended_before } = filter.finished;
    sqlx::query(statement)
        .bind(filter.state.map(jobs_core::State::as_str))
        .bind(filter.queue.as_deref())
        .bind(filter.kind.as_deref())
        .bind(filter.class.as_deref())
        .bind(filter.enqueued_by.as_deref())
        .bind(filter.failed_by.as_deref())
        .bind(enqueued_from.map(Timestamp::as_micros))
        .bind(enqueued_before.map(Timestamp::as_micros))
        .bind(ended_from.map(Timestamp::as_micros))
        .bind(ended_before.map(Timestamp::as_micros))
        .bind(filter.after.map(|id| id.0))
        .bind(limit)
}

fn brief(row: &SqliteRow) -> Result<Brief, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(Brief {
        id: JobId(columns.number()?),
        state: columns.state()?,
        queue: columns.text()?,
        kind: columns.text()?,
        version: columns.text()?,
        priority: Priority::clamped(columns.number()?),
        counters: columns.counters()?,
        refused: columns.refused()?,
        class: columns.text_or_null()?,
        build: columns.text_or_null()?,
        worker: columns.number_or_null()?.map(WorkerId),
        unique_key: columns.text_or_null()?,
        enqueued_at: columns.instant()?,
        due_at: columns.instant()?,
        claimed_at: columns.instant_or_null()?,
        finished_at: columns.instant_or_null()?,
    })
}

fn count(row: &SqliteRow) -> Result<Count, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(Count {
        queue: columns.text()?,
        kind: columns.text()?,
        version: columns.text()?,
        state: columns.state()?,
        jobs: columns.amount()?,
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
        reclaimed: columns.amount()?,
        drained: drained(&mut columns)?,
        held: columns.amount()?,
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
