//! Rows as values. Texts of a row are taken as they are; numbers and names are checked.

use std::collections::HashMap;
use std::time::Duration;

use jobs_core::store::{Brief, Drained, Phase, WorkerRecord};
use jobs_core::{
    Budget, COUNTER_MAX, ClaimNumber, ClaimedJob, Counters, Event, EventKind, Fence, JobId,
    JobRecord, Place, Priority, QueueName, RefusedBy, Run, State, StoreErrorKind, StoredCheckpoint,
    Timestamp, UniqueWhile, WorkerId,
};
use sqlx::postgres::{PgRow, Postgres};
use sqlx::{Decode, Row as _};

use super::error::{Attempt, Trouble};

/// Reads a row's columns in the order in which its statement names them.
pub(super) struct Columns<'r> {
    row: &'r PgRow,
    at: usize,
}

impl<'r> Columns<'r> {
    pub(super) fn of(row: &'r PgRow) -> Self {
        Self { row, at: 0 }
    }

    /// The next column. The statement of the file fixes its type, so it is not checked again.
    pub(super) fn next<T: Decode<'r, Postgres>>(&mut self) -> Attempt<T> {
        let value = self.row.try_get_unchecked(self.at)?;
        self.at += 1;
        Ok(value)
    }

    pub(super) fn id(&mut self) -> Attempt<JobId> {
        self.next().map(JobId)
    }

    pub(super) fn fence(&mut self) -> Attempt<Fence> {
        Ok(Fence { job: self.id()?, claim: ClaimNumber(self.next()?) })
    }

    pub(super) fn state(&mut self) -> Attempt<State> {
        let name: &str = self.next()?;
        State::from_name(name).ok_or_else(|| corrupt("state", name))
    }

    pub(super) fn counters(&mut self) -> Attempt<Counters> {
        Ok(Counters {
            failures: self.counter()?,
            interruptions: self.counter()?,
            crashes: self.counter()?,
            refusals: self.counter()?,
            snoozes: self.counter()?,
        })
    }

    fn counter(&mut self) -> Attempt<u32> {
        self.next().map(counted)
    }

    fn budget(&mut self) -> Attempt<Budget> {
        let max_failures = self.counter()?.max(1);
        let max_interruptions = self.next::<Option<i32>>()?.map(counted);
        Ok(Budget { max_failures, max_interruptions })
    }

    fn refused(&mut self) -> Attempt<Option<RefusedBy>> {
        let (reason, build): (Option<String>, Option<String>) = (self.next()?, self.next()?);
        Ok(reason.map(|reason| RefusedBy { reason, build: build.unwrap_or_default() }))
    }

    fn checkpoint(&mut self) -> Attempt<Option<StoredCheckpoint>> {
        let version: Option<String> = self.next()?;
        let min_reader = self.next()?;
        let text: Option<String> = self.next()?;
        let number: Option<i64> = self.next()?;
        Ok(version.map(|version| StoredCheckpoint {
            version,
            min_reader,
            text: text.unwrap_or_default(),
            number: number.unwrap_or_default(),
        }))
    }

    pub(super) fn at(&mut self) -> Attempt<Timestamp> {
        self.next().map(Timestamp::from_micros)
    }

    pub(super) fn at_if(&mut self) -> Attempt<Option<Timestamp>> {
        Ok(self.next::<Option<i64>>()?.map(Timestamp::from_micros))
    }
}

/// A job without what it carries.
pub(super) fn brief(row: &PgRow) -> Attempt<Brief> {
    let mut columns = Columns::of(row);
    Ok(Brief {
        id: columns.id()?,
        state: columns.state()?,
        queue: columns.next()?,
        kind: columns.next()?,
        version: columns.next()?,
        priority: Priority::clamped(columns.next::<i16>()?.into()),
        counters: columns.counters()?,
        refused: columns.refused()?,
        class: columns.next()?,
        build: columns.next()?,
        worker: columns.next::<Option<i64>>()?.map(WorkerId),
        unique_key: columns.next()?,
        enqueued_at: columns.at()?,
        due_at: columns.at()?,
        claimed_at: columns.at_if()?,
        finished_at: columns.at_if()?,
    })
}

/// A row of a claim.
pub(super) struct Taken {
    /// The job, without its checkpoint.
    pub(super) job: ClaimedJob,
    pub(super) has_checkpoint: bool,
    /// Whether jobs are left behind that nobody can claim.
    pub(super) has_exhausted: bool,
}

/// A job that was just claimed from one of these queues.
pub(super) fn taken(row: &PgRow, queues: &HashMap<&str, &QueueName>) -> Attempt<Taken> {
    let mut columns = Columns::of(row);
    let fence = columns.fence()?;
    let queue: &str = columns.next()?;
    let queue = *queues.get(queue).ok_or_else(|| corrupt("queue", queue))?;
    let mut job = ClaimedJob {
        fence,
        queue: queue.clone(),
        place: Place { at_us: columns.next()?, job: fence.job },
        kind: columns.next()?,
        version: columns.next()?,
        min_reader: columns.next()?,
        payload: columns.next()?,
        headers: columns.next()?,
        enqueued_at: columns.at()?,
        due_at: columns.at()?,
        counters: Counters::default(),
        budget: Budget { max_failures: 20, max_interruptions: None },
        checkpoint: None,
        refused: None,
        is_expired: false,
        key_number: 0,
    };
    let (mut has_checkpoint, mut has_exhausted) = (false, false);
    if let Some(text) = columns.next::<Option<&str>>()? {
        let past: Past = serde_json::from_str(text).map_err(|_| corrupt("past", text))?;
        (has_checkpoint, has_exhausted) = (past.11, past.12);
        past.put_into(&mut job);
    }
    Ok(Taken { job, has_checkpoint, has_exhausted })
}

/// The column of a claim for what a fresh job has not: counters, budget, refusal, whether it is
/// expired, the number of its idempotency key, and whether it has a checkpoint; and whether jobs are
/// left behind that nobody can claim.
#[derive(serde::Deserialize)]
struct Past(
    i32,
    i32,
    i32,
    i32,
    i32,
    i32,
    Option<i32>,
    Option<String>,
    Option<String>,
    bool,
    i32,
    bool,
    bool,
);

impl Past {
    fn put_into(self, job: &mut ClaimedJob) {
        let Self(failures, interruptions, crashes, refusals, snoozes, most, interrupted, ..) = self;
        job.counters = Counters {
            failures: counted(failures),
            interruptions: counted(interruptions),
            crashes: counted(crashes),
            refusals: counted(refusals),
            snoozes: counted(snoozes),
        };
        job.budget = Budget {
            max_failures: counted(most).max(1),
            max_interruptions: interrupted.map(counted),
        };
        let build = self.8.unwrap_or_default();
        (job.is_expired, job.key_number) = (self.9, counted(self.10));
        job.refused = self.7.map(|reason| RefusedBy { reason, build });
    }
}

/// The checkpoint of a job that was just claimed.
pub(super) fn claimed_checkpoint(row: &PgRow) -> Attempt<(JobId, Option<StoredCheckpoint>)> {
    let mut columns = Columns::of(row);
    Ok((columns.id()?, columns.checkpoint()?))
}

/// What a transition needs to know of a run that is taken back.
pub(super) fn run(row: &PgRow) -> Attempt<Run> {
    let mut columns = Columns::of(row);
    Ok(Run {
        fence: columns.fence()?,
        counters: columns.counters()?,
        budget: columns.budget()?,
        refused: columns.refused()?,
    })
}

/// All that is kept of a job.
pub(super) fn job(row: &PgRow) -> Attempt<JobRecord> {
    let mut columns = Columns::of(row);
    Ok(JobRecord {
        id: columns.id()?,
        state: columns.state()?,
        queue: columns.next()?,
        kind: columns.next()?,
        version: columns.next()?,
        min_reader: columns.next()?,
        payload: columns.next()?,
        headers: columns.next()?,
        unique_key: columns.next()?,
        priority: Priority::clamped(columns.next::<i16>()?.into()),
        claim: ClaimNumber(columns.next()?),
        worker: columns.next::<Option<i64>>()?.map(WorkerId),
        counters: columns.counters()?,
        budget: columns.budget()?,
        checkpoint: columns.checkpoint()?,
        refused: columns.refused()?,
        error_class: columns.next()?,
        error: columns.next()?,
        build: columns.next()?,
        enqueued_at: columns.at()?,
        due_at: columns.at()?,
        claimed_at: columns.at_if()?,
        finished_at: columns.at_if()?,
        unique_while: UniqueWhile::from_name(columns.next()?),
        expires_at: columns.at_if()?,
        key_number: columns.counter()?,
        progress: columns.next()?,
        result: columns.next()?,
    })
}

/// A line of a job's history; `None` when its kind has a name that this build does not know.
pub(super) fn event(row: &PgRow) -> Attempt<Option<Event>> {
    let mut columns = Columns::of(row);
    let (number, at, claim) = (columns.next()?, columns.at()?, ClaimNumber(columns.next()?));
    let Some(kind) = EventKind::from_name(columns.next()?) else {
        return Ok(None);
    };
    Ok(Some(Event {
        number,
        at,
        claim,
        kind,
        class: columns.next()?,
        text: columns.next()?,
        worker: columns.next::<Option<i64>>()?.map(WorkerId),
        build: columns.next()?,
    }))
}

/// A worker and how many runs it holds.
pub(super) fn worker(row: &PgRow) -> Attempt<WorkerRecord> {
    let mut columns = Columns::of(row);
    Ok(WorkerRecord {
        id: WorkerId(columns.next()?),
        name: columns.next()?,
        build: columns.next()?,
        manifest: columns.next()?,
        // A newer build may know more phases; for people, it works.
        phase: Phase::from_name(columns.next()?).unwrap_or(Phase::Working),
        started_at: columns.at()?,
        ended_at: columns.at_if()?,
        is_taken_back: columns.next()?,
        reclaimed: columns.next::<i64>()?.unsigned_abs(),
        drained: drained(&mut columns)?,
        held: columns.next::<i64>()?.unsigned_abs(),
    })
}

/// A worker's report, where it has left one.
fn drained(columns: &mut Columns<'_>) -> Attempt<Option<Drained>> {
    let mut next = || Ok::<_, Trouble>(columns.next::<Option<i64>>()?.map(i64::unsigned_abs));
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

/// A counter from its column. A negative one can only have been written by hand: nothing yet.
fn counted(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// A counter as its column takes it.
pub(super) fn counter(value: u32) -> i32 {
    i32::try_from(value.min(COUNTER_MAX)).unwrap_or(i32::MAX)
}

/// The place of a row within the arrays that were bound.
pub(super) fn element(position: i64, length: usize) -> Attempt<usize> {
    let element = usize::try_from(position).ok().filter(|element| *element < length);
    element.ok_or_else(|| corrupt("element", &position.to_string()))
}

fn corrupt(what: &str, found: &str) -> Trouble {
    let found: String = found.chars().take(64).collect();
    Trouble::new(StoreErrorKind::Corrupt, format!("a row holds the {what} {found:?}"))
}
