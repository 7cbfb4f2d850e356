//! The error of a store.

use std::error::Error as StdError;
use std::fmt;

/// Why a store did not do what it was asked to. Nothing was done unless the error
/// [is ambiguous](Self::is_ambiguous).
///
/// Expected results of the protocol (lease lost, nothing ready, already there) are values of the
/// operations, never errors.
pub struct StoreError {
    kind: StoreErrorKind,
    what: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What kind of trouble a store is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store can't be reached or did not answer in time; the same call may work later.
    Unavailable,
    /// The store is too busy to serve the call now; the same call may work later.
    Busy,
    /// There is no room for the write; it may work once there is.
    Full,
    /// The store takes no writes: a standby, a read-only file or missing rights.
    ReadOnly,
    /// The address or the settings don't name a usable store.
    Configuration,
    /// The store's schema is not one that this build can work with.
    Schema,
    /// The call asks for something that the store can't keep or do.
    Invalid,
    /// The store holds something that it should not: a damaged file or a bug of ours.
    Corrupt,
}

impl StoreError {
    /// An error of a kind, with one sentence of what was tried and what to do.
    pub fn new(kind: StoreErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), source: None }
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of trouble it is.
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same call may work later without anyone changing anything.
    pub const fn is_transient(&self) -> bool {
        match self.kind {
            StoreErrorKind::Unavailable | StoreErrorKind::Busy | StoreErrorKind::Full => true,
            StoreErrorKind::ReadOnly
            | StoreErrorKind::Configuration
            | StoreErrorKind::Schema
            | StoreErrorKind::Invalid
            | StoreErrorKind::Corrupt => false,
        }
    }

    /// Whether the write may have happened although no answer came: ask the row.
    pub const fn is_ambiguous(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// For people too: `main` prints an error that it returns by this.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self))
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// An error and its causes in one line, joined by `: `. A cause that the error before has told already
/// is not told again.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        if !text.ends_with(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors of the world: most repeat their cause in their own text.
    #[derive(Debug)]
    struct Says(&'static str, Option<Box<Says>>);

    impl fmt::Display for Says {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StdError for Says {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn StdError + 'static))
        }
    }

    #[test]
    fn each_cause_is_said_once() {
        let refused = Says("connection refused", None);
        let driver = Says("can't speak to it: connection refused", Some(Box::new(refused)));
        let error = StoreError::new(StoreErrorKind::Unavailable, "no connection").because(driver);
        let told = "no connection: can't speak to it: connection refused";
        assert_eq!(chain(&error), told);
        assert_eq!(format!("{error:?}"), told);
    }

    #[test]
    fn a_cause_that_says_nothing_adds_nothing() {
        assert_eq!(chain(&Says("failed", Some(Box::new(Says("", None))))), "failed");
    }
}
