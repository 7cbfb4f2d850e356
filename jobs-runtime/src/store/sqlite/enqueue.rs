//! Storing new jobs.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use jobs_core::store::Enqueued;
use jobs_core::{BuildId, Due, JobId, NewJob, State, StoreError, StoreErrorKind, Timestamp};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::error::{During, Result, not_written};
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};

/// The largest payload that SQLite can take through a JSON array, where escapes may double it.
const LARGEST_PAYLOAD: usize = 256 * 1024 * 1024;
/// A statement takes rows until they have this many bytes, so that memory is bounded.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// A statement takes at most this many rows.
const CHUNK_ROWS: usize = 4096;

/// Jobs to be stored in one transaction.
pub(super) struct Enqueue {
    jobs: Vec<NewJob>,
}

impl Enqueue {
    /// # Errors
    /// [`StoreErrorKind::Invalid`] for a payload that SQLite can't keep.
    pub(super) fn new(jobs: &[NewJob]) -> Result<Self> {
        match jobs.iter().find(|job| job.payload.len() > LARGEST_PAYLOAD) {
            None => Ok(Self { jobs: jobs.to_vec() }),
            Some(job) => Err(StoreError::new(
                StoreErrorKind::Invalid,
                format!(
                    "a payload of {} has {} bytes, more than the {LARGEST_PAYLOAD} that the SQLite \
                     store keeps; store the bulk elsewhere and enqueue a reference",
                    job.kind,
                    job.payload.len()
                ),
            )),
        }
    }
}

#[async_trait]
impl Write for Enqueue {
    type Answer = Vec<Enqueued>;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Vec<Enqueued>> {
        if !has_scoped_twins(&self.jobs) {
            return store(tx, now, &self.jobs).await;
        }
        let mut answers = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            answers.extend(store(tx, now, std::slice::from_ref(job)).await?);
        }
        Ok(answers)
    }

    fn wakes(&self, _: &Vec<Enqueued>) -> bool {
        true
    }

    fn is_one_statement(&self) -> bool {
        matches!(&self.jobs[..], [job] if job.unique_key.is_none())
    }
}

/// Whether jobs of one key are among these of which any binds it beyond the wait: then what the first
/// does decides for the others, and they are stored one after another.
fn has_scoped_twins(jobs: &[NewJob]) -> bool {
    let mut seen = HashSet::new();
    let mut keys =
        jobs.iter().filter_map(|job| Some((job.kind.as_str(), job.unique_key.as_ref()?)));
    jobs.iter().any(|job| job.stored_scope().is_some()) && keys.any(|key| !seen.insert(key))
}

async fn store(
    tx: &mut SqliteConnection,
    now: Timestamp,
    jobs: &[NewJob],
) -> Result<Vec<Enqueued>> {
    let twins = twins(tx, jobs).await?;
    let mut fresh = jobs.iter().zip(&twins).filter(|(_, twin)| matches!(twin, Twin::None));
    let mut added = Vec::new();
    loop {
        let chunk = chunk(fresh.by_ref().map(|(job, _)| job));
        if chunk.is_empty() {
            break;
        }
        added.extend(insert(tx, now, &chunk).await?);
    }
    let answers = answers(&twins, &added);
    for (job, answer) in jobs.iter().zip(&answers) {
        if let Enqueued::AlreadyThere(id) = answer {
            renew(tx, now, *id, job).await?;
        }
    }
    Ok(answers)
}

/// What stands for a new job.
enum Twin {
    /// Nothing: it is stored.
    None,
    /// A job that waits already.
    Stored(JobId),
    /// An earlier element.
    Element(usize),
}

async fn twins(tx: &mut SqliteConnection, jobs: &[NewJob]) -> Result<Vec<Twin>> {
    let keyed = jobs.iter().enumerate().filter_map(|(element, job)| {
        let key = job.unique_key.as_ref()?;
        Some((element, (job.kind.as_str(), key.as_str())))
    });
    let keyed: Vec<_> = keyed.collect();
    let mut twins: Vec<Twin> = jobs.iter().map(|_| Twin::None).collect();
    let mut first = HashMap::new();
    for (element, key) in &keyed {
        let first = *first.entry(*key).or_insert(*element);
        if first != *element {
            twins[*element] = Twin::Element(first);
        }
    }
    for chunk in keyed.chunks(CHUNK_ROWS) {
        let scoped = |(element, _): &&(usize, _)| jobs[*element].unique_while.as_str().is_some();
        let scoped: Vec<_> = chunk.iter().filter(scoped).copied().collect();
        for (at, twin) in scoped_twins(tx, jobs, &scoped).await? {
            twins[scoped[at].0] = Twin::Stored(twin);
        }
        let keys: Vec<_> = chunk.iter().map(|(_, key)| *key).collect();
        let rows = sqlx::query(sql::ENQUEUE_TWINS).bind(json::rows(&keys)).fetch_all(&mut *tx);
        for row in rows.await.during("enqueueing jobs")? {
            let mut columns = Columns::new(&row);
            let (at, twin) = (columns.number(), columns.number());
            let at = usize::try_from(at.during("enqueueing jobs")?).unwrap_or_default();
            twins[chunk[at].0] = Twin::Stored(JobId(twin.during("enqueueing jobs")?));
        }
    }
    Ok(twins)
}

/// The jobs that bind the keys of these although they don't wait, with the place in the slice.
async fn scoped_twins(
    tx: &mut SqliteConnection,
    jobs: &[NewJob],
    scoped: &[(usize, (&str, &str))],
) -> Result<Vec<(usize, JobId)>> {
    const DOING: &str = "enqueueing jobs";
    if scoped.is_empty() {
        return Ok(Vec::new());
    }
    let keys = scoped
        .iter()
        .map(|(element, (kind, key))| (*kind, *key, jobs[*element].unique_while.as_str()));
    let keys = json::rows(&keys.collect::<Vec<_>>());
    let rows = sqlx::query(sql::ENQUEUE_SCOPED).bind(keys).fetch_all(tx).await.during(DOING)?;
    let twin = |row: &SqliteRow| {
        let mut columns = Columns::new(row);
        let at = usize::try_from(columns.number()?).unwrap_or_default();
        Ok((at, JobId(columns.number()?)))
    };
    rows.iter().map(twin).collect::<Result<_, _>>().during(DOING)
}

/// Gives a waiting job what the new one that it stands for brings.
async fn renew(tx: &mut SqliteConnection, now: Timestamp, id: JobId, new: &NewJob) -> Result<()> {
    const DOING: &str = "enqueueing jobs";
    let (replaces, reschedules) = (new.on_conflict.replaces(), new.on_conflict.reschedules());
    if !replaces && !reschedules {
        return Ok(());
    }
    let (due_at, state) = due(new, now);
    let renewed = sqlx::query(sql::ENQUEUE_RENEW)
        .bind(id.0)
        .bind(replaces)
        .bind(new.version.to_string())
        .bind(new.min_reader.to_string())
        .bind(new.payload.as_str())
        .bind(new.headers.as_deref())
        .bind(new.build.as_ref().map(BuildId::as_str))
        .bind(reschedules)
        .bind(state.as_str())
        .bind(due_at.as_micros())
        .bind(new.priority.value())
        .bind(expires_at(new, due_at))
        .execute(&mut *tx);
    if renewed.await.during(DOING)?.rows_affected() > 0 && replaces {
        let forget = sqlx::query(sql::PRUNE_CHECKPOINTS).bind(json::rows(&[id.0]));
        forget.execute(tx).await.during(DOING)?;
    }
    Ok(())
}

/// Takes jobs until a statement is full.
fn chunk<'a>(jobs: impl Iterator<Item = &'a NewJob>) -> Vec<&'a NewJob> {
    let mut bytes = 0;
    let mut chunk = Vec::new();
    for job in jobs {
        bytes += job.payload.len();
        chunk.push(job);
        if bytes >= CHUNK_BYTES || chunk.len() >= CHUNK_ROWS {
            break;
        }
    }
    chunk
}

async fn insert(
    tx: &mut SqliteConnection,
    now: Timestamp,
    jobs: &[&NewJob],
) -> Result<std::ops::RangeInclusive<i64>> {
    let insert = match jobs {
        [first, ..] if jobs.iter().all(|job| is_alike(first, job)) => {
            let rows = json::rows(&jobs.iter().map(|job| job.payload.as_str()).collect::<Vec<_>>());
            let (queue, kind, version, min_reader, _, headers, _, priority, state, due_at, ..) =
                row(first, now);
            sqlx::query(sql::ENQUEUE_ALIKE)
                .bind(rows)
                .bind(now.as_micros())
                .bind(queue)
                .bind(kind)
                .bind(version)
                .bind(min_reader)
                .bind(headers)
                .bind(priority)
                .bind(state)
                .bind(due_at)
                .bind(first.budget.max_failures)
                .bind(first.budget.max_interruptions)
                .bind(first.build.as_ref().map(BuildId::as_str))
        }
        _ => {
            let rows = json::rows(&jobs.iter().map(|job| row(job, now)).collect::<Vec<_>>());
            sqlx::query(sql::ENQUEUE).bind(rows).bind(now.as_micros())
        }
    };
    let inserted = insert.execute(tx).await.during("enqueueing jobs")?;
    let count = i64::try_from(jobs.len()).unwrap_or(i64::MAX);
    if inserted.rows_affected() != count.unsigned_abs() {
        return Err(not_written("enqueueing jobs"));
    }
    // One statement under the write lock: nobody else takes a number in between.
    let last = inserted.last_insert_rowid();
    Ok(last - count + 1..=last)
}

/// Whether two jobs have no key and no expiry, and differ in nothing but their payload.
fn is_alike(first: &NewJob, other: &NewJob) -> bool {
    let NewJob { queue, kind, version, min_reader, payload: _, headers, .. } = other;
    let NewJob { priority, due, unique_key, budget, build, expires_in, .. } = other;
    (kind, version, min_reader) == (&first.kind, &first.version, &first.min_reader)
        && (queue, priority, due) == (&first.queue, &first.priority, &first.due)
        && (budget, build, headers) == (&first.budget, &first.build, &first.headers)
        && unique_key.is_none()
        && expires_in.is_none()
}

type NewRow<'a> = (
    &'a str,
    &'a str,
    String,
    String,
    &'a str,
    Option<&'a str>,
    Option<&'a str>,
    i16,
    &'static str,
    i64,
    u32,
    Option<u32>,
    Option<&'a str>,
    Option<&'static str>,
    Option<i64>,
);

fn row(job: &NewJob, now: Timestamp) -> NewRow<'_> {
    let (due_at, state) = due(job, now);
    (
        job.queue.as_str(),
        job.kind.as_str(),
        job.version.to_string(),
        job.min_reader.to_string(),
        &job.payload,
        job.headers.as_deref(),
        job.unique_key.as_ref().map(AsRef::as_ref),
        job.priority.value(),
        state.as_str(),
        due_at.as_micros(),
        job.budget.max_failures,
        job.budget.max_interruptions,
        job.build.as_ref().map(AsRef::as_ref),
        job.stored_scope(),
        expires_at(job, due_at),
    )
}

/// When a new job is due, and whether that is now.
fn due(job: &NewJob, now: Timestamp) -> (Timestamp, State) {
    let due_at = match job.due {
        Due::Unchanged => now,
        Due::In(wait) => now.after(wait),
        Due::At(instant) => instant,
    };
    (due_at, if due_at <= now { State::Ready } else { State::Scheduled })
}

fn expires_at(job: &NewJob, due_at: Timestamp) -> Option<i64> {
    job.expires_in.map(|wait| due_at.after(wait).as_micros())
}

fn answers(twins: &[Twin], added: &[i64]) -> Vec<Enqueued> {
    let mut added = added.iter();
    let mut answers: Vec<Enqueued> = Vec::with_capacity(twins.len());
    for twin in twins {
        let answer = match twin {
            Twin::Stored(id) => Enqueued::AlreadyThere(*id),
            Twin::Element(first) => Enqueued::AlreadyThere(answers[*first].id()),
            Twin::None => {
                let id = added.next().expect("every job without a twin was stored");
                Enqueued::Added(JobId(*id))
            }
        };
        answers.push(answer);
    }
    answers
}
