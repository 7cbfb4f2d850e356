//! What a worker says about itself, and what it is answered.

use std::time::Duration;

use super::Drained;
use crate::id::Fence;
use crate::lease::Lease;
use crate::name::{BuildId, WorkerName};
use crate::outcome::{Ending, Interruption};

/// A worker that asks for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorker {
    /// Its name, for people.
    pub name: WorkerName,
    /// The build it runs.
    pub build: BuildId,
    /// What its build reads, handles and produces, as JSON text.
    pub manifest: String,
    /// The length of its lease.
    pub lease: Lease,
}

/// What a worker is doing, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Claims and runs.
    Working,
    /// Claims nothing more; its handlers finish.
    Quiet,
    /// Its handlers are asked to return.
    Interrupting,
    /// What is left is given back.
    Releasing,
    /// Over.
    Done,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: [Self; 5] =
        [Self::Working, Self::Quiet, Self::Interrupting, Self::Releasing, Self::Done];

    /// The phase's stable name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Quiet => "quiet",
            Self::Interrupting => "interrupting",
            Self::Releasing => "releasing",
            Self::Done => "done",
        }
    }

    /// The phase of a stored name; `None` when no phase has that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == name)
    }
}

/// What a worker that leaves abandons, by default nothing, and what it did in its drain.
///
/// Nobody may start beside a handler that still works, so abandoned runs stay claimed until the
/// process is gone. The lease is shortened to that; the sweep that ends it settles them as given up
/// and not as crashed, since the worker told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaving {
    /// The runs whose handlers have not ended.
    pub abandoned: Vec<Fence>,
    /// How long until the process is gone, and those handlers with it.
    pub gone_in: Duration,
    /// The runs that the worker knows of; what else the store says it holds was never started.
    /// `None`: any of them may have been.
    pub known: Option<Vec<Fence>>,
    /// Its report, but for what the close itself gives back.
    pub drained: Drained,
}

impl Leaving {
    /// How a run ended that the close gives back.
    pub fn ending(&self, run: Fence) -> Ending {
        match &self.known {
            Some(known) if !known.contains(&run) => Ending::Unstarted,
            Some(_) | None => Ending::Interrupted(Interruption::GivenUp),
        }
    }

    /// The report, with what the close gave back.
    #[must_use]
    pub fn report(&self, gave_back: &[Fence]) -> Drained {
        let count = |ending: &Ending| {
            let alike = gave_back.iter().filter(|run| self.ending(**run) == *ending);
            u64::try_from(alike.count()).unwrap_or(u64::MAX)
        };
        let given_up = count(&Ending::Interrupted(Interruption::GivenUp));
        Drained {
            interrupted: self.drained.interrupted.saturating_add(given_up),
            released: self.drained.released.saturating_add(count(&Ending::Unstarted)),
            ..self.drained
        }
    }
}

/// The answer to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease runs for its whole length from now.
    Renewed,
    /// Others held the store's write lock all the time: nobody could renew a lease or take one back,
    /// so it counts as renewed.
    Undecided,
    /// The worker was taken back, closed, or is unknown: it must register anew.
    Ended,
}

/// A run that the store says a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// The run.
    pub fence: Fence,
    /// Whether someone asked to cancel it.
    pub is_cancel_requested: bool,
}
