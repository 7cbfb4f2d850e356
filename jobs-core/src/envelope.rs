//! A payload on its way into a store: stamped, encoded and checked.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::codec::{self, EncodeError};
use crate::job::{Job, Versioned};
use crate::name::{Kind, QueueName, UniqueKey};
use crate::outcome::storable;
use crate::record::{Budget, Priority};
use crate::transition::Due;
use crate::version::{MinReader, Stamp, Version};
use crate::{BuildId, InvalidName};

/// The largest payload by default: 1 MiB of JSON text.
pub const MAX_PAYLOAD_BYTES: usize = 1024 * 1024;
/// The largest headers, as JSON text.
pub const MAX_HEADERS_BYTES: usize = 16 * 1024;

/// What is written beside the payload for people and tools, such as a trace context.
pub type Headers = BTreeMap<String, String>;

/// For how long a job binds its unique key. A key binds only among jobs of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UniqueWhile {
    /// While it waits. A job enqueued while it runs is stored: it will see what changed since.
    #[default]
    Waiting,
    /// While it waits or runs, among jobs that say so too. What changes after the run has looked is
    /// then nobody's work; and an enqueue locks the running row, whose settlement waits for its
    /// transaction.
    Running,
    /// For as long as it is kept, whatever became of it, among jobs that say so too.
    Kept,
}

/// What becomes of a job whose key a waiting one binds. One that does not wait is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnConflict {
    /// The waiting one stays as it is.
    #[default]
    Keep,
    /// The waiting one gets the new one's payload, versions, headers and build, and begins anew: its
    /// counters at zero, without a checkpoint. It keeps its place.
    Replace,
    /// The waiting one gets the new one's due instant, priority and expiry.
    Reschedule,
    /// Both.
    ReplaceAndReschedule,
}

impl UniqueWhile {
    /// The stored name; `None` for what most jobs are.
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Waiting => None,
            Self::Running => Some("running"),
            Self::Kept => Some("kept"),
        }
    }

    /// What a stored name says; an unknown one binds least.
    pub fn from_name(name: Option<&str>) -> Self {
        match name {
            Some("running") => Self::Running,
            Some("kept") => Self::Kept,
            Some(_) | None => Self::Waiting,
        }
    }
}

impl OnConflict {
    /// Whether the waiting job gets the new payload.
    pub const fn replaces(self) -> bool {
        match self {
            Self::Replace | Self::ReplaceAndReschedule => true,
            Self::Keep | Self::Reschedule => false,
        }
    }

    /// Whether the waiting job gets the new due instant.
    pub const fn reschedules(self) -> bool {
        match self {
            Self::Reschedule | Self::ReplaceAndReschedule => true,
            Self::Keep | Self::Replace => false,
        }
    }
}

/// A job to be stored. Made by [`NewJob::of`], then changed field by field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Where it waits.
    pub queue: QueueName,
    /// What it is.
    pub kind: Kind,
    /// The version its payload was written as.
    pub version: Version,
    /// The oldest reader that its writer vouches for.
    pub min_reader: MinReader,
    /// Its payload as JSON text.
    pub payload: String,
    /// Its headers as a JSON object of texts.
    pub headers: Option<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// When it is due.
    pub due: Due,
    /// At most one job of its kind with this key waits at a time.
    pub unique_key: Option<UniqueKey>,
    /// For how long it binds that key.
    pub unique_while: UniqueWhile,
    /// What becomes of it when the key is bound.
    pub on_conflict: OnConflict,
    /// How long after it is due a run may still start; `None`: at any time.
    pub expires_in: Option<Duration>,
    /// What it may use up.
    pub budget: Budget,
    /// The build that enqueues it.
    pub build: Option<BuildId>,
}

impl NewJob {
    /// Encodes a job's payload and stamps it with the policy of its type, due at once.
    ///
    /// # Errors
    /// [`EnvelopeError`] when the payload can't be encoded, is larger than `max_bytes`, or the
    /// type's kind or queue is malformed (which the derive refuses too).
    pub fn of<J: Job>(job: &J, max_bytes: usize) -> Result<Self, EnvelopeError> {
        let kind = Kind::new(J::KIND).map_err(EnvelopeError::Name)?;
        let payload = encode(job, kind.as_str(), max_bytes)?;
        let policy = J::POLICY;
        let unique_key = unique_key(job, kind.as_str())?;
        Ok(Self {
            queue: QueueName::new(policy.queue).map_err(EnvelopeError::Name)?,
            kind,
            version: J::VERSION,
            min_reader: J::MIN_READER,
            payload,
            headers: None,
            priority: Priority::clamped(i64::from(policy.priority)),
            due: Due::In(Duration::ZERO),
            unique_key,
            unique_while: UniqueWhile::default(),
            on_conflict: OnConflict::default(),
            expires_in: policy.expires_in,
            budget: policy.budget(),
            build: None,
        })
    }

    /// A job whose payload is text already, with the default policy, due at once and vouched for by
    /// its own version alone.
    pub fn from_text(kind: Kind, version: Version, payload: String) -> Self {
        Self {
            queue: QueueName::default(),
            kind,
            version,
            min_reader: version.own_reader(),
            payload,
            headers: None,
            priority: Priority::default(),
            due: Due::In(Duration::ZERO),
            unique_key: None,
            unique_while: UniqueWhile::default(),
            on_conflict: OnConflict::default(),
            expires_in: None,
            budget: Budget::default(),
            build: None,
        }
    }

    /// Checks a payload that is text already as [`of`](Self::of) checks one that it encodes.
    ///
    /// # Errors
    /// [`EnvelopeError`] when it is larger than `max_bytes`, or nested more deeply than any build reads.
    pub fn check_text(&self, max_bytes: usize) -> Result<(), EnvelopeError> {
        check_size(&self.payload, self.kind.as_str(), max_bytes)?;
        codec::check_levels(&self.payload)
            .map_err(|error| EnvelopeError::Encode { kind: self.kind.to_string(), error })
    }

    /// For how long it binds its key beyond the wait, as stored; nothing where it has no key.
    pub fn stored_scope(&self) -> Option<&'static str> {
        self.unique_key.as_ref().and_then(|_| self.unique_while.as_str())
    }

    /// The version and its oldest reader, as a worker will judge them.
    pub fn stamp(&self) -> Option<Stamp> {
        Stamp::new(self.version, self.min_reader).ok()
    }
}

/// The key that a job makes of its own fields.
fn unique_key<J: Job>(job: &J, kind: &str) -> Result<Option<UniqueKey>, EnvelopeError> {
    let encode = |error| EnvelopeError::Encode { kind: kind.to_owned(), error };
    let key = job.unique_key().transpose().map_err(encode)?;
    key.map(UniqueKey::new).transpose().map_err(EnvelopeError::Name)
}

fn encode<T: Versioned>(value: &T, kind: &str, max_bytes: usize) -> Result<String, EnvelopeError> {
    let payload =
        value.encode().map_err(|error| EnvelopeError::Encode { kind: kind.to_owned(), error })?;
    check_size(&payload, kind, max_bytes)?;
    Ok(payload)
}

fn check_size(payload: &str, kind: &str, max_bytes: usize) -> Result<(), EnvelopeError> {
    let bytes = payload.len();
    if bytes > max_bytes {
        return Err(EnvelopeError::TooLarge { kind: kind.to_owned(), bytes, max_bytes });
    }
    Ok(())
}

/// Headers as they are stored.
///
/// # Errors
/// [`EnvelopeError::HeadersTooLarge`] above [`MAX_HEADERS_BYTES`].
pub fn encode_headers(headers: &Headers) -> Result<Option<String>, EnvelopeError> {
    if headers.is_empty() {
        return Ok(None);
    }
    let text = codec::encode(headers)
        .map_err(|error| EnvelopeError::Encode { kind: "headers".to_owned(), error })?;
    if text.len() > MAX_HEADERS_BYTES {
        return Err(EnvelopeError::HeadersTooLarge { bytes: text.len() });
    }
    Ok(Some(text))
}

/// Why a value did not become a job. Nothing was stored.
#[derive(Debug)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The value has something that JSON can't keep.
    Encode {
        /// The kind of the job.
        kind: String,
        /// What and where.
        error: EncodeError,
    },
    /// The payload is larger than the limit.
    TooLarge {
        /// The kind of the job.
        kind: String,
        /// Its size as JSON text.
        bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// The headers are larger than [`MAX_HEADERS_BYTES`].
    HeadersTooLarge {
        /// Their size as JSON text.
        bytes: usize,
    },
    /// A name is malformed.
    Name(InvalidName),
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode { kind, .. } => write!(f, "a payload of {kind} can't be encoded"),
            Self::TooLarge { kind, bytes, max_bytes } => write!(
                f,
                "a payload of {kind} has {bytes} bytes, more than the limit of {max_bytes}; store \
                 the bulk elsewhere and enqueue a reference, or raise `max_payload_bytes`"
            ),
            Self::HeadersTooLarge { bytes } => write!(
                f,
                "the headers have {bytes} bytes, more than the limit of {MAX_HEADERS_BYTES}"
            ),
            Self::Name(name) => f.write_str(&storable(&name.to_string(), 512)),
        }
    }
}

impl std::error::Error for EnvelopeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Encode { error, .. } => Some(error),
            Self::TooLarge { .. } | Self::HeadersTooLarge { .. } | Self::Name(_) => None,
        }
    }
}
