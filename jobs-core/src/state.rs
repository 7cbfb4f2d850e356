//! The states of a job and the edges between them, as data.

use std::fmt;

/// Where a job is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Not due yet.
    Scheduled,
    /// Due and waiting for a worker.
    Ready,
    /// Claimed by a worker.
    Running,
    /// Ended well.
    Succeeded,
    /// Settled as failed for good: a dead letter, with an error class.
    Dead,
    /// Ended by a person, or superseded by a waiting job with its unique key.
    Cancelled,
}

impl State {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 6] =
        [Self::Scheduled, Self::Ready, Self::Running, Self::Succeeded, Self::Dead, Self::Cancelled];

    /// The states that this one may turn into. Anything else is a bug in a store.
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Scheduled => &[Self::Ready, Self::Dead, Self::Cancelled],
            Self::Ready => &[Self::Scheduled, Self::Running, Self::Dead, Self::Cancelled],
            Self::Running => {
                &[Self::Scheduled, Self::Ready, Self::Succeeded, Self::Dead, Self::Cancelled]
            }
            Self::Dead | Self::Cancelled => &[Self::Ready],
            Self::Succeeded => &[],
        }
    }

    /// Whether the job waits to be claimed: now or later. Uniqueness binds these.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Scheduled | Self::Ready)
    }

    /// Whether the job has ended. Only a person can bring it back, by a redrive.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Dead | Self::Cancelled)
    }

    /// The state's stable name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a stored name; `None` when no state has that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests;
