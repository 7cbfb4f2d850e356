//! What people and tools change.

use crate::clock::Timestamp;
use crate::id::JobId;
use crate::record::Priority;
use crate::state::State;
use crate::transition::Due;

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
    /// Bring back only what had ended before this instant, so that a job which was brought back, ran
    /// and died again since somebody looked stays as it is.
    pub ended_before: Option<Timestamp>,
    /// Give the job a new idempotency key: what it asks of others counts as asked for the first time.
    pub makes_new_key: bool,
}

/// What is changed of jobs that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reschedule {
    /// When they are due; `None` leaves it.
    pub due: Option<Due>,
    /// How urgent they are; `None` leaves it.
    pub priority: Option<Priority>,
}

impl Reschedule {
    /// What the history says of the change.
    pub fn text(self) -> String {
        let due = match self.due {
            None | Some(Due::Unchanged) => None,
            Some(Due::In(wait)) if wait.is_zero() => Some("due at once".to_owned()),
            Some(Due::In(wait)) => Some(format!("due in {wait:?}")),
            Some(Due::At(instant)) => Some(format!("due at {instant}")),
        };
        let priority = self.priority.map(|priority| format!("priority {}", priority.value()));
        let told: Vec<String> = due.into_iter().chain(priority).collect();
        if told.is_empty() { "unchanged".to_owned() } else { told.join(", ") }
    }
}

/// What became of a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Redriven {
    /// It is ready again.
    Ready,
    /// A waiting job with its kind and unique key stands for it, or a running one where both bind their
    /// key while they run; it stays as it was.
    TwinWaits(JobId),
    /// It ended at or after the instant that the redrive goes up to; it stays as it was.
    EndedLater,
    /// It is in this state and can't be redriven.
    Not(State),
    /// There is no such job.
    Missing,
}
