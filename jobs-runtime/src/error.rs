//! The error of everything that an application calls.

use std::error::Error as StdError;
use std::fmt;

use jobs_core::{EnvelopeError, InvalidName, StoreError, StoreErrorKind};

/// Why a call did not do what it was asked to: one sentence, of the store where that failed, and
/// its causes. `{:?}`, by which `main` prints what it returns, is both in one line.
pub struct Error {
    kind: ErrorKind,
    why: Why,
}

/// What speaks for an error.
enum Why {
    Said(String),
    Store(StoreError),
    Envelope(EnvelopeError),
}

/// What kind of trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store did not do it.
    Store(StoreErrorKind),
    /// The payload or the headers can't be stored.
    Payload,
    /// A setting or a name is not usable.
    Configuration,
    /// The transaction that was passed is not one of this store.
    WrongTransaction,
    /// No live worker reads what was to be enqueued, and the client was told to refuse that.
    Unreadable,
    /// There is no such job.
    NotFound,
    /// It took longer than the caller would wait.
    TimedOut,
    /// A part of the worker panicked, which is a bug of ours to be reported with its text, or could not
    /// be started, as when the system has no thread left. The worker has given up its runs, which go on
    /// elsewhere: end the process, so that its supervisor starts it again.
    Broken,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, why: Why::Said(what.into()) }
    }

    /// What kind of trouble it is.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may work later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match &self.why {
            Why::Store(error) => error.is_transient(),
            Why::Said(_) | Why::Envelope(_) => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Said(what) => f.write_str(what),
            Why::Store(error) => fmt::Display::fmt(error, f),
            Why::Envelope(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&jobs_core::chain(self))
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.why {
            Why::Said(_) => None,
            Why::Store(error) => error.source(),
            Why::Envelope(error) => error.source(),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self { kind: ErrorKind::Store(error.kind()), why: Why::Store(error) }
    }
}

impl From<EnvelopeError> for Error {
    fn from(error: EnvelopeError) -> Self {
        Self { kind: ErrorKind::Payload, why: Why::Envelope(error) }
    }
}

impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::new(ErrorKind::Configuration, error.to_string())
    }
}
