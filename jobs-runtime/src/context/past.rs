//! What a handler can learn of the run before its own.

use jobs_core::{Event, EventKind, Interruption};

use super::{JobContext, unanswered};
use crate::handler::JobError;

impl<S, C> JobContext<S, C> {
    /// Whether the run before this one was cut off: its worker died or gave it up, or its undo
    /// failed. It may then have left partial work behind outside the store, which this run should
    /// look for before it begins.
    ///
    /// Read from the job's history, and only where the job was interrupted since its checkpoint last
    /// moved. A run that put the job off in between leaves no trace there, so `true` may also speak
    /// of the run before that one.
    ///
    /// # Errors
    /// An infrastructure error when the store can't be asked.
    pub async fn was_cut_off(&self) -> Result<bool, JobError> {
        if self.info().interruptions() == 0 {
            return Ok(false);
        }
        let events = self.jobs().inspect().events(self.id()).await;
        let events = events.map_err(|error| unanswered(error.into()))?;
        Ok(is_cut_off(&events))
    }
}

fn is_cut_off(events: &[Event]) -> bool {
    let ends = events.iter().rev().find(|event| match event.kind {
        EventKind::Failed | EventKind::Interrupted | EventKind::Crashed => true,
        EventKind::Refused
        | EventKind::Cancelled
        | EventKind::Redriven
        | EventKind::Rescheduled
        | EventKind::SettledLate
        | EventKind::Stranded => false,
    });
    ends.is_some_and(|event| {
        let undo_failed = Interruption::UndoFailed(String::new());
        event.kind == EventKind::Crashed
            || event.kind == EventKind::Interrupted
                && [Interruption::GivenUp.class(), undo_failed.class()].contains(&&*event.class)
    })
}
