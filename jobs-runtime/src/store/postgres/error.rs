//! What went wrong at the server, in the few kinds that a caller can act on.

use std::time::Duration;

use jobs_core::{Random, StoreError, StoreErrorKind, below};
use sqlx::error::DatabaseError;

pub(super) type Attempt<T> = Result<T, Trouble>;

/// Why an attempt ended: the server or the way to it, or a finding of ours.
#[derive(Debug)]
pub(super) enum Trouble {
    Sql(sqlx::Error),
    Store(StoreError),
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Trouble {
    /// A finding of ours.
    pub(super) fn new(kind: StoreErrorKind, what: impl Into<String>) -> Self {
        Self::Store(StoreError::new(kind, what))
    }

    /// The SQLSTATE, where the server answered.
    pub(super) fn code(&self) -> Option<String> {
        match self {
            Self::Sql(error) => code(error),
            Self::Store(_) => None,
        }
    }

    /// Whether the transaction lost against another and nothing was done: serialization failure,
    /// deadlock, or a unique key that another took in the meantime.
    pub(super) fn is_lost_race(&self) -> bool {
        self.code().is_some_and(|code| matches!(&*code, "40001" | "40P01" | "23505"))
    }

    /// Whether the server answered in a way that may be about one row of many: a trigger or a constraint does
    /// not want it, or it is damaged. What a lock, a time-out, a full disk or a missing right does to one, it
    /// does to all.
    pub(super) fn is_of_a_row(&self) -> bool {
        let Self::Sql(sqlx::Error::Database(answer)) = self else {
            return false;
        };
        answer.code().is_some_and(|code| may_be_of_a_row(&code))
    }

    /// Whether a row stayed locked for longer than the statement would wait.
    pub(super) fn is_locked(&self) -> bool {
        self.code().is_some_and(|code| code == "55P03")
    }

    /// Why it failed, in the words of whoever said so.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Sql(sqlx::Error::Database(answer)) => answer.message().to_owned(),
            Self::Sql(error) => jobs_core::chain(error),
            Self::Store(error) => jobs_core::chain(error),
        }
    }

    /// The error for the caller: what was tried, and why it failed.
    pub(super) fn during(self, what: &str) -> StoreError {
        let error = match self {
            Self::Sql(error) => error,
            Self::Store(error) => return error,
        };
        let (kind, hint) = judge(&error);
        StoreError::new(kind, format!("could not {what}{hint}")).because(cause(error))
    }

    /// Names the server that could not be reached, or whose connection broke.
    pub(super) fn at(self, what: &str, place: &str) -> Self {
        match self {
            Self::Sql(error) => {
                let (kind, hint) = judge(&error);
                let what = format!("{what} {place}{hint}");
                Self::Store(StoreError::new(kind, what).because(cause(error)))
            }
            Self::Store(_) => self,
        }
    }
}

fn judge(error: &sqlx::Error) -> (StoreErrorKind, &'static str) {
    let kind = kind(error);
    let is_refused = is_refused_encryption(error);
    (kind, if is_refused { TLS_HINT } else { hint(kind, code(error).as_deref()) })
}

/// The server's own words, without where its source says them; or what the way to it says.
pub(super) fn cause(error: sqlx::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        sqlx::Error::Database(answer) => answer.message().to_owned().into(),
        other => other.into(),
    }
}

/// Whichever end refused: `sslmode` decides.
const TLS_HINT: &str = ": the way to the server can't be encrypted as `sslmode` asks. The build needs the feature `tls`, \
     the server `ssl = on`, and `verify-ca` and `verify-full` a certificate that the system or `sslrootcert` vouches for";

/// Whether one end does not encrypt, or this one refuses the other's certificate: rustls tells that
/// as data that are not valid.
fn is_refused_encryption(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Tls(_) => true,
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(DatabaseError::code).map(std::borrow::Cow::into_owned)
}

/// Whether the connection is still usable after an error: only where the server answered with one
/// and stays.
pub(super) fn is_answer(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some() && !is_parting(error)
}

/// Whether the connection broke, or the server said that it ends it.
pub(super) fn is_parting(error: &sqlx::Error) -> bool {
    let is_leaving = |code: String| code.starts_with("57P") || code.starts_with("08");
    matches!(error, sqlx::Error::Io(_)) || code(error).is_some_and(is_leaving)
}

fn kind(error: &sqlx::Error) -> StoreErrorKind {
    if let Some(code) = code(error) {
        return kind_of_code(&code);
    }
    match error {
        sqlx::Error::Configuration(_) | sqlx::Error::PoolClosed => StoreErrorKind::Configuration,
        // No further try gets past it.
        _ if is_refused_encryption(error) => StoreErrorKind::Configuration,
        sqlx::Error::PoolTimedOut => StoreErrorKind::Busy,
        sqlx::Error::InvalidArgument(_) | sqlx::Error::Encode(_) => StoreErrorKind::Invalid,
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. } => StoreErrorKind::Corrupt,
        // Io, Protocol and what later versions of the driver add: no answer came.
        _ => StoreErrorKind::Unavailable,
    }
}

/// By the classes of PostgreSQL's appendix A.
fn kind_of_code(code: &str) -> StoreErrorKind {
    match code {
        "53100" => StoreErrorKind::Full,
        "25006" | "42501" => StoreErrorKind::ReadOnly,
        "40001" | "40P01" | "55P03" | "57014" | "53000" | "53200" | "53300" | "53400" => {
            StoreErrorKind::Busy
        }
        "3F000" | "42P01" | "42703" | "42883" | "42P10" => StoreErrorKind::Schema,
        "3D000" => StoreErrorKind::Configuration,
        // What is damaged stays so. A disk that fails a read or a write (58030) is the server's trouble.
        "XX001" | "XX002" => StoreErrorKind::Corrupt,
        "25P02" => StoreErrorKind::Invalid,
        _ => match code.get(..2) {
            Some("28") => StoreErrorKind::Configuration,
            // The server, the way to it, or a statement that a fresh connection prepares anew.
            Some("08" | "0A" | "26" | "40" | "53" | "55" | "57" | "58" | "F0" | "XX") => {
                StoreErrorKind::Unavailable
            }
            // A value, or a trigger that does not want this row: they raise what class they like.
            _ => StoreErrorKind::Invalid,
        },
    }
}

/// Triggers raise what class they like, but those of a server in trouble are taken at their word.
fn may_be_of_a_row(code: &str) -> bool {
    match kind_of_code(code) {
        StoreErrorKind::Invalid => code != "25P02",
        StoreErrorKind::Corrupt => true,
        StoreErrorKind::Unavailable => {
            matches!(code.get(..2), Some("0A" | "26" | "55" | "F0" | "XX"))
        }
        _ => false,
    }
}

fn hint(kind: StoreErrorKind, code: Option<&str>) -> &'static str {
    match (kind, code) {
        (StoreErrorKind::Schema, Some("3F000" | "42P01")) => {
            ": the tables of jobs are not there; if somebody dropped them, restore them from a backup, or make \
             new, empty ones by `jobs migrate`"
        }
        (StoreErrorKind::Schema, _) => {
            ": the tables of jobs are not as a build of jobs makes them; restore them from a backup, or \
             undo what altered them"
        }
        (StoreErrorKind::ReadOnly, Some("42501")) => ": this role lacks a right",
        (StoreErrorKind::ReadOnly, _) => ": the server takes no writes; is it a standby?",
        (StoreErrorKind::Full, _) => ": the server's disk is full",
        (StoreErrorKind::Corrupt, Some("XX001" | "XX002")) => {
            ": the server found a table or an index of it damaged; its log says which"
        }
        (StoreErrorKind::Busy, Some("53200")) => ": the server has no memory left",
        (StoreErrorKind::Unavailable, Some("58030")) => {
            ": the server's disk failed a read or a write; its log says which"
        }
        (StoreErrorKind::Busy, Some("55P03")) => ": a row stayed locked by another transaction",
        (StoreErrorKind::Busy, Some("57014")) => ": it took longer than the statement time-out",
        (StoreErrorKind::Busy, Some("53300")) => ": the server has no connection left",
        (StoreErrorKind::Busy, None) => {
            ": no connection was free in time; does a transaction stay open, or are `connections` too few?"
        }
        (StoreErrorKind::Invalid, Some("25P02")) => ": the caller's transaction has failed already",
        (StoreErrorKind::Invalid, Some("P0001")) => ": a trigger on the tables of jobs refused it",
        (StoreErrorKind::Unavailable, None) => {
            ": does the server run, and do its address, the network and TLS lead to it?"
        }
        (StoreErrorKind::Unavailable, Some(code))
            if code.starts_with("57P") || code.starts_with("08") =>
        {
            ": the server starts, stops or has ended the connection; its log says why"
        }
        (StoreErrorKind::Configuration, Some("3D000")) => {
            ": no such database; name one that exists, or make it first, by `createdb`"
        }
        (StoreErrorKind::Configuration, Some("28P01")) => {
            ": the password is wrong or missing; it stands in the address, in PGPASSWORD or in a \
             password file"
        }
        (StoreErrorKind::Configuration, Some("28000")) => {
            ": the server does not let this user in; check the user in the address"
        }
        _ => "",
    }
}

/// How long a batch waits for rows that others hold, look by look: 1.3 s in all.
pub(super) const LOOKS: [Duration; 7] = [
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
    Duration::from_millis(320),
    Duration::from_millis(640),
];

/// Counts attempts at a transaction that may lose against others.
#[derive(Debug, Default)]
pub(super) struct Races {
    lost: u32,
}

impl Races {
    const MOST: u32 = 12;

    /// Whether to try once more after this; waits a moment that grows, so that rivals part.
    pub(super) async fn again(&mut self, trouble: &Trouble, random: &dyn Random) -> bool {
        if !trouble.is_lost_race() || self.lost >= Self::MOST {
            return false;
        }
        self.lost += 1;
        let longest_us = 500_u64 << self.lost.min(7);
        tokio::time::sleep(Duration::from_micros(below(random.draw(), longest_us))).await;
        true
    }
}

#[cfg(test)]
mod tests;
