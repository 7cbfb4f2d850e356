//! The last checkpoint of a run, where its handler had put it off.
//!
//! Written when the handler has ended and freed its slot, and before the run is settled, since after
//! that its fence no longer holds; beside the other runs, so that a row that someone holds keeps none
//! of them waiting. A worker that is over leaves it: the next run resumes from the one before.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::Row;
use jobs_core::{Fence, StoreError, StoreErrorKind};

use super::ledger::Entry;
use super::shared::{Shared, pause};
use crate::log;
use crate::run::{self, Before, PutOff, Reason, Wrote};

/// The first pause between two tries while the store can't be reached; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Writes what was put off, however often that takes, until the worker is over, the run is lost, or the
/// store refuses it for good.
pub(super) async fn flush<S>(shared: &Arc<Shared<S>>, entry: &Entry) {
    let Some(put_off) = entry.signals.kept().take_checkpoint() else {
        return;
    };
    let save = &put_off.save;
    entry.signals.note_write(Wrote::Checkpoint);
    let mut wait = FIRST_PAUSE;
    while entry.signals.reason() != Some(Reason::Lease) {
        let saved = tokio::select! {
            saved = save_latest(shared, &put_off) => saved,
            () = shared.over.cancelled() => return,
        };
        let Err(error) = saved else { return };
        let (job, kind) = (save.fence.job.0, &*entry.kind);
        let chain = jobs_core::chain(&error);
        if !error.is_transient() {
            tracing::warn!(job, kind, error = chain, "the last checkpoint of a run is lost");
            return;
        }
        if !shared.is_outage(&error, "save a checkpoint") {
            log::CHECKPOINT.write(shared.elapsed(), || {
                tracing::warn!(job, kind, error = chain, "can't save a checkpoint; trying again");
            });
        }
        if pause(shared, wait).await {
            return;
        }
        wait = (wait * 2).min(LONGEST_PAUSE);
    }
}

/// Saves a checkpoint, unless a later one was committed. Whether the fence held is told by the
/// settlement.
async fn save_latest<S>(shared: &Shared<S>, put_off: &PutOff) -> Result<(), StoreError> {
    let PutOff { save, before } = put_off;
    if let Some(before) = before
        && was_followed(shared, save.fence, before).await?
    {
        return Ok(());
    }
    run::save(shared.store(), save).await.map(drop)
}

/// Whether a transaction that saved a later checkpoint was committed; waits out one that is open.
async fn was_followed<S>(
    shared: &Shared<S>,
    fence: Fence,
    before: &Before,
) -> Result<bool, StoreError> {
    match shared.store().reread(&[fence]).await?.first() {
        Some(Row::Running(_)) => {
            let record = shared.jobs.inspect().job(fence.job).await?;
            Ok(Before::of(record).number != before.number)
        }
        Some(Row::Locked) => Err(StoreError::new(StoreErrorKind::Busy, "the job's row is held")),
        Some(Row::Settled(_) | Row::Taken(_) | Row::Missing) | None => Ok(true),
    }
}
