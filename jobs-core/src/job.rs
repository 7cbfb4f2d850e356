//! What a type must say to be stored: its version, its kind, and the policy of its runs.
//!
//! The derives write these implementations; the traits are public so that errors can name them.
//! A payload crate needs only this crate.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::codec::EncodeError;
use crate::record::Budget;
use crate::retry::Ladder;
use crate::schedule::Schedule;
use crate::version::{Line, MinReader, Version};

/// A serialised shape with a version: a payload or a checkpoint.
///
/// It encodes and decodes itself instead of asking for serde's traits: the derive calls those where
/// rustc answers a missing one in a few lines about the type, not with a list of other types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no payload version",
    label = "this type is not a job, a past job or a checkpoint",
    note = "add `#[derive(Job)]`, `#[derive(PastJob)]` or `#[derive(Checkpoint)]` to `{Self}`"
)]
pub trait Versioned: Send + Sized + 'static {
    /// The version that this shape is written as.
    const VERSION: Version;
    /// The oldest reader that this shape is vouched for; its own version unless `readable_by` says
    /// otherwise.
    const MIN_READER: MinReader;
    /// Stands for the fields and their types as they are written: two builds with another number
    /// under one version have changed the shape and not the version. 0: unknown.
    const FINGERPRINT: u64 = 0;

    /// The lines that this type reads: its own and those of its `previous` chain, oldest first; none
    /// of [`NoCheckpoint`] alone.
    fn lines() -> Vec<Line>;

    /// Writes the shape as the text that is stored.
    ///
    /// # Errors
    /// [`EncodeError`] names the field that can't be kept.
    fn encode(&self) -> Result<String, EncodeError>;

    /// Reads a text that was written under `major`, through the `previous` chain when that is an
    /// older one.
    ///
    /// # Errors
    /// [`DecodeError`] says whether the text does not decode, an upcast refused it, or no line is of
    /// this major.
    fn decode(major: u32, text: &str) -> Result<Self, DecodeError>;
}

/// A versioned shape that belongs to a kind: a [`Job`] or what a job looked like in the past.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a payload",
    label = "this type has no kind",
    note = "add `#[derive(Job)]`, or `#[derive(PastJob)]` for the shape of an older major"
)]
pub trait Payload: Versioned {
    /// The stable name of the kind, well formed by [`is_kind`](crate::is_kind).
    const KIND: &'static str;
}

/// A payload in its newest shape: what is enqueued and what a handler receives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "this type can't be enqueued or handled",
    note = "add `#[derive(Job)]` and `#[job(kind = \"…\", version = \"1.0.0\")]` to `{Self}`"
)]
pub trait Job: Payload {
    /// The checkpoint that its handler saves; [`NoCheckpoint`] when it saves none.
    type Checkpoint: Checkpoint;
    /// Other kinds under which rows of this job may be stored, from before a rename.
    const ALIASES: &'static [&'static str] = &[];
    /// The policy of its runs.
    const POLICY: Policy = Policy::DEFAULT;

    /// The waits between its failures. Default: [`Ladder::default`].
    fn retry() -> Ladder {
        Ladder::default()
    }

    /// The key that makes it unique, made of its own fields; `None`: it has none.
    ///
    /// # Errors
    /// [`EncodeError`] names the field that can't be kept.
    fn unique_key(&self) -> Option<Result<String, EncodeError>> {
        None
    }

    /// When it is enqueued by the clock; a worker that handles it declares these. Default: never.
    fn schedules() -> Vec<Schedule> {
        Vec::new()
    }
}

/// A versioned record of how far a handler has come.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a checkpoint",
    label = "this type can't be saved by a handler",
    note = "add `#[derive(Checkpoint)]` and `#[checkpoint(version = \"1.0.0\")]` to `{Self}`"
)]
pub trait Checkpoint: Versioned {}

/// What a kind asks of its queue and its runs; the derive's attributes set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The queue of its jobs unless the enqueue names another. Default: `default`.
    pub queue: &'static str,
    /// From -100 to 100, higher first. Default: 0. See [`Priority`](crate::Priority).
    pub priority: i16,
    /// How many failures make the job a dead letter, at least 1. Default: 20, which with the
    /// default ladder spans about four and a half days.
    pub max_failures: u32,
    /// How long one run may take. Default: no limit.
    pub timeout: Option<Duration>,
    /// How long a job may wait for a run to start, from when it is due; then it is dead, with the class
    /// `expired`. Zero is no time to start, and refused at the enqueue. Default: no limit.
    pub expires_in: Option<Duration>,
    /// What becomes of a run that a drain meets. Default: [`OnStop::GiveBack`].
    pub on_stop: OnStop,
    /// Checkpoints of a run are written at most this often; what was not written is when the run
    /// ends. Default: each is written.
    pub checkpoint_every: Option<Duration>,
    /// Whether a checkpoint that moved leaves the failures counted. Default: it does not, since who
    /// gets on has not failed.
    pub keeps_failures: bool,
    /// What follows from a checkpoint that is older than this build reads. Default: a refusal.
    pub on_old_checkpoint: OldCheckpoint,
}

/// What becomes of a run of a kind when its worker is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnStop {
    /// It is asked to return, then aborted, and the job given back: the next run goes on from the
    /// checkpoint, or begins anew.
    #[default]
    GiveBack,
    /// It is left to finish for as long as the budget lasts: only when that ends is it aborted and
    /// given back.
    Finish,
    /// As [`GiveBack`](Self::GiveBack), but what it left behind outside the store is undone first,
    /// by the handler's `on_interrupt`; a run whose undo does not end is left to the lease.
    Undo,
    /// It is left to finish as with [`Finish`](Self::Finish), and no run follows it by itself: one that
    /// failed, was interrupted or died with its worker makes a dead letter. Only the handler's own
    /// snooze and a person's redrive ask for another.
    AtMostOnce,
}

/// What follows from a checkpoint that is older than every line of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OldCheckpoint {
    /// The job is given back unread, for a build that reads it.
    #[default]
    Refuse,
    /// The job runs from its beginning. The old checkpoint stays until the run saves its first.
    Restart,
}

impl Policy {
    /// The policy of a job that sets nothing.
    pub const DEFAULT: Self = Self {
        queue: crate::QueueName::DEFAULT,
        priority: 0,
        max_failures: 20,
        timeout: None,
        expires_in: None,
        on_stop: OnStop::GiveBack,
        checkpoint_every: None,
        keeps_failures: false,
        on_old_checkpoint: OldCheckpoint::Refuse,
    };

    /// What its jobs may use up.
    pub const fn budget(&self) -> Budget {
        match self.on_stop {
            OnStop::AtMostOnce => Budget { max_failures: 1, max_interruptions: Some(1) },
            OnStop::GiveBack | OnStop::Finish | OnStop::Undo => {
                let max_failures = if self.max_failures == 0 { 1 } else { self.max_failures };
                Budget { max_failures, max_interruptions: None }
            }
        }
    }

    /// This policy with another queue.
    #[must_use]
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.queue = queue;
        self
    }

    /// This policy with another priority.
    #[must_use]
    pub const fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// This policy with another limit of failures.
    #[must_use]
    pub const fn max_failures(mut self, max_failures: u32) -> Self {
        self.max_failures = max_failures;
        self
    }

    /// This policy with a limit to the wait for a start.
    #[must_use]
    pub const fn expires_in(mut self, wait: Duration) -> Self {
        self.expires_in = Some(wait);
        self
    }

    /// This policy with another way to stop.
    #[must_use]
    pub const fn on_stop(mut self, on_stop: OnStop) -> Self {
        self.on_stop = on_stop;
        self
    }

    /// This policy with a time-out.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// This policy with checkpoints that are written at most this often.
    #[must_use]
    pub const fn checkpoint_every(mut self, every: Duration) -> Self {
        self.checkpoint_every = Some(every);
        self
    }

    /// This policy with failures that stay counted although a checkpoint moved.
    #[must_use]
    pub const fn keeps_failures(mut self) -> Self {
        self.keeps_failures = true;
        self
    }

    /// This policy with another answer to a checkpoint that is too old.
    #[must_use]
    pub const fn on_old_checkpoint(mut self, answer: OldCheckpoint) -> Self {
        self.on_old_checkpoint = answer;
        self
    }
}

/// The checkpoint of a job that saves none. It can't be made.
#[derive(Debug, Clone, Copy)]
pub enum NoCheckpoint {}

impl Versioned for NoCheckpoint {
    const VERSION: Version = Version::new(1, 0, 0);
    const MIN_READER: MinReader = Self::VERSION.own_reader();

    /// None: who saves no checkpoints reads none.
    fn lines() -> Vec<Line> {
        Vec::new()
    }

    fn encode(&self) -> Result<String, EncodeError> {
        match *self {}
    }

    fn decode(major: u32, _text: &str) -> Result<Self, DecodeError> {
        Err(DecodeError::NoLine { major })
    }
}

#[diagnostic::do_not_recommend]
impl Checkpoint for NoCheckpoint {}

/// Why a stored text did not become a value.
#[derive(Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is not the JSON of the shape.
    Malformed(serde_json::Error),
    /// The text decoded as an older shape, whose conversion into the next one failed.
    Upcast(String),
    /// The shape has no line of this major, and a reader never guesses.
    NoLine {
        /// The major that the text was written under.
        major: u32,
    },
}

impl DecodeError {
    /// Decodes one shape from JSON text.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] with the position and the reason.
    pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Self> {
        serde_json::from_str(text).map_err(Self::Malformed)
    }
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(_) => f.write_str("the stored text does not decode"),
            Self::Upcast(reason) => write!(f, "the upcast failed: {reason}"),
            Self::NoLine { major } => write!(f, "no line of the shape reads major {major}"),
        }
    }
}

impl std::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed(error) => Some(error),
            Self::Upcast(_) | Self::NoLine { .. } => None,
        }
    }
}
