//! Writes how far handlers say that they have come: for all runs together, at most once a second.
//!
//! A handler that tells it never waits, and a worker whose handlers tell nothing does nothing here.
//! What is left when a run ends goes with its settlement.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::{Fence, ProgressNote};

use super::shared::{Shared, pause};
use crate::log;
use crate::run::RunSignals;

/// How often progress is written.
const EVERY: Duration = Duration::from_secs(1);
/// How many runs one statement tells of.
const BATCH: usize = 1_000;

pub(super) async fn progress_loop<S>(shared: Arc<Shared<S>>) {
    loop {
        tokio::select! {
            biased;
            () = shared.over.cancelled() => return,
            () = shared.board.news() => {}
        }
        for runs in shared.board.take().chunks(BATCH) {
            write(&shared, runs).await;
        }
        if pause(&shared, EVERY).await {
            return;
        }
    }
}

/// Writes what these runs told last. What could not be written comes again, unless the run has ended.
async fn write<S>(shared: &Shared<S>, runs: &[(Fence, Arc<RunSignals>)]) {
    let told = |(fence, signals): &(Fence, Arc<RunSignals>)| {
        let text = signals.kept().progress()?;
        Some((ProgressNote { fence: *fence, text }, signals.clone()))
    };
    let (notes, signals): (Vec<_>, Vec<_>) = runs.iter().filter_map(told).unzip();
    if notes.is_empty() {
        return;
    }
    let written = match shared.store().note_progress(&notes).await {
        Ok(written) => written,
        Err(error) => {
            shared.tell_failed(&log::PROGRESS, &error);
            vec![false; notes.len()]
        }
    };
    for ((note, signals), is_written) in notes.into_iter().zip(signals).zip(written) {
        let is_left = if is_written {
            signals.kept().told(&note.text)
        } else {
            signals.kept().progress().is_some()
        };
        // What is told after its run is written by nobody.
        if is_left && shared.ledger.holds(note.fence) {
            shared.board.put(note.fence, signals);
        }
    }
}
