//! What a store keeps of a job, as workers and people see it.
//!
//! Kind, version and payload of a row are text: other languages and newer builds write them too,
//! so they are parsed where they are judged, and one bad row is one bad value.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::clock::Timestamp;
use crate::envelope::UniqueWhile;
use crate::id::{ClaimNumber, Fence, JobId, WorkerId};
use crate::job::DecodeError;
use crate::name::QueueName;
use crate::route::Route;
use crate::state::State;

/// How urgent a job is: from -100 to 100, higher first, 0 by default.
///
/// Ready jobs of a queue run in order of their [`Place`]: when each fell due, moved ahead by
/// [`AGEING_STEP`](Self::AGEING_STEP) for every step of priority. So a job that has waited that
/// long stands beside a fresh one of the next priority, and nothing waits for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(i16);

/// A job's place among the ready jobs of its queue: lower runs first.
///
/// The instant at which it fell due, in microseconds, less [`Priority::AGEING_STEP`] for every step
/// of priority; equal places run in order of id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The due instant moved by the priority.
    pub at_us: i64,
    /// The tie-breaker.
    pub job: JobId,
}

impl Place {
    /// No job stands before it.
    pub const FIRST: Self = Self { at_us: i64::MIN, job: JobId(i64::MIN) };
}

impl Priority {
    /// The lowest priority.
    pub const LOWEST: Self = Self(-100);
    /// The highest priority.
    pub const HIGHEST: Self = Self(100);
    /// The wait that is worth one step of priority: 5 minutes.
    pub const AGEING_STEP: Duration = Duration::from_mins(5);

    /// A priority; `None` outside -100 to 100.
    pub const fn new(value: i16) -> Option<Self> {
        if value < Self::LOWEST.0 || value > Self::HIGHEST.0 { None } else { Some(Self(value)) }
    }

    /// The nearest priority to a stored number, which another language may have written.
    pub fn clamped(value: i64) -> Self {
        let value = value.clamp(i64::from(Self::LOWEST.0), i64::from(Self::HIGHEST.0));
        Self(i16::try_from(value).unwrap_or_default())
    }

    /// The priority as a number.
    pub const fn value(self) -> i16 {
        self.0
    }

    /// The place of a job of this priority that fell due at an instant.
    pub fn place(self, due_at: Timestamp, job: JobId) -> Place {
        let ahead = i64::from(self.0).saturating_mul(crate::clock::micros(Self::AGEING_STEP));
        Place { at_us: due_at.as_micros().saturating_sub(ahead), job }
    }
}

/// What has happened to a job so far. Every counter stays at its maximum once it gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counters {
    /// Runs that the handler failed.
    pub failures: u32,
    /// Runs that the infrastructure ended, since the checkpoint last moved.
    pub interruptions: u32,
    /// Consecutive leases that expired with no word from their worker.
    pub crashes: u32,
    /// Times a build gave the job back unread.
    pub refusals: u32,
    /// Times the handler put the job off.
    pub snoozes: u32,
}

/// The largest value of a counter: every store's column takes it.
pub const COUNTER_MAX: u32 = i32::MAX as u32;

/// What a job may use up, stamped on the row by its producer so that any build can keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// This many failures make a dead letter; at least 1.
    pub max_failures: u32,
    /// This many interruptions without progress make a dead letter; `None`: they never do.
    pub max_interruptions: Option<u32>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_failures: crate::Policy::DEFAULT.max_failures, max_interruptions: None }
    }
}

impl ClaimedJob {
    /// The route that it was claimed from.
    pub fn route(&self) -> Route {
        let route = Route::derive(&self.kind, &self.version, self.min_reader.as_deref());
        route.after_crashes(self.counters.crashes)
    }
}

/// A job that was just claimed: all that a worker needs to judge and run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// What every write about this run must still match.
    pub fence: Fence,
    /// The queue it was taken from.
    pub queue: QueueName,
    /// Where it stood in that queue.
    pub place: Place,
    /// The stored kind, not yet parsed.
    pub kind: String,
    /// The stored version, not yet parsed.
    pub version: String,
    /// The stored oldest reader, not yet parsed; `None`: the version itself.
    pub min_reader: Option<String>,
    /// The payload, exactly as it was enqueued.
    pub payload: String,
    /// The headers as a JSON object of texts, exactly as they were enqueued.
    pub headers: Option<String>,
    /// What has happened to it so far.
    pub counters: Counters,
    /// What it may use up.
    pub budget: Budget,
    /// The saved checkpoint.
    pub checkpoint: Option<StoredCheckpoint>,
    /// Why and by which build it was last given back unread.
    pub refused: Option<RefusedBy>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it fell due.
    pub due_at: Timestamp,
    /// Whether it was claimed too late: no run of it may start any more.
    pub is_expired: bool,
    /// How often a person gave it a new idempotency key.
    pub key_number: u32,
}

/// A refusal as it stands on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedBy {
    /// The stored name of the [`Refusal`](crate::Refusal).
    pub reason: String,
    /// The build that refused.
    pub build: String,
}

/// A checkpoint as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// The stored version, not yet parsed.
    pub version: String,
    /// The stored oldest reader, not yet parsed; `None`: the version itself.
    pub min_reader: Option<String>,
    /// Its JSON text.
    pub text: String,
    /// How many checkpoints the job has saved, this one included.
    pub number: i64,
}

/// The longest progress text, in bytes; longer ones are cut in the middle.
pub const MAX_PROGRESS_BYTES: usize = 1024;
/// The largest result: 16 KiB of JSON text.
pub const MAX_RESULT_BYTES: usize = 16 * 1024;

/// What a handler leaves on its job for people and for whoever waits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notes {
    /// How far it has come, storable and bounded; `None` leaves what stands there.
    pub progress: Option<String>,
    /// What came of it, as JSON text; `None` leaves what stands there.
    pub result: Option<String>,
}

/// A progress text to be written while its run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressNote {
    /// The run.
    pub fence: Fence,
    /// How far it has come, storable and bounded.
    pub text: String,
}

/// All that a store keeps of a job, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// The job.
    pub id: JobId,
    /// Where it is in its life.
    pub state: State,
    /// Its queue.
    pub queue: String,
    /// The stored kind.
    pub kind: String,
    /// The stored version.
    pub version: String,
    /// The stored oldest reader.
    pub min_reader: Option<String>,
    /// The payload, exactly as it was enqueued.
    pub payload: String,
    /// The headers as stored.
    pub headers: Option<String>,
    /// The key of a unique job.
    pub unique_key: Option<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// The number of its latest claim or taking back.
    pub claim: ClaimNumber,
    /// The worker that runs it, or whose run was its success.
    pub worker: Option<WorkerId>,
    /// What has happened to it so far.
    pub counters: Counters,
    /// What it may use up.
    pub budget: Budget,
    /// The saved checkpoint.
    pub checkpoint: Option<StoredCheckpoint>,
    /// Why and by which build it was last given back unread.
    pub refused: Option<RefusedBy>,
    /// The class of the latest failure, and of the dead letter.
    pub error_class: Option<String>,
    /// The text of the latest failure with its causes.
    pub error: Option<String>,
    /// The build that enqueued it.
    pub build: Option<String>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it is or was due.
    pub due_at: Timestamp,
    /// When its latest run was claimed.
    pub claimed_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// For how long it binds its unique key.
    pub unique_while: UniqueWhile,
    /// No run starts after this instant.
    pub expires_at: Option<Timestamp>,
    /// How often a person gave it a new idempotency key.
    pub key_number: u32,
    /// How far its handler said that it had come.
    pub progress: Option<String>,
    /// What came of it, as JSON text: what its handler left with a success.
    pub result: Option<String>,
}

impl JobRecord {
    /// The result as a value; `None` where the handler left none.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] when it is of another shape.
    pub fn result_as<T: DeserializeOwned>(&self) -> Result<Option<T>, DecodeError> {
        self.result.as_deref().map(DecodeError::from_json).transpose()
    }
}

/// What a line of a job's history is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// The handler failed.
    Failed,
    /// The infrastructure ended the run.
    Interrupted,
    /// The run's worker vanished.
    Crashed,
    /// A build gave the job back unread.
    Refused,
    /// A person ended the job, or a waiting twin superseded it.
    Cancelled,
    /// A person brought the job back.
    Redriven,
    /// A person changed when the job is due or how urgent it is.
    Rescheduled,
    /// The run's outcome could be stored only a while after its handler had ended.
    SettledLate,
    /// No live worker could read the job until its deadline.
    Stranded,
}

impl EventKind {
    /// All kinds of events.
    pub const ALL: [Self; 9] = [
        Self::Failed,
        Self::Interrupted,
        Self::Crashed,
        Self::Refused,
        Self::Cancelled,
        Self::Redriven,
        Self::Rescheduled,
        Self::SettledLate,
        Self::Stranded,
    ];

    /// The kind's stable name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Crashed => "crashed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Redriven => "redriven",
            Self::Rescheduled => "rescheduled",
            Self::SettledLate => "settled_late",
            Self::Stranded => "stranded",
        }
    }

    /// The kind of a stored name; `None` when no kind has that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A line of history to be written: what happened, without when and by whom, which the store adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// What the line is about.
    pub kind: EventKind,
    /// A stable name of the reason: an error class, a refusal, an interruption's reason.
    pub class: String,
    /// For people; already storable and bounded.
    pub text: String,
}

/// A line of a job's history.
///
/// A store keeps the latest [`MAX_EVENTS`] of each job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number within the job's history, from 1.
    pub number: i64,
    /// When it was written.
    pub at: Timestamp,
    /// The claim it is about.
    pub claim: ClaimNumber,
    /// What it is about.
    pub kind: EventKind,
    /// A stable name of the reason.
    pub class: String,
    /// For people.
    pub text: String,
    /// The worker that wrote it; `None` for a person's action.
    pub worker: Option<WorkerId>,
    /// The build that wrote it.
    pub build: Option<String>,
}

/// How many events a store keeps of one job; the oldest give way.
pub const MAX_EVENTS: i64 = 100;
