//! The undo of an interrupted run: what it left behind outside the store, undone before its job is
//! given back.
//!
//! 1. It sees the last checkpoint that the run saved, whether that stands in the row or was put off.
//! 2. What the row shows as settled, by a transaction of the run itself, is not undone.
//! 3. A run that lost its lease is not undone here: its successor may be at work, and is told.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jobs_core::store::{CheckpointSave, Row};
use jobs_core::{ClaimedJob, Ending, Interruption, StoreError, StoredCheckpoint};

use super::{Judged, Wanted, info, judged, limit, panic_text, prepare};
use crate::context::Parts;
use crate::handler::JobError;
use crate::log;
use crate::run::{Kept, Reason, RunSignals, Wrote};
use crate::worker::ledger::Entry;
use crate::worker::shared::{Shared, pause};

/// How often an undo looks whether its lease is lost.
const LEASE_LOOK: Duration = Duration::from_millis(100);
/// The pause between two looks at a row that can't be read now.
const ROW_LOOK: Duration = Duration::from_millis(100);

/// How a run ended whose kind must undo what an interrupted run left behind: after the undo.
///
/// Nothing bounds it but its own time-out and the end of the process: a claim whose undo has not
/// ended then is abandoned, and comes back when the process is gone.
pub(super) async fn undone<S>(
    shared: &Arc<Shared<S>>,
    job: &ClaimedJob,
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
    let lost = async {
        while entry.signals.reason() != Some(Reason::Lease) {
            tokio::time::sleep(LEASE_LOOK).await;
        }
    };
    tokio::select! {
        biased;
        ending = undo(shared, job, entry, ending) => ending,
        () = lost => Ending::Interrupted(Interruption::GivenUp),
    }
}

async fn undo<S>(shared: &Arc<Shared<S>>, job: &ClaimedJob, entry: &Entry, ending: Ending) -> Ending
where
    S: Clone + Send + Sync + 'static,
{
    let put_off = entry.signals.kept().take_checkpoint();
    let left = match left_behind(shared, job, entry, put_off.as_ref()).await {
        Ok(Some(left)) => left,
        Ok(None) => return ending,
        Err(error) => return undo_failed(jobs_core::chain(&error)),
    };
    // Signals of its own: it is not asked to stop.
    let signals = Arc::new(RunSignals::default());
    let ended = match judged(shared, &left) {
        Ok(judged) => call(shared, &left, &judged, &signals).await,
        Err(_) => Err("its checkpoint can't be read by the build that saved it".to_owned()),
    };
    signals.end_spawned().await;
    hand_back(put_off, &signals, entry.signals.kept());
    entry.signals.note_write(signals.wrote());
    match ended {
        Ok(()) => ending,
        Err(text) => undo_failed(text),
    }
}

/// The job as the run left it; `None` where it is over, by a transaction of the run itself or since
/// another has it. A row that can't be read now is waited for: an undo that goes by an earlier
/// checkpoint would undo too little.
async fn left_behind<S>(
    shared: &Arc<Shared<S>>,
    job: &ClaimedJob,
    entry: &Entry,
    put_off: Option<&CheckpointSave>,
) -> Result<Option<ClaimedJob>, StoreError> {
    if entry.signals.wrote() == Wrote::Nothing && put_off.is_none() {
        return Ok(Some(job.clone()));
    }
    while !shared.over.is_cancelled() {
        match read(shared, job).await {
            Ok(Some(Row::Running(_))) | Err(_) if put_off.is_some() => {
                return Ok(Some(ClaimedJob { checkpoint: put_off.map(stored), ..job.clone() }));
            }
            Ok(Some(Row::Running(_))) => match shared.jobs.inspect().job(job.fence.job).await {
                Ok(record) => {
                    let checkpoint = record.and_then(|record| record.checkpoint);
                    return Ok(Some(ClaimedJob { checkpoint, ..job.clone() }));
                }
                Err(error) if error.is_transient() => tell(shared, &error),
                Err(error) => return Err(error),
            },
            Ok(Some(Row::Locked)) => {}
            Ok(Some(Row::Settled(_) | Row::Taken(_) | Row::Missing) | None) => return Ok(None),
            Err(error) if error.is_transient() => tell(shared, &error),
            Err(error) => return Err(error),
        }
        pause(shared, ROW_LOOK).await;
    }
    Ok(None)
}

async fn read<S>(shared: &Shared<S>, job: &ClaimedJob) -> Result<Option<Row>, StoreError> {
    Ok(shared.store().reread(&[job.fence]).await?.into_iter().next())
}

fn tell<S>(shared: &Shared<S>, error: &StoreError) {
    log::CHECKPOINT.write(shared.elapsed(), || {
        let error = jobs_core::chain(error);
        tracing::warn!(error, "can't read the checkpoint of a run that is undone; trying again");
    });
}

/// A checkpoint that is still to be written, as it will stand in the row.
fn stored(save: &CheckpointSave) -> StoredCheckpoint {
    StoredCheckpoint {
        version: save.version.to_string(),
        min_reader: Some(save.min_reader.to_string()),
        text: save.text.clone(),
        number: 0,
    }
}

async fn call<S>(
    shared: &Arc<Shared<S>>,
    job: &ClaimedJob,
    judged: &Judged<'_, S>,
    signals: &Arc<RunSignals>,
) -> Result<(), String>
where
    S: Clone + Send + Sync + 'static,
{
    let undo = prepare(job, judged, Wanted::Undo).map_err(|unreadable| unreadable.text)?;
    let timeout = judged.handled.policy.timeout;
    let parts = Parts {
        jobs: shared.jobs.clone(),
        info: Arc::new(info(job, judged.handled, timeout)),
        signals: signals.clone(),
        board: shared.board.clone(),
    };
    let undo = AssertUnwindSafe(async { undo(shared.state.clone(), parts).await }).catch_unwind();
    let ended = tokio::select! {
        biased;
        ended = undo => ended,
        () = limit(timeout) => Ok(Err(JobError::new("the undo took longer than a run may"))),
    };
    match ended {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(panic_text(panic)),
    }
}

/// Which checkpoint is still to be written once the undo has ended: its own, else, where it saved
/// none, the one that the run had put off.
fn hand_back(put_off: Option<CheckpointSave>, undo: &RunSignals, run: &Kept) {
    let own = undo.kept().take_checkpoint();
    let put_off = put_off.filter(|_| undo.wrote() == Wrote::Nothing);
    if let Some(save) = own.or(put_off) {
        run.put_off(save);
    }
}

fn undo_failed(text: String) -> Ending {
    tracing::error!(error = text, "the undo of an interrupted run failed; the next run is told");
    Ending::Interrupted(Interruption::UndoFailed(text))
}
