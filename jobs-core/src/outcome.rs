//! How a run ended, in the words that [`transition`](crate::transition) understands.

use std::time::Duration;

use crate::version::Refusal;

/// The longest error text that is kept, in bytes; longer ones are cut in the middle.
pub const MAX_ERROR_BYTES: usize = 8 * 1024;
/// The longest error class, in bytes; longer ones are cut.
pub const MAX_CLASS_BYTES: usize = 96;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The handler did its work.
    Done,
    /// The handler failed: an error, a time-out or a panic.
    Failed(Failure),
    /// The handler put the job off; not a failure.
    Snoozed(Duration),
    /// The payload can't become a value here, and no other build would do better: dead, with the
    /// failure's class. Its bytes stay.
    Unreadable(Failure),
    /// The kind is retired by this build: dead, class `retired`, counting nothing.
    Retired,
    /// The row's version texts are unreadable or contradict each other: dead, class
    /// `malformed_version`, counting nothing.
    MalformedVersion(String),
    /// This build can't read it: given back unread.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The build that refuses.
        build: String,
        /// For people: both sides' versions.
        text: String,
    },
    /// The infrastructure ended the run.
    Interrupted(Interruption),
    /// Claimed, but never started: given back, counting nothing.
    Unstarted,
    /// The lease expired with no word from the worker.
    Crashed(Company),
}

/// Who else ran on a worker that died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Company {
    /// Nobody: the run itself may well be what its worker died of.
    Alone,
    /// Others, or nobody knows: any of them may be.
    Others,
}

/// A failure of the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable name for people and filters, such as `timeout`.
    pub class: String,
    /// The error with its causes.
    pub text: String,
    /// What comes next.
    pub retry: Retry,
}

/// What follows a failure while the budget lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Again, after the ladder's wait.
    Ladder,
    /// Again, after this wait.
    After(Duration),
    /// Never: the job is dead at once.
    Never,
}

/// Why the infrastructure ended a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interruption {
    /// A drain stopped it, or it failed after it was asked to stop. The text says how.
    Stopped(String),
    /// The handler says that what it needs is away; the text says what.
    Infrastructure(String),
    /// Its worker gave it up: its lease was lost, or it did not end in time.
    GivenUp,
    /// It was stopped, and then its undo failed; the text says how.
    UndoFailed(String),
}

impl Interruption {
    /// The reason's stable name.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Stopped(_) => "stopped",
            Self::Infrastructure(_) => "infrastructure",
            Self::GivenUp => "given_up",
            Self::UndoFailed(_) => "undo_failed",
        }
    }

    /// What to tell people beyond the class.
    pub fn text(&self) -> &str {
        match self {
            Self::Stopped(text) | Self::Infrastructure(text) | Self::UndoFailed(text) => text,
            Self::GivenUp => "the worker gave the run up",
        }
    }
}

/// A text that every store can keep: no NUL, at most `longest` bytes; what is cut is cut in the
/// middle, since the ends say the most.
pub fn storable(text: &str, longest: usize) -> String {
    const GAP: &str = " […] ";
    let clean = || text.chars().map(|c| if c == '\0' { '\u{FFFD}' } else { c });
    let length: usize = clean().map(char::len_utf8).sum();
    if length <= longest {
        return clean().collect();
    }
    let half = longest.saturating_sub(GAP.len()) / 2;
    let mut kept = 0;
    let head: String = clean().take_while(|c| fits(&mut kept, *c, half)).collect();
    kept = 0;
    let mut tail: Vec<char> = clean_back(text).take_while(|c| fits(&mut kept, *c, half)).collect();
    tail.reverse();
    let mut cut = head;
    cut.push_str(GAP);
    cut.extend(tail);
    cut
}

fn clean_back(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().rev().map(|c| if c == '\0' { '\u{FFFD}' } else { c })
}

fn fits(kept: &mut usize, c: char, limit: usize) -> bool {
    *kept += c.len_utf8();
    *kept <= limit
}
