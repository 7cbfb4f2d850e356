//! The undo of an interrupted run: what it left behind outside the store, undone before its job is
//! given back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jobs_core::{ClaimedJob, Ending, Interruption};

use super::limit;
use crate::context::Parts;
use crate::handler::JobError;
use crate::judge::{Judged, Wanted, panic_text};
use crate::run::{Reason, RunInfo, RunSignals};
use crate::worker::ledger::Entry;
use crate::worker::shared::Shared;

/// How often an undo looks whether its lease is lost.
const LEASE_LOOK: Duration = Duration::from_millis(100);

/// How a run ended whose kind must undo what an interrupted run left behind: after the undo.
///
/// Nothing bounds it but its own time-out and the end of the process: a claim whose undo has not
/// ended then is abandoned, and comes back when the process is gone. A run that lost its lease is
/// not undone here: its successor may be at work, and is told.
pub(super) async fn undone<S>(
    shared: &Arc<Shared<S>>,
    job: &ClaimedJob,
    judged: &Judged<'_, S>,
    entry: &Entry,
    ending: Ending,
) -> Ending
where
    S: Clone + Send + Sync + 'static,
{
    match ending {
        Ending::Interrupted(Interruption::Stopped(_) | Interruption::Infrastructure(_)) => {}
        other => return other,
    }
    let Ok(undo) = judged.prepare(job, Wanted::Undo) else {
        return undo_failed("the payload does not decode any more".to_owned());
    };
    // Signals of its own: it is not asked to stop.
    let signals = Arc::new(RunSignals::default());
    let timeout = judged.handled.policy.timeout;
    let info = Arc::new(RunInfo::of(job, judged.handled.of.clone(), timeout));
    let parts = Parts {
        jobs: shared.jobs.clone(),
        info,
        signals: signals.clone(),
        board: shared.board.clone(),
    };
    let undo = AssertUnwindSafe(async { undo(shared.state.clone(), parts).await }).catch_unwind();
    let lost = async {
        while entry.signals.reason() != Some(Reason::Lease) {
            tokio::time::sleep(LEASE_LOOK).await;
        }
    };
    let ended = tokio::select! {
        biased;
        ended = undo => ended,
        () = lost => return Ending::Interrupted(Interruption::GivenUp),
        () = limit(timeout) => Ok(Err(JobError::new("the undo took longer than a run may"))),
    };
    signals.end_spawned().await;
    entry.signals.note_write(signals.wrote());
    match ended {
        Ok(Ok(_)) => ending,
        Ok(Err(error)) => undo_failed(error.to_string()),
        Err(panic) => undo_failed(panic_text(panic)),
    }
}

fn undo_failed(text: String) -> Ending {
    tracing::error!(error = text, "the undo of an interrupted run failed; the next run is told");
    Ending::Interrupted(Interruption::UndoFailed(text))
}
