//! What people and tools change.

use crate::id::JobId;
use crate::state::State;

/// What became of a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cancelled {
    /// It was waiting and is cancelled.
    Cancelled,
    /// It is running; its worker will hear of it.
    Requested,
    /// It had ended already, in this state.
    Finished(State),
    /// There is no such job.
    Missing,
}

/// What a redrive keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redrive {
    /// Keep the counters; otherwise all of them start from zero.
    pub keeps_counters: bool,
    /// Forget the checkpoint and its number; otherwise the job resumes from it.
    pub forgets_checkpoint: bool,
}

/// What became of a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Redriven {
    /// It is ready again.
    Ready,
    /// A waiting job with its kind and unique key stands for it; it stays as it was.
    TwinWaits(JobId),
    /// It is in this state and can't be redriven.
    Not(State),
    /// There is no such job.
    Missing,
}
