//! What people and tools change, and retention.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{
    CANCELLED, Cancelled, MAX_PAUSE_BYTES, Operate, REDRIVEN, REDRIVEN_TEXT, RESCHEDULED, RUN_NOW,
    RUN_NOW_TEXT, Redrive, Redriven, Reschedule, Retention, WORKERS_KEPT,
};
use jobs_core::{
    ClaimNumber, Due, EventKind, Fence, JobId, NewEvent, Priority, QueueName, State, Timestamp,
    micros, storable,
};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::checkpoint::id_rounds;
use super::error::{During, Result};
use super::event::{self, Line};
use super::row::Columns;
use super::writer::Write;
use super::{SqliteStore, json, sql};

#[async_trait]
impl Operate for SqliteStore {
    async fn cancel(&self, jobs: &[JobId]) -> Result<Vec<Cancelled>> {
        self.writer().write(Cancel { jobs: jobs.to_vec() }).await
    }

    async fn redrive(&self, jobs: &[JobId], redrive: Redrive) -> Result<Vec<Redriven>> {
        self.writer().write(BringBack { jobs: jobs.to_vec(), redrive }).await
    }

    async fn run_now(&self, jobs: &[JobId]) -> Result<Vec<bool>> {
        self.writer().write(RunNow { jobs: jobs.to_vec() }).await
    }

    async fn reschedule(&self, jobs: &[JobId], change: Reschedule) -> Result<Vec<bool>> {
        self.writer().write(ChangeWait { jobs: jobs.to_vec(), change }).await
    }

    async fn pause(&self, queue: &QueueName, by: &str, reason: &str) -> Result<()> {
        let [by, reason] = [by, reason].map(|text| storable(text, MAX_PAUSE_BYTES));
        self.writer().write(Pause { queue: queue.clone(), by, reason }).await
    }

    async fn resume(&self, queue: &QueueName) -> Result<()> {
        self.writer().write(Resume { queue: queue.clone() }).await
    }
}

/// What decides what may be done to a job.
struct Found {
    id: JobId,
    element: usize,
    state: State,
    claim: ClaimNumber,
    events: i64,
    key: Option<(String, String)>,
    finished_at: Option<Timestamp>,
    twin: Option<JobId>,
}

impl Found {
    fn line(&self, kind: EventKind, class: &str, text: &str) -> Line {
        let fence = Fence { job: self.id, claim: self.claim };
        let event = NewEvent { kind, class: class.to_owned(), text: text.to_owned() };
        Line { fence, number: event::next(self.events), event }
    }
}

async fn find(
    tx: &mut SqliteConnection,
    jobs: &[(usize, JobId)],
    doing: &str,
) -> Result<Vec<Found>> {
    let ids: Vec<_> = jobs.iter().map(|(_, id)| id.0).collect();
    let rows = sqlx::query(sql::OPERATE_READ).bind(json::rows(&ids)).fetch_all(tx).await;
    let found = |row: &SqliteRow| {
        let mut columns = Columns::new(row);
        let (element, id) = jobs[usize::try_from(columns.number()?).unwrap_or_default()];
        Ok(Found {
            id,
            element,
            state: columns.state()?,
            claim: ClaimNumber(columns.number()?),
            events: columns.number()?,
            key: Some(columns.text()?).zip(columns.text_or_null()?),
            finished_at: columns.instant_or_null()?,
            twin: columns.number_or_null()?.map(JobId),
        })
    };
    rows.during(doing)?.iter().map(found).collect::<Result<_, _>>().during(doing)
}

/// Writes lines of history and notes on their jobs how many they are.
async fn record(tx: &mut SqliteConnection, now: Timestamp, lines: &[Line]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    count_events(tx, lines).await?;
    event::record(tx, now, None, lines).await
}

/// Notes on the jobs of these lines how many events they have had.
pub(super) async fn count_events(tx: &mut SqliteConnection, lines: &[Line]) -> Result<()> {
    let counts: Vec<_> = lines.iter().map(|line| (line.fence.job.0, line.number)).collect();
    let count = sqlx::query(sql::COUNT_EVENTS).bind(json::rows(&counts));
    count.execute(tx).await.map(drop).during("writing history")
}

/// Runs a statement over job ids, unless there are none.
async fn over(
    tx: &mut SqliteConnection,
    statement: &'static str,
    ids: &[i64],
    now: Timestamp,
    doing: &str,
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(statement).bind(json::rows(ids)).bind(now.as_micros());
    query.execute(tx).await.map(drop).during(doing)
}

struct Cancel {
    jobs: Vec<JobId>,
}

#[async_trait]
impl Write for Cancel {
    type Answer = Vec<Cancelled>;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Vec<Cancelled>> {
        const DOING: &str = "cancelling jobs";
        let mut answers = vec![Cancelled::Missing; self.jobs.len()];
        for round in id_rounds(&self.jobs) {
            let (mut ended, mut requests, mut lines) = (Vec::new(), Vec::new(), Vec::new());
            for found in find(tx, &round, DOING).await? {
                answers[found.element] = match found.state {
                    State::Scheduled | State::Ready => {
                        ended.push(found.id.0);
                        let text = "cancelled while it waited";
                        lines.push(found.line(EventKind::Cancelled, CANCELLED, text));
                        Cancelled::Cancelled
                    }
                    State::Running => {
                        requests.push(Fence { job: found.id, claim: found.claim });
                        Cancelled::Requested
                    }
                    State::Succeeded | State::Dead | State::Cancelled => {
                        Cancelled::Finished(found.state)
                    }
                };
            }
            over(tx, sql::CANCEL_WAITING, &ended, now, DOING).await?;
            if !requests.is_empty() {
                let request = sqlx::query(sql::REQUEST_CANCEL).bind(json::fences(&requests));
                request.execute(&mut *tx).await.during(DOING)?;
            }
            record(tx, now, &lines).await?;
        }
        Ok(answers)
    }

    fn wakes(&self, _: &Vec<Cancelled>) -> bool {
        false
    }
}

struct BringBack {
    jobs: Vec<JobId>,
    redrive: Redrive,
}

#[async_trait]
impl Write for BringBack {
    type Answer = Vec<Redriven>;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Vec<Redriven>> {
        const DOING: &str = "redriving jobs";
        let mut answers = vec![Redriven::Missing; self.jobs.len()];
        for round in id_rounds(&self.jobs) {
            let mut waiting = HashMap::new();
            let (mut ready, mut lines) = (Vec::new(), Vec::new());
            for found in find(tx, &round, DOING).await? {
                let earlier = found.key.as_ref().and_then(|key| waiting.get(key).copied());
                let is_later = self
                    .redrive
                    .ended_before
                    .is_some_and(|before| found.finished_at >= Some(before));
                answers[found.element] = match (found.state, found.twin.or(earlier)) {
                    (State::Dead | State::Cancelled, Some(_) | None) if is_later => {
                        Redriven::EndedLater
                    }
                    (State::Dead | State::Cancelled, Some(twin)) => Redriven::TwinWaits(twin),
                    (State::Dead | State::Cancelled, None) => {
                        ready.push(found.id.0);
                        let text = REDRIVEN_TEXT;
                        lines.push(found.line(EventKind::Redriven, REDRIVEN, text));
                        if let Some(key) = found.key {
                            waiting.insert(key, found.id);
                        }
                        Redriven::Ready
                    }
                    (
                        State::Scheduled | State::Ready | State::Running | State::Succeeded,
                        Some(_) | None,
                    ) => Redriven::Not(found.state),
                };
            }
            self.write(tx, now, &ready).await?;
            record(tx, now, &lines).await?;
        }
        Ok(answers)
    }

    fn wakes(&self, _: &Vec<Redriven>) -> bool {
        true
    }
}

impl BringBack {
    async fn write(&self, tx: &mut SqliteConnection, now: Timestamp, ids: &[i64]) -> Result<()> {
        const DOING: &str = "redriving jobs";
        if ids.is_empty() {
            return Ok(());
        }
        let redrive = sqlx::query(sql::REDRIVE).bind(json::rows(ids)).bind(now.as_micros());
        let redrive = redrive.bind(self.redrive.keeps_counters).bind(self.redrive.makes_new_key);
        redrive.execute(&mut *tx).await.during(DOING)?;
        if self.redrive.forgets_checkpoint {
            over(tx, sql::FORGET_CHECKPOINTS, ids, now, DOING).await?;
            over(tx, sql::PRUNE_CHECKPOINTS, ids, now, DOING).await?;
        }
        Ok(())
    }
}

/// Writes a line of history of the rows that a statement changed, and answers whose they are.
async fn note(
    tx: &mut SqliteConnection,
    now: Timestamp,
    rows: &[SqliteRow],
    class: &str,
    text: &str,
    doing: &str,
) -> Result<HashSet<i64>> {
    let line = |row: &SqliteRow| {
        let mut columns = Columns::new(row);
        let fence = columns.fence()?;
        let event = NewEvent {
            kind: EventKind::Rescheduled,
            class: class.to_owned(),
            text: text.to_owned(),
        };
        Ok(Line { fence, number: event::next(columns.number()?), event })
    };
    let lines: Result<Vec<Line>, sqlx::Error> = rows.iter().map(line).collect();
    let lines = lines.during(doing)?;
    record(tx, now, &lines).await?;
    Ok(lines.iter().map(|line| line.fence.job.0).collect())
}

struct RunNow {
    jobs: Vec<JobId>,
}

#[async_trait]
impl Write for RunNow {
    type Answer = Vec<bool>;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Vec<bool>> {
        const DOING: &str = "making jobs ready";
        let ids: Vec<_> = self.jobs.iter().map(|id| id.0).collect();
        let query = sqlx::query(sql::RUN_NOW).bind(json::rows(&ids)).bind(now.as_micros());
        let rows = query.fetch_all(&mut *tx).await.during(DOING)?;
        let mut found = note(tx, now, &rows, RUN_NOW, RUN_NOW_TEXT, DOING).await?;
        // Of two equal elements the second finds it ready.
        Ok(ids.iter().map(|id| found.remove(id)).collect())
    }

    fn wakes(&self, _: &Vec<bool>) -> bool {
        true
    }
}

struct ChangeWait {
    jobs: Vec<JobId>,
    change: Reschedule,
}

#[async_trait]
impl Write for ChangeWait {
    type Answer = Vec<bool>;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Vec<bool>> {
        const DOING: &str = "rescheduling jobs";
        let ids: Vec<_> = self.jobs.iter().map(|id| id.0).collect();
        let due_at = match self.change.due {
            None | Some(Due::Unchanged) => None,
            Some(Due::In(wait)) => Some(now.after(wait)),
            Some(Due::At(instant)) => Some(instant),
        };
        let query = sqlx::query(sql::RESCHEDULE)
            .bind(json::rows(&ids))
            .bind(self.change.priority.map(Priority::value))
            .bind(due_at.map(Timestamp::as_micros))
            .bind(now.as_micros());
        let rows = query.fetch_all(&mut *tx).await.during(DOING)?;
        let changed = note(tx, now, &rows, RESCHEDULED, &self.change.text(), DOING).await?;
        Ok(ids.iter().map(|id| changed.contains(id)).collect())
    }

    fn wakes(&self, _: &Vec<bool>) -> bool {
        true
    }
}

struct Pause {
    queue: QueueName,
    by: String,
    reason: String,
}

#[async_trait]
impl Write for Pause {
    type Answer = ();

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<()> {
        let pause = sqlx::query(sql::PAUSE).bind(self.queue.as_str()).bind(self.by.as_str());
        let pause = pause.bind(self.reason.as_str()).bind(now.as_micros());
        pause.execute(tx).await.map(drop).during("pausing a queue")
    }

    fn wakes(&self, (): &()) -> bool {
        false
    }
}

struct Resume {
    queue: QueueName,
}

#[async_trait]
impl Write for Resume {
    type Answer = ();

    async fn run(&mut self, tx: &mut SqliteConnection, _: Timestamp) -> Result<()> {
        let resume = sqlx::query(sql::RESUME).bind(self.queue.as_str());
        resume.execute(tx).await.map(drop).during("resuming a queue")
    }

    fn wakes(&self, (): &()) -> bool {
        true
    }
}

const PRUNING: &str = "pruning jobs";

/// Forgets what is kept of jobs that were deleted.
pub(super) async fn forget_pruned(
    tx: &mut SqliteConnection,
    now: Timestamp,
    ids: &[i64],
) -> Result<()> {
    over(tx, sql::PRUNE_EVENTS, ids, now, PRUNING).await?;
    over(tx, sql::PRUNE_CHECKPOINTS, ids, now, PRUNING).await?;
    over(tx, sql::FORGET_CANCEL_REQUESTS, ids, now, PRUNING).await?;
    over(tx, sql::FORGET_ABANDONED, ids, now, PRUNING).await
}

/// Forgets at most so many workers and builds that nobody asks for any more.
pub(super) async fn prune_the_rest(
    tx: &mut SqliteConnection,
    now: Timestamp,
    limit: u32,
) -> Result<()> {
    let long_ago = now.as_micros().saturating_sub(micros(WORKERS_KEPT));
    let forget = sqlx::query_scalar(sql::PRUNE_WORKERS).bind(long_ago).bind(limit);
    let workers: Vec<i64> = forget.fetch_all(&mut *tx).await.during(PRUNING)?;
    over(tx, sql::PRUNE_DECLARATIONS, &workers, now, PRUNING).await?;
    let forget = sqlx::query(sql::PRUNE_BUILDS).bind(long_ago).bind(limit);
    forget.execute(tx).await.map(drop).during(PRUNING)
}

/// Finished jobs to be deleted.
pub(super) struct Prune {
    pub(super) retention: Retention,
    pub(super) limit: u32,
}

#[async_trait]
impl Write for Prune {
    type Answer = u32;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<u32> {
        let before = |kept: Duration| now.as_micros().saturating_sub(micros(kept));
        let Retention { succeeded, cancelled, dead } = self.retention;
        let prune = sqlx::query_scalar(sql::PRUNE)
            .bind(before(succeeded))
            .bind(before(cancelled))
            .bind(before(dead))
            .bind(self.limit);
        let ids: Vec<i64> = prune.fetch_all(&mut *tx).await.during(PRUNING)?;
        forget_pruned(tx, now, &ids).await?;
        if u32::try_from(ids.len()).is_ok_and(|pruned| pruned < self.limit) {
            prune_the_rest(tx, now, self.limit).await?;
        }
        Ok(u32::try_from(ids.len()).unwrap_or(u32::MAX))
    }

    fn wakes(&self, _: &u32) -> bool {
        false
    }
}
