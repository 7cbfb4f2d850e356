//! What SQLite says, as kinds that tell a caller what to do.

use std::any::Any;

use jobs_core::{StoreError, StoreErrorKind};
use sqlx::error::DatabaseError;

pub(super) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// SQLite's primary result codes that mean something to a caller: <https://sqlite.org/rescode.html>.
mod code {
    pub(super) const ERROR: i32 = 1;
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const NOMEM: i32 = 7;
    pub(super) const READONLY: i32 = 8;
    pub(super) const INTERRUPT: i32 = 9;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const TOOBIG: i32 = 18;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOTADB: i32 = 26;
}

/// Names what was being done when the driver failed.
pub(super) trait During<T> {
    /// `doing` continues "failed while ".
    fn during(self, doing: &str) -> Result<T>;
}

impl<T> During<T> for Result<T, sqlx::Error> {
    fn during(self, doing: &str) -> Result<T> {
        self.map_err(|error| store_error(doing, error))
    }
}

pub(super) fn store_error(doing: &str, error: sqlx::Error) -> StoreError {
    let (kind, advice) = judge(&error);
    StoreError::new(kind, format!("failed while {doing}: {advice}")).because(cause(error))
}

/// SQLite's own words, or the driver's.
fn cause(error: sqlx::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        sqlx::Error::Database(answer) => answer.to_string().into(),
        other => other.into(),
    }
}

/// Whether another connection holds a lock that the statement needs. Nothing was done.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary(error), Some(code::BUSY | code::LOCKED))
}

/// Whether a text was to become larger than SQLite keeps.
pub(super) fn is_too_big(error: &sqlx::Error) -> bool {
    primary(error) == Some(code::TOOBIG)
}

fn primary(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// Whether a table of ours was not found. A trigger of others may miss one of theirs.
fn is_without_tables(error: &sqlx::Error) -> bool {
    let missing = error.as_database_error().map(DatabaseError::message);
    let table = missing.and_then(|message| message.strip_prefix("no such table: "));
    table.is_some_and(|table| table.trim_start_matches("main.").starts_with("jobs_"))
}

fn judge(error: &sqlx::Error) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind as Kind;
    let Some(code) = primary(error) else {
        return match error {
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => {
                (Kind::Corrupt, "a row holds something that no build of ours has written")
            }
            sqlx::Error::Configuration(_) => (Kind::Configuration, "the address is not usable"),
            sqlx::Error::PoolTimedOut => (
                Kind::Busy,
                "every connection of its pool was in use for too long; end transactions that were \
                 begun, keep them short, and open fewer at a time",
            ),
            _ => (Kind::Unavailable, "the connection broke"),
        };
    };
    match code {
        code::BUSY | code::LOCKED => (
            Kind::Busy,
            "another transaction writes; begin transactions with BEGIN IMMEDIATE and keep them short",
        ),
        code::FULL => (Kind::Full, "the disk is full"),
        code::READONLY | code::PERM => {
            (Kind::ReadOnly, "the file, its folder or its disk takes no writes")
        }
        code::CANTOPEN => (
            Kind::Unavailable,
            "the file can't be opened: check that it is still there, its rights, and the limit of \
             open files",
        ),
        code::IOERR | code::NOMEM | code::INTERRUPT => {
            (Kind::Unavailable, "the operating system failed a read or a write")
        }
        code::CORRUPT => (
            Kind::Corrupt,
            "the file is damaged; stop all its users and restore it, or try `.recover` of sqlite3",
        ),
        code::NOTADB => {
            (Kind::Configuration, "the file is not a SQLite database, or it is encrypted")
        }
        code::ERROR if is_without_tables(error) => (
            Kind::Schema,
            "the tables of jobs are not in the file; if somebody dropped them, restore the file from a \
             backup, or make new, empty ones by `jobs migrate`",
        ),
        code::TOOBIG => (Kind::Invalid, "a text is larger than SQLite keeps"),
        code::CONSTRAINT => (Kind::Invalid, "the schema refuses a value"),
        _ => (Kind::Corrupt, "SQLite refused a statement"),
    }
}

/// A statement that wrote fewer rows than it was given, although all of them could be written.
pub(super) fn not_written(doing: &str) -> StoreError {
    let text = format!(
        "failed while {doing}: rows were passed over in silence; look for triggers on the `jobs_` \
         tables that ignore writes, and remove them"
    );
    StoreError::new(StoreErrorKind::Corrupt, text)
}

/// A write that panicked: a fault of ours, or of what was read.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> StoreError {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = format!(
        "a write panicked and was undone: {}; please report it",
        said.unwrap_or("it left no text")
    );
    StoreError::new(StoreErrorKind::Corrupt, text)
}

/// An error that many calls share, since they were part of one transaction.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    kind: StoreErrorKind,
    text: String,
    cause: Option<String>,
}

impl From<StoreError> for Shared {
    fn from(error: StoreError) -> Self {
        let cause = std::error::Error::source(&error).map(jobs_core::chain);
        Self { kind: error.kind(), text: error.to_string(), cause }
    }
}

impl From<Shared> for StoreError {
    fn from(shared: Shared) -> Self {
        let error = Self::new(shared.kind, shared.text);
        match shared.cause {
            Some(cause) => error.because(cause),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_with_nothing_left_is_busy_and_not_broken() {
        let error = store_error("beginning a transaction", sqlx::Error::PoolTimedOut);
        assert_eq!(error.kind(), StoreErrorKind::Busy);
        assert!(error.to_string().contains("end transactions"), "{error}");
    }
}
