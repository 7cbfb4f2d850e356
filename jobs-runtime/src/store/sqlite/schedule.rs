//! Schedules: declarations, and ticks that come once.

use async_trait::async_trait;
use jobs_core::store::{
    Advanced, Declaration, Declared, MAX_TICKS, ScheduleRecord, ScheduleView, Schedules, Step, Tick,
};
use jobs_core::{JobId, NewJob, ScheduleName, Timestamp, WorkerId};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::enqueue::Enqueue;
use super::error::{During, Result};
use super::row::Columns;
use super::writer::Write;
use super::{SqliteStore, json, sql};

const READING: &str = "reading schedules";

/// A person, in the place of a worker.
const PERSON: i64 = 0;

#[async_trait]
impl Schedules for SqliteStore {
    async fn declare(&self, by: Option<WorkerId>, declarations: &[Declaration]) -> Result<()> {
        self.writer().write(Declare { by, declarations: declarations.to_vec() }).await
    }

    async fn undeclare(&self, name: &ScheduleName) -> Result<bool> {
        self.writer().write(Undeclare { name: name.clone() }).await
    }

    async fn schedules(&self) -> Result<ScheduleView> {
        let now = self.clock().now();
        let rows = sqlx::query(sql::SCHEDULES).fetch_all(self.reads()).await.during(READING)?;
        let mut schedules: Vec<ScheduleRecord> = Vec::new();
        for row in &rows {
            let Some((record, declared)) = read(row).during(READING)? else { continue };
            if schedules.last().is_none_or(|last| last.name != record.name) {
                schedules.push(record);
            }
            if let Some(last) = schedules.last_mut() {
                last.declared.extend(declared);
            }
        }
        Ok(ScheduleView { now, schedules })
    }

    async fn advance(&self, step: &Step) -> Result<Advanced> {
        self.writer().write(Advance { step: step.clone() }).await
    }

    async fn ticks(&self, name: &ScheduleName) -> Result<Vec<Tick>> {
        let rows = sqlx::query(sql::TICKS).bind(name.as_str()).fetch_all(self.reads()).await;
        let tick = |row| {
            let mut columns = Columns::new(row);
            Ok(Tick { at: columns.instant()?, job: JobId(columns.number()?) })
        };
        rows.during(READING)?.iter().map(tick).collect::<Result<_, _>>().during(READING)
    }
}

/// A schedule and one of its declarations; nothing where its name is none of ours.
fn read(row: &SqliteRow) -> Result<Option<(ScheduleRecord, Option<Declared>)>, sqlx::Error> {
    let mut columns = Columns::new(row);
    let (name, text) = (columns.text()?, columns.text_or_null()?);
    let (next_at, last_at) = (columns.instant_or_null()?, columns.instant_or_null()?);
    let by = columns.number_or_null()?;
    let (since, declared) = (columns.instant()?, columns.text()?);
    let Ok(name) = ScheduleName::new(name) else { return Ok(None) };
    let declared = by.map(|by| {
        let by = (by != PERSON).then_some(WorkerId(by));
        Declared { by, since, text: declared }
    });
    Ok(Some((ScheduleRecord { name, text, next_at, last_at, declared: Vec::new() }, declared)))
}

struct Declare {
    by: Option<WorkerId>,
    declarations: Vec<Declaration>,
}

#[async_trait]
impl Write for Declare {
    type Answer = ();

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<()> {
        const DOING: &str = "declaring schedules";
        for Declaration { name, text } in &self.declarations {
            let add = sqlx::query(sql::SCHEDULE_ADD).bind(name.as_str());
            add.execute(&mut *tx).await.during(DOING)?;
            let declare = sqlx::query(sql::DECLARE)
                .bind(name.as_str())
                .bind(self.by.map_or(PERSON, |worker| worker.0))
                .bind(text)
                .bind(now.as_micros());
            declare.execute(&mut *tx).await.during(DOING)?;
        }
        Ok(())
    }

    fn wakes(&self, (): &()) -> bool {
        false
    }
}

struct Undeclare {
    name: ScheduleName,
}

#[async_trait]
impl Write for Undeclare {
    type Answer = bool;

    async fn run(&mut self, tx: &mut SqliteConnection, _: Timestamp) -> Result<bool> {
        let undeclare = sqlx::query(sql::UNDECLARE).bind(self.name.as_str()).execute(tx).await;
        Ok(undeclare.during("taking a schedule back")?.rows_affected() > 0)
    }

    fn wakes(&self, _: &bool) -> bool {
        false
    }
}

struct Advance {
    step: Step,
}

#[async_trait]
impl Write for Advance {
    type Answer = Advanced;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Advanced> {
        const DOING: &str = "moving a schedule on";
        let Step { name, seen_text, seen_next_at, text, next_at, ticks } = &self.step;
        let moved: Option<i64> = sqlx::query_scalar(sql::ADVANCE)
            .bind(name.as_str())
            .bind(seen_text)
            .bind(seen_next_at.map(Timestamp::as_micros))
            .bind(text)
            .bind(next_at.map(Timestamp::as_micros))
            .fetch_optional(&mut *tx)
            .await
            .during(DOING)?;
        let Some(mut last_us) = moved else { return Ok(Advanced::Outrun) };
        let mut is_new = Vec::with_capacity(ticks.len());
        let (mut fresh, mut jobs): (Vec<i64>, Vec<NewJob>) = (Vec::new(), Vec::new());
        for (at, job) in ticks {
            is_new.push(at.as_micros() > last_us);
            if at.as_micros() > last_us {
                last_us = at.as_micros();
                fresh.push(last_us);
                jobs.push(job.clone());
            }
        }
        if fresh.is_empty() {
            return Ok(Advanced::Moved(vec![None; ticks.len()]));
        }
        let enqueued = Enqueue::new(&jobs)?.run(&mut *tx, now).await?;
        let rows = fresh.iter().zip(&enqueued).map(|(at, job)| (*at, job.id().0));
        let rows = json::rows(&rows.collect::<Vec<_>>());
        let tick = sqlx::query(sql::TICK).bind(name.as_str()).bind(rows);
        tick.execute(&mut *tx).await.during(DOING)?;
        let ticked = sqlx::query(sql::TICKED).bind(name.as_str()).bind(last_us);
        ticked.execute(&mut *tx).await.during(DOING)?;
        let forget = sqlx::query(sql::FORGET_TICKS).bind(name.as_str()).bind(MAX_TICKS);
        forget.execute(tx).await.during(DOING)?;
        let mut enqueued = enqueued.into_iter();
        let answers = is_new.into_iter().map(|is_new| is_new.then(|| enqueued.next()).flatten());
        Ok(Advanced::Moved(answers.collect()))
    }

    fn wakes(&self, advanced: &Advanced) -> bool {
        match advanced {
            Advanced::Moved(jobs) => !jobs.is_empty(),
            Advanced::Outrun => false,
        }
    }
}
