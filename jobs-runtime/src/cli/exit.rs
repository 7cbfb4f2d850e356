//! How a command ends.

use std::process::ExitCode;

use crate::{Error, ErrorKind, StoreError, StoreErrorKind, chain};

pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and nothing to report.
    Done,
    /// The answer is no: no such job, a check that found errors, an action that was declined or that
    /// some of the jobs did not take.
    Finding,
    /// The command itself is wrong; the message says what to type.
    WrongCommand,
    /// The database can't be used until somebody acts on the message: address, password, rights,
    /// schema.
    Database,
    /// The database is away, busy or full; the same command may work later. The system's own number
    /// for that, `EX_TEMPFAIL`.
    TryAgain,
}

/// What the help says of exit status and environment.
pub const HELP: &str = "\
Exit status: 0 done; 1 the answer is no (no such job, errors found, declined); 2 wrong command; \
3 the database can't be used as it is; 75 try again later (database away, busy or full).

Environment: JOBS_URL and JOBS_SCHEMA instead of --url and --schema; NO_COLOR for no colours.";

impl Exit {
    /// The status as a number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Finding => 1,
            Self::WrongCommand => 2,
            Self::Database => 3,
            Self::TryAgain => 75,
        }
    }
}

/// Why a command ends early, and what standard error says of it.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    /// `None`: there is nothing to say, or all of it was said.
    what: Option<String>,
}

impl Failure {
    pub(super) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: Some(what.into()) }
    }

    pub(super) fn wrong(what: impl Into<String>) -> Self {
        Self::new(Exit::WrongCommand, what)
    }

    pub(super) fn finding(what: impl Into<String>) -> Self {
        Self::new(Exit::Finding, what)
    }

    /// A status whose reason the answer has told.
    pub(super) const fn silent(exit: Exit) -> Self {
        Self { exit, what: None }
    }
}

/// The exit status of a command, after saying why it is not 0.
pub(super) fn of(ended: Result<()>) -> ExitCode {
    let Err(Failure { exit, what }) = ended else { return ExitCode::SUCCESS };
    if let Some(what) = what {
        super::output::say(&format!("jobs: {what}"));
    }
    ExitCode::from(exit.code())
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(of_kind(error.kind()), chain(&error))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::Store(kind) => of_kind(kind),
            ErrorKind::NotFound | ErrorKind::Unreadable => Exit::Finding,
            ErrorKind::TimedOut | ErrorKind::Broken => Exit::TryAgain,
            ErrorKind::Payload | ErrorKind::Configuration | ErrorKind::WrongTransaction => {
                Exit::WrongCommand
            }
        };
        Self::new(exit, chain(&error))
    }
}

fn of_kind(kind: StoreErrorKind) -> Exit {
    match kind {
        StoreErrorKind::Unavailable | StoreErrorKind::Busy | StoreErrorKind::Full => Exit::TryAgain,
        StoreErrorKind::Invalid => Exit::WrongCommand,
        _ => Exit::Database,
    }
}
