//! Taking ready jobs under a worker's lease.

use std::collections::HashMap;

use async_trait::async_trait;
use jobs_core::store::{Claim, Claimed, EXHAUSTED, Head};
use jobs_core::{
    Budget, ClaimedJob, Counters, EventKind, JobId, NewEvent, Place, Priority, QueueName,
    RefusedBy, StoredCheckpoint, Timestamp, WorkerId,
};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::error::{During, Result};
use super::event::{self, Line};
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
}

impl Take {
    pub(super) fn new(claim: Claim<'_>) -> Self {
        let limit = usize::try_from(claim.limit).unwrap_or(usize::MAX);
        Self { worker: claim.worker, heads: claim.heads.to_vec(), limit, most: None }
    }

    /// The same claim, of a queue of which at most so many jobs run in all workers.
    pub(super) fn within(self, most: u32) -> Self {
        Self { most: Some(most), ..self }
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
    type Answer = Claimed;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Claimed> {
        let limit = self.room(tx).await?;
        let mut jobs = take(tx, now, self.worker, &self.heads, limit).await?;
        if jobs.is_empty() && !is_open(tx, self.worker).await? {
            return Ok(Claimed::WorkerEnded);
        }
        // A job that can't be claimed may have stood before others.
        while jobs.len() < limit && end_exhausted(tx, now, &self.heads).await? {
            let heads = self.left(&jobs);
            jobs.extend(take(tx, now, self.worker, &heads, limit - jobs.len()).await?);
        }
        jobs.sort_unstable_by_key(|job| job.place);
        read_checkpoints(tx, &mut jobs).await?;
        Ok(Claimed::Jobs(jobs))
    }

    fn wakes(&self, _: &Claimed) -> bool {
        false
    }
}

async fn take(
    tx: &mut SqliteConnection,
    now: Timestamp,
    worker: WorkerId,
    heads: &[Head],
    limit: usize,
) -> Result<Vec<ClaimedJob>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = match heads {
        [] => return Ok(Vec::new()),
        [head] => {
            let (place, id) = start(head);
            sqlx::query(sql::CLAIM_HEAD)
                .bind(worker.0)
                .bind(now.as_micros())
                .bind(head.queue.as_str())
                .bind(head.route.as_str())
                .bind(place)
                .bind(id)
                .bind(limit.min(i64::from(head.limit)))
                .fetch_all(tx)
        }
        heads => {
            let row = |head: &Head| {
                let (place, id) = start(head);
                (head.queue.to_string(), head.route.to_string(), place, id, head.limit)
            };
            let rows: Vec<_> = heads.iter().map(row).collect();
            sqlx::query(sql::CLAIM)
                .bind(worker.0)
                .bind(now.as_micros())
                .bind(json::rows(&rows))
                .bind(limit)
                .fetch_all(tx)
        }
    };
    let rows = rows.await.during(DOING)?;
    let queues: HashMap<&str, &QueueName> =
        heads.iter().map(|head| (head.queue.as_str(), &head.queue)).collect();
    rows.iter().map(|row| job(row, &queues)).collect::<Result<_, _>>().during(DOING)
}

/// Behind which place and id a head starts.
fn start(head: &Head) -> (i64, i64) {
    head.after.map_or((i64::MIN, i64::MIN), |after| (after.at_us, after.job.0))
}

fn job(row: &SqliteRow, queues: &HashMap<&str, &QueueName>) -> Result<ClaimedJob, sqlx::Error> {
    let mut columns = Columns::new(row);
    let fence = columns.fence()?;
    let queue = columns.text()?;
    let priority = Priority::clamped(columns.number()?);
    let queue =
        *queues.get(queue.as_str()).expect("a job is taken from a queue that was asked for");
    let mut job = ClaimedJob {
        fence,
        queue: queue.clone(),
        kind: columns.text()?,
        version: columns.text()?,
        min_reader: columns.text_or_null()?,
        payload: columns.text()?,
        headers: columns.text_or_null()?,
        enqueued_at: columns.instant()?,
        due_at: columns.instant()?,
        place: Place { at_us: 0, job: fence.job },
        checkpoint: None,
        counters: Counters::default(),
        budget: Budget::default(),
        refused: None,
        is_expired: false,
        key_number: 0,
    };
    job.place = priority.place(job.due_at, fence.job);
    if let Some(past) = columns.text_or_null()? {
        remember(&mut job, &past);
    }
    Ok(job)
}

/// What a fresh job has not, as the statement puts it: counters, budget, refusal, how many checkpoints
/// were saved, and whether it is expired and the number of its idempotency key.
type Past = (
    (i64, i64, i64, i64, i64),
    (i64, Option<i64>),
    Option<(Option<String>, Option<String>)>,
    i64,
    (i64, i64),
);

/// Adds what a fresh job has not. The statement made the text, so it is read, or a part of it was no
/// UTF-8: then the job goes on with a fresh one's counters rather than stopping the others.
fn remember(job: &mut ClaimedJob, past: &str) {
    let Ok((counters, (most, most_interruptions), refused, checkpoints, (is_expired, key_number))) =
        serde_json::from_str::<Past>(past)
    else {
        return;
    };
    let (failures, interruptions, crashes, refusals, snoozes) = counters;
    job.counters = Counters {
        failures: count(failures),
        interruptions: count(interruptions),
        crashes: count(crashes),
        refusals: count(refusals),
        snoozes: count(snoozes),
    };
    job.budget = budget(most, most_interruptions);
    let refused = refused.and_then(|(why, who)| Some((why?, who.unwrap_or_default())));
    job.refused = refused.map(|(reason, build)| RefusedBy { reason, build });
    job.is_expired = is_expired != 0;
    job.key_number = count(key_number);
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
