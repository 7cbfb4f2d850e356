//! The error of everything that an application calls.

use std::error::Error as StdError;
use std::fmt;

use jobs_core::{EnvelopeError, InvalidName, StoreError, StoreErrorKind};

/// Why a call did not do what it was asked to.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
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
        Self { kind, what: what.into(), source: None }
    }

    /// What kind of trouble it is.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may work later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        let store = self.source.as_ref().and_then(|source| source.downcast_ref::<StoreError>());
        store.is_some_and(StoreError::is_transient)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let kind = ErrorKind::Store(error.kind());
        Self {
            kind,
            what: "the job store refused or failed".to_owned(),
            source: Some(error.into()),
        }
    }
}

impl From<EnvelopeError> for Error {
    fn from(error: EnvelopeError) -> Self {
        let what = "the job can't be stored".to_owned();
        Self { kind: ErrorKind::Payload, what, source: Some(error.into()) }
    }
}

impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::new(ErrorKind::Configuration, error.to_string())
    }
}
