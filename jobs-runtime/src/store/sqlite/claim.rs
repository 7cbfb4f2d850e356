//! Taking ready jobs under a worker's lease.

use std::collections::HashMap;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use jobs_core::store::{Claim, Claimed, EXHAUSTED, Head};
use jobs_core::{
    Budget, ClaimNumber, ClaimedJob, Counters, EventKind, Fence, JobId, NewEvent, Priority,
    QueueName, RefusedBy, StoreError, StoreErrorKind, StoredCheckpoint, Timestamp, WorkerId,
};
use serde::Deserialize;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Either, Executor, Sqlite, SqliteConnection};

use super::error::{During, Result, is_too_big, not_written};
use super::event::{self, Line};
use super::finish::finish;
use super::json::Text;
use super::row::{Columns, budget, count};
use super::writer::Write;
use super::{json, sql};

const DOING: &str = "claiming jobs";
const EXHAUSTED_TEXT: &str = "the claim number is at its maximum and can't grow any more";

/// A claim to be made.
pub(super) struct Take {
    worker: WorkerId,
    heads: Vec<Head>,
    limit: usize,
    /// At most so many of the heads' one queue run in all workers.
    most: Option<u32>,
    /// Whether no other write is likely to share its transaction.
    is_alone: bool,
}

impl Take {
    pub(super) fn new(claim: Claim<'_>) -> Self {
        let limit = usize::try_from(claim.limit).unwrap_or(usize::MAX);
        let heads = claim.heads.to_vec();
        Self { worker: claim.worker, heads, limit, most: None, is_alone: false }
    }

    /// The same claim, of a queue of which at most so many jobs run in all workers.
    pub(super) fn within(self, most: u32) -> Self {
        Self { most: Some(most), ..self }
    }

    /// The same claim, of few jobs, with which no other write is likely to come.
    pub(super) fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// How many jobs may be taken.
    async fn room(&self, tx: &mut SqliteConnection) -> Result<usize> {
        let Some((most, head)) = self.most.zip(self.heads.first()) else {
            return Ok(self.limit);
        };
        let running = sqlx::query_scalar(sql::RUNNING_IN).bind(head.queue.as_str()).bind(most);
        let running: i64 = running.fetch_one(tx).await.during(DOING)?;
        let room = i64::from(most).saturating_sub(running);
        Ok(self.limit.min(usize::try_from(room).unwrap_or_default()))
    }

    /// What is left of the heads once these jobs are taken.
    fn left(&self, jobs: &[ClaimedJob]) -> Vec<Head> {
        let mut taken = HashMap::new();
        for job in jobs {
            *taken.entry((&job.queue, job.route())).or_insert(0_u32) += 1;
        }
        let left = |head: &Head| {
            let taken = taken.get(&(&head.queue, head.route.clone())).copied().unwrap_or_default();
            Head { limit: head.limit.saturating_sub(taken), ..head.clone() }
        };
        self.heads.iter().map(left).collect()
    }
}

#[async_trait]
impl Write for Take {
    type Answer = Taken;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Taken> {
        let limit = self.room(tx).await?;
        let batch = take(tx, now, self.worker, &self.heads, limit).await?;
        if batch.count == 0 && !is_open(tx, self.worker).await? {
            return Ok(Taken::WorkerEnded);
        }
        if batch.count >= limit && !batch.has_checkpoints {
            return Ok(Taken::Unread(batch.jobs));
        }
        let mut jobs = read(&batch.jobs, &self.heads)?;
        // A job that can't be claimed may have stood before others.
        while jobs.len() < limit && end_exhausted(tx, now, &self.heads).await? {
            let heads = self.left(&jobs);
            let batch = take(tx, now, self.worker, &heads, limit - jobs.len()).await?;
            jobs.extend(read(&batch.jobs, &heads)?);
        }
        read_checkpoints(tx, &mut jobs).await?;
        Ok(Taken::Jobs(jobs))
    }

    fn wakes(&self, _: &Taken) -> bool {
        false
    }

    fn is_one_statement(&self) -> bool {
        self.is_alone && self.most.is_none() && self.heads.len() == 1
    }

    /// A job that can't be claimed is left for a claim in a transaction.
    async fn run_alone(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Taken> {
        let [head] = &self.heads[..] else { return self.run(tx, now).await };
        let batch = take_alone(tx, now, self.worker, head, self.limit).await?;
        if batch.count == 0 && !is_open(tx, self.worker).await? {
            return Ok(Taken::WorkerEnded);
        }
        if !batch.has_checkpoints {
            return Ok(Taken::Unread(batch.jobs));
        }
        let mut jobs = read(&batch.jobs, &self.heads)?;
        read_checkpoints(tx, &mut jobs).await.map_err(taken_unread)?;
        Ok(Taken::Jobs(jobs))
    }
}

/// Not as it is: what is busy would be tried again, and take others.
fn taken_unread(error: StoreError) -> StoreError {
    let what = "jobs were claimed, but their checkpoints could not be read";
    StoreError::new(StoreErrorKind::Unavailable, what).because(error)
}

/// What a claim gave.
pub(super) enum Taken {
    WorkerEnded,
    /// As the statement put it. Reading it is for the caller, when others may write already.
    Unread(Vec<u8>),
    Jobs(Vec<ClaimedJob>),
}

impl Taken {
    /// The jobs in order of place.
    pub(super) fn claimed(self, heads: &[Head]) -> Result<Claimed> {
        let mut jobs = match self {
            Self::WorkerEnded => return Ok(Claimed::WorkerEnded),
            Self::Unread(jobs) => read(&jobs, heads)?,
            Self::Jobs(jobs) => jobs,
        };
        jobs.sort_unstable_by_key(|job| job.place);
        Ok(Claimed::Jobs(jobs))
    }
}

/// What one statement took.
#[derive(Default)]
struct Batch {
    count: usize,
    has_checkpoints: bool,
    /// Rows as JSON.
    jobs: Vec<u8>,
}

/// Reads the first jobs of these heads, and takes what was read. Fewer than asked for, where so many
/// are more than SQLite keeps in one value.
async fn take(
    tx: &mut SqliteConnection,
    now: Timestamp,
    worker: WorkerId,
    heads: &[Head],
    limit: usize,
) -> Result<Batch> {
    let mut limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let row = loop {
        let first = match heads {
            [] => return Ok(Batch::default()),
            [head] => first_of_one(tx, now, worker, head, limit).await,
            heads => first_of_all(tx, now, worker, heads, limit).await,
        };
        match first {
            Err(error) if is_too_big(&error) && limit > 1 => limit /= 2,
            first => break first.during(DOING)?,
        }
    };
    let mut columns = Columns::new(&row);
    let (ids, count, resumed, jobs) = (|| {
        Ok((columns.text()?, columns.number()?, columns.number()?, columns.bytes()?.to_vec()))
    })()
    .during(DOING)?;
    let batch = Batch { count: size(count), has_checkpoints: resumed > 0, jobs };
    if batch.count > 0 {
        let take = sqlx::query(sql::CLAIM_TAKE).bind(worker.0).bind(now.as_micros()).bind(ids);
        let taken = finish(tx, take).await.during(DOING)?;
        if usize::try_from(taken) != Ok(batch.count) {
            return Err(not_written(DOING));
        }
    }
    Ok(batch)
}

/// Takes the first jobs of a head by one statement.
async fn take_alone(
    connection: &mut SqliteConnection,
    now: Timestamp,
    worker: WorkerId,
    head: &Head,
    limit: usize,
) -> Result<Batch> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let claim = head_of(sql::CLAIM_ALONE, now, worker, head, limit);
    let mut batch = Batch::default();
    // Its end, with which it is committed, comes after the last row: see `finish`.
    let mut results = connection.fetch_many(claim);
    while let Some(result) = results.try_next().await.during(DOING)? {
        let row = match result {
            Either::Left(_) => break,
            Either::Right(row) => row,
        };
        let mut columns = Columns::new(&row);
        batch.has_checkpoints |= columns.flag().during(DOING)?;
        batch.jobs.push(if batch.count == 0 { b'[' } else { b',' });
        batch.jobs.extend_from_slice(columns.bytes().during(DOING)?);
        batch.count += 1;
    }
    if batch.count > 0 {
        batch.jobs.push(b']');
    }
    Ok(batch)
}

async fn first_of_one(
    tx: &mut SqliteConnection,
    now: Timestamp,
    worker: WorkerId,
    head: &Head,
    limit: i64,
) -> Result<SqliteRow, sqlx::Error> {
    head_of(sql::CLAIM_HEAD, now, worker, head, limit).fetch_one(tx).await
}

/// A statement about one head.
fn head_of<'a>(
    statement: &'static str,
    now: Timestamp,
    worker: WorkerId,
    head: &'a Head,
    limit: i64,
) -> Query<'a, Sqlite, SqliteArguments> {
    sqlx::query(statement)
        .bind(worker.0)
        .bind(now.as_micros())
        .bind(head.queue.as_str())
        .bind(head.route.as_str())
        .bind(head.from.at_us)
        .bind(head.from.job.0)
        .bind(limit.min(i64::from(head.limit)))
}

async fn first_of_all(
    tx: &mut SqliteConnection,
    now: Timestamp,
    worker: WorkerId,
    heads: &[Head],
    limit: i64,
) -> Result<SqliteRow, sqlx::Error> {
    let row = |head: &Head| {
        let from = head.from;
        (head.queue.to_string(), head.route.to_string(), from.at_us, from.job.0, head.limit)
    };
    let rows: Vec<_> = heads.iter().map(row).collect();
    sqlx::query(sql::CLAIM)
        .bind(worker.0)
        .bind(now.as_micros())
        .bind(json::rows(&rows))
        .bind(limit)
        .fetch_one(tx)
        .await
}

fn size(count: i64) -> usize {
    usize::try_from(count).unwrap_or_default()
}

/// A job as the statement puts it: its id and claim number, queue, priority, kind, version, oldest
/// reader, payload, headers, when it was enqueued and was due, and what a fresh job has not.
#[derive(Deserialize)]
struct Packed(
    i64,
    i64,
    Text,
    i64,
    Text,
    Text,
    Option<Text>,
    Text,
    Option<Text>,
    i64,
    i64,
    Option<Past>,
);

/// Counters, budget, refusal, how many checkpoints were saved, and whether it is expired and the
/// number of its idempotency key.
type Past =
    ((i64, i64, i64, i64, i64), (i64, Option<i64>), (Option<Text>, Option<Text>), i64, (i64, i64));

/// Reads what a statement took from these heads.
fn read(jobs: &[u8], heads: &[Head]) -> Result<Vec<ClaimedJob>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let packed: Vec<Packed> = serde_json::from_slice(jobs)
        .map_err(|error| sqlx::Error::Decode(error.into()))
        .during(DOING)?;
    let queues: HashMap<&str, &QueueName> =
        heads.iter().map(|head| (head.queue.as_str(), &head.queue)).collect();
    Ok(packed.into_iter().map(|packed| job(packed, &queues)).collect())
}

fn job(packed: Packed, queues: &HashMap<&str, &QueueName>) -> ClaimedJob {
    let Packed(id, claim, queue, priority, kind, version, min_reader, payload, headers, ..) =
        packed;
    let Packed(.., enqueued_at, due_at, past) = packed;
    let queue = *queues.get(&*queue.0).expect("a job is taken from a queue that was asked for");
    let fence = Fence { job: JobId(id), claim: ClaimNumber(claim) };
    let due_at = Timestamp::from_micros(due_at);
    let mut job = ClaimedJob {
        fence,
        queue: queue.clone(),
        kind: kind.0,
        version: version.0,
        min_reader: min_reader.map(|text| text.0),
        payload: payload.0,
        headers: headers.map(|text| text.0),
        enqueued_at: Timestamp::from_micros(enqueued_at),
        due_at,
        place: Priority::clamped(priority).place(due_at, fence.job),
        checkpoint: None,
        counters: Counters::default(),
        budget: Budget::default(),
        refused: None,
        is_expired: false,
        key_number: 0,
    };
    if let Some(past) = past {
        remember(&mut job, past);
    }
    job
}

/// Adds what a fresh job has not.
fn remember(job: &mut ClaimedJob, past: Past) {
    let (counters, (most, most_interruptions), (reason, build), checkpoints, rare) = past;
    let (failures, interruptions, crashes, refusals, snoozes) = counters;
    job.counters = Counters {
        failures: count(failures),
        interruptions: count(interruptions),
        crashes: count(crashes),
        refusals: count(refusals),
        snoozes: count(snoozes),
    };
    job.budget = budget(most, most_interruptions);
    job.refused = reason.map(|reason| RefusedBy {
        reason: reason.0,
        build: build.map(|text| text.0).unwrap_or_default(),
    });
    (job.is_expired, job.key_number) = (rare.0 != 0, count(rare.1));
    // Its number alone, until the checkpoint is read.
    job.checkpoint = (checkpoints > 0).then(|| StoredCheckpoint {
        version: String::new(),
        min_reader: None,
        text: String::new(),
        number: checkpoints,
    });
}

/// Reads the checkpoints of those that have one.
async fn read_checkpoints(tx: &mut SqliteConnection, jobs: &mut [ClaimedJob]) -> Result<()> {
    let marked = jobs.iter_mut().filter_map(|job| job.checkpoint.take().map(|_| job.fence.job.0));
    let ids: Vec<i64> = marked.collect();
    if ids.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query(sql::CLAIMED_CHECKPOINTS).bind(json::rows(&ids)).fetch_all(tx).await;
    let read = |row: &SqliteRow| {
        let mut columns = Columns::new(row);
        Ok((JobId(columns.number()?), columns.checkpoint()?))
    };
    let rows = rows.during(DOING)?;
    let mut saved: HashMap<JobId, Option<StoredCheckpoint>> =
        rows.iter().map(read).collect::<Result<_, _>>().during(DOING)?;
    for job in jobs {
        job.checkpoint = saved.remove(&job.fence.job).flatten();
    }
    Ok(())
}

async fn is_open(tx: &mut SqliteConnection, worker: WorkerId) -> Result<bool> {
    sqlx::query_scalar(sql::WORKER_OPEN).bind(worker.0).fetch_one(tx).await.during(DOING)
}

/// Ends the jobs of these heads whose claim number can't grow; whether there were any.
async fn end_exhausted(tx: &mut SqliteConnection, now: Timestamp, heads: &[Head]) -> Result<bool> {
    let are_there: bool =
        sqlx::query_scalar(sql::HAS_EXHAUSTED).fetch_one(&mut *tx).await.during(DOING)?;
    if !are_there {
        return Ok(false);
    }
    let mut lines = Vec::new();
    for head in heads {
        let rows = sqlx::query(sql::EXHAUSTED_ENDED)
            .bind(head.queue.as_str())
            .bind(head.route.as_str())
            .bind(head.limit)
            .bind(now.as_micros())
            .bind(EXHAUSTED)
            .bind(EXHAUSTED_TEXT)
            .fetch_all(&mut *tx);
        for row in rows.await.during(DOING)? {
            lines.push(line(&row).during(DOING)?);
        }
    }
    event::record(tx, now, None, &lines).await?;
    Ok(!lines.is_empty())
}

fn line(row: &SqliteRow) -> Result<Line, sqlx::Error> {
    let mut columns = Columns::new(row);
    let fence = columns.fence()?;
    let (class, text) = (EXHAUSTED.to_owned(), EXHAUSTED_TEXT.to_owned());
    let event = NewEvent { kind: EventKind::Failed, class, text };
    Ok(Line { fence, number: columns.number()?, event })
}
