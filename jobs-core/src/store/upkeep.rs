//! What the loops beside the runs ask of a store.

use std::time::Duration;

use super::Author;
use crate::id::{JobId, WorkerId};
use crate::name::BuildId;
use crate::state::State;
use crate::transition::Settlement;

/// What a promotion did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promoted {
    /// How many jobs became ready.
    pub count: u32,
    /// How long until the next scheduled job is due; zero when one is due already, `None` when none
    /// is scheduled.
    pub next_in: Option<Duration>,
}

/// What to sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Who sweeps. The history tells it as who noticed.
    pub by: Author,
    /// Take only leases that ended at least this long ago.
    pub grace: Duration,
    /// At most this many jobs.
    pub limit: u32,
    /// A drawn number that spreads the waits.
    pub draw: u64,
}

impl Sweep {
    /// Against whom the end of a lost run is recorded: the worker that held it, given as its row tells,
    /// so that a healthy build is never blamed for what it found. Where that row is gone, or tells no
    /// build, the sweeper is all that is known.
    pub fn author(&self, lost: Option<(WorkerId, &str)>) -> Author {
        let held_it = |(worker, build): (WorkerId, &str)| {
            BuildId::new(build).ok().map(|build| Author { worker: Some(worker), build })
        };
        lost.and_then(held_it).unwrap_or_else(|| self.by.clone())
    }

    /// A lost run's settlement whose line of history tells also who noticed.
    #[must_use]
    pub fn noticed(&self, mut settlement: Settlement) -> Settlement {
        let Author { worker, build } = &self.by;
        let by = match worker {
            Some(worker) => format!("worker {} of {build}", worker.0),
            None => build.to_string(),
        };
        if let Some(event) = &mut settlement.event {
            event.text.push_str("; noticed by ");
            event.text.push_str(&by);
        }
        settlement
    }
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// The workers whose leases it ended.
    pub workers: Vec<WorkerId>,
    /// The jobs it took back, with the state that each got.
    pub jobs: Vec<(JobId, State)>,
}

/// How long finished jobs are kept, counted from their ends; [`Duration::MAX`] is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Succeeded jobs. Default: 24 h.
    pub succeeded: Duration,
    /// Cancelled jobs. Default: 7 days.
    pub cancelled: Duration,
    /// Dead letters. Default: 30 days.
    pub dead: Duration,
}

impl Retention {
    /// Nothing is ever deleted, and the store grows with every job.
    pub const FOREVER: Self =
        Self { succeeded: Duration::MAX, cancelled: Duration::MAX, dead: Duration::MAX };
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self { succeeded: DAY, cancelled: DAY * 7, dead: DAY * 30 }
    }
}
