//! What a run asks of a store, and what it is answered.

use crate::id::{ClaimNumber, Fence, JobId, WorkerId};
use crate::name::{BuildId, QueueName};
use crate::record::{ClaimedJob, Counters, Place};
use crate::route::Route;
use crate::state::State;
use crate::version::{MinReader, Version};

/// What became of a job that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Enqueued {
    /// It was stored.
    Added(JobId),
    /// A waiting job with its kind and unique key was there; nothing was stored.
    AlreadyThere(JobId),
}

impl Enqueued {
    /// The job that will run: the new one or the one that was there.
    pub const fn id(self) -> JobId {
        match self {
            Self::Added(id) | Self::AlreadyThere(id) => id,
        }
    }
}

/// What to claim.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// Under whose lease.
    pub worker: WorkerId,
    /// From which routes.
    pub heads: &'a [Head],
    /// At most this many jobs in all.
    pub limit: u32,
}

/// Where to claim from one route of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The queue.
    pub queue: QueueName,
    /// The route.
    pub route: Route,
    /// Start at this place: at [`ReadyRoute::first`], or where an earlier claim ended.
    pub from: Place,
    /// At most this many jobs.
    pub limit: u32,
}

/// A route that has ready jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyRoute {
    /// The queue.
    pub queue: QueueName,
    /// The route.
    pub route: Route,
    /// The place of the first of them.
    pub first: Place,
}

impl ReadyRoute {
    /// Claims at most so many of its jobs, from the first on.
    pub fn head(self, limit: u32) -> Head {
        Head { queue: self.queue, route: self.route, from: self.first, limit }
    }
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// These jobs, in order of place.
    Jobs(Vec<ClaimedJob>),
    /// Nothing: the worker was taken back, closed, or is unknown.
    WorkerEnded,
}

/// Who writes, for the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The worker; `None` for a person or a tool.
    pub worker: Option<WorkerId>,
    /// The build.
    pub build: BuildId,
}

/// The answer to a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// Written; the job is now in this state.
    Applied(State),
    /// The fence did not hold: another has the job, or it has ended. Nothing was written.
    LeaseLost,
    /// Another transaction holds the job's row. Nothing was written; settle it again later.
    Locked,
}

/// A checkpoint to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSave {
    /// The run that saves it.
    pub fence: Fence,
    /// The version of its shape.
    pub version: Version,
    /// The oldest reader that its writer vouches for.
    pub min_reader: MinReader,
    /// Its JSON text.
    pub text: String,
    /// Whether the job's failures stay counted although it got on.
    pub keeps_failures: bool,
}

/// Whether a run may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It holds its claim; what it asked to write is written.
    Held,
    /// It holds its claim and what it asked to write is written, but someone asked to cancel it.
    CancelRequested,
    /// The fence did not hold. Nothing was written.
    Lost,
}

/// The answer to a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Saved {
    /// Whether the run may go on; it was written unless the fence was lost.
    Answered(Standing),
    /// Another transaction held the job's row for longer than the store waits. Nothing was written;
    /// save it again later.
    Locked,
}

/// What the row says of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Row {
    /// Still running under this claim: no settlement of it was applied. Its counters as stored.
    Running(Counters),
    /// Not running any more, under this claim's number: its settlement was applied.
    Settled(State),
    /// Under a higher number: it was taken from this run.
    Taken(ClaimNumber),
    /// No such job, or one that never had this claim.
    Missing,
    /// Another transaction holds the job's row for longer than a read waits; ask again later.
    Locked,
}
