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
use jobs_core::{ClaimedJob, Ending, Interruption, JobRecord, StoreError, StoredCheckpoint};

use super::{dropped, limit};
use crate::context::Parts;
use crate::handler::JobError;
use crate::judge::{Judged, Wanted, panic_text};
use crate::log;
use crate::run::{Before, PutOff, Reason, RunInfo, RunSignals, Wrote};
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
    let mut undoing = Box::pin(undo(shared, job, entry, ending));
    let ending = tokio::select! {
        biased;
        ending = &mut undoing => ending,
        () = lost => Ending::Interrupted(Interruption::GivenUp),
    };
    match dropped(undoing) {
        Ok(()) => ending,
        Err(text) => undo_failed(text),
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
    // What was put off is then its to replace: whatever it saves comes later.
    if let Some(put_off) = put_off {
        signals.kept().keep(put_off);
    }
    let ended = match shared.build().judged(&left) {
        Ok(judged) => call(shared, &left, &judged, &signals).await,
        Err(_) => Err("its checkpoint can't be read by the build that saved it".to_owned()),
    };
    signals.end_spawned().await;
    if let Some(put_off) = signals.kept().take_checkpoint() {
        entry.signals.kept().keep(put_off);
    }
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
    put_off: Option<&PutOff>,
) -> Result<Option<ClaimedJob>, StoreError> {
    if entry.signals.wrote() == Wrote::Nothing && put_off.is_none() {
        return Ok(Some(job.clone()));
    }
    let certain = put_off.filter(|put_off| put_off.before.is_none());
    let as_left = |checkpoint| Ok(Some(ClaimedJob { checkpoint, ..job.clone() }));
    while !shared.over.is_cancelled() {
        match (read(shared, job).await, certain) {
            (Ok(Some(Row::Running(_))) | Err(_), Some(put_off)) => {
                return as_left(Some(stored(&put_off.save)));
            }
            (Ok(Some(Row::Running(_))), None) => {
                match shared.jobs.inspect().job(job.fence.job).await {
                    Ok(record) => return as_left(latest(record, put_off)),
                    Err(error) if error.is_transient() => tell(shared, &error),
                    Err(error) => return Err(error),
                }
            }
            (Ok(Some(Row::Locked)), _) => {}
            (Ok(Some(Row::Settled(_) | Row::Taken(_) | Row::Missing) | None), _) => {
                return Ok(None);
            }
            (Err(error), None) if error.is_transient() => tell(shared, &error),
            (Err(error), None) => return Err(error),
        }
        pause(shared, ROW_LOOK).await;
    }
    Ok(None)
}

/// The checkpoint in the row, or the one that was put off, where the transaction that saved a later one
/// came to nothing.
fn latest(record: Option<JobRecord>, put_off: Option<&PutOff>) -> Option<StoredCheckpoint> {
    let in_row = record.and_then(|record| record.checkpoint);
    let number = in_row.as_ref().map_or(0, |saved| saved.number);
    let is_before = |before: &Before| before.number == number;
    let put_off = put_off.filter(|it| it.before.as_ref().is_some_and(is_before));
    put_off.map(|put_off| stored(&put_off.save)).or(in_row)
}

async fn read<S>(shared: &Shared<S>, job: &ClaimedJob) -> Result<Option<Row>, StoreError> {
    Ok(shared.store().reread(&[job.fence]).await?.into_iter().next())
}

fn tell<S>(shared: &Shared<S>, error: &StoreError) {
    if shared.is_outage(error, "read the checkpoint of a run that is undone") {
        return;
    }
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
    let undo = judged.prepare(job, Wanted::Undo).map_err(|unreadable| unreadable.text)?;
    let timeout = judged.handled.policy.timeout;
    let parts = Parts {
        jobs: shared.jobs.clone(),
        info: Arc::new(RunInfo::of(job, judged.handled.of.clone(), timeout)),
        signals: signals.clone(),
        board: shared.board.clone(),
    };
    let undo = AssertUnwindSafe(async { undo(shared.state.clone(), parts).await }).catch_unwind();
    let mut undo = Box::pin(undo);
    let ended = tokio::select! {
        biased;
        ended = &mut undo => ended,
        () = limit(timeout) => Ok(Err(JobError::new("the undo took longer than a run may"))),
    };
    dropped(undo)?;
    match ended {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(panic_text(panic)),
    }
}

fn undo_failed(text: String) -> Ending {
    tracing::error!(error = text, "the undo of an interrupted run failed; the next run is told");
    Ending::Interrupted(Interruption::UndoFailed(text))
}
