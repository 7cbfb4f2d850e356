//! A payload on its way into a store: stamped, encoded and checked.

use std::collections::BTreeMap;
use std::fmt;

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
        Ok(Self {
            queue: QueueName::new(policy.queue).map_err(EnvelopeError::Name)?,
            kind,
            version: J::VERSION,
            min_reader: J::MIN_READER,
            payload,
            headers: None,
            priority: Priority::clamped(i64::from(policy.priority)),
            due: Due::In(std::time::Duration::ZERO),
            unique_key: None,
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
            due: Due::In(std::time::Duration::ZERO),
            unique_key: None,
            budget: Budget::default(),
            build: None,
        }
    }

    /// The version and its oldest reader, as a worker will judge them.
    pub fn stamp(&self) -> Option<Stamp> {
        Stamp::new(self.version, self.min_reader).ok()
    }
}

fn encode<T: Versioned>(value: &T, kind: &str, max_bytes: usize) -> Result<String, EnvelopeError> {
    let payload =
        value.encode().map_err(|error| EnvelopeError::Encode { kind: kind.to_owned(), error })?;
    if payload.len() > max_bytes {
        return Err(EnvelopeError::TooLarge {
            kind: kind.to_owned(),
            bytes: payload.len(),
            max_bytes,
        });
    }
    Ok(payload)
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
