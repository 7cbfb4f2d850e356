//! The runs that were started and have not had a thread yet.
//!
//! 1. Short runs end together when the last of them has had its first turn of a thread: what claims and
//!    settles waits for that, and asleep, so that every thread is free for the runs.
//! 2. Nobody waits for longer than [`LONGEST`]: a handler that blocks its thread may sit on the turn of
//!    another run, and holds nothing else up.
//!
//! Why not turns of the runtime alone: a turn is one of the thread that it is taken on, and the runs of
//! a claim are on all threads. The first of a hundred short runs was claimed for and settled alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Far longer than the first turns of a thousand short runs take, and far below what anyone sees.
const LONGEST: Duration = Duration::from_millis(2);

/// Counts the runs of one worker that wait for their first turn.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    waiting: AtomicUsize,
    none: Notify,
}

impl Starts {
    /// So many runs are about to be started.
    pub(crate) fn add(&self, runs: usize) {
        self.waiting.fetch_add(runs, Ordering::SeqCst);
    }

    /// A run has had its first turn: it has ended, or waits for something.
    pub(crate) fn had_turn(&self) {
        // None is left where it took so long that nobody waited for it. Counted for a later run, it ends a wait
        // early, which costs a smaller batch and nothing else.
        let one_less = self
            .waiting
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |runs| runs.checked_sub(1));
        if one_less == Ok(1) {
            self.none.notify_waiters();
        }
    }

    /// Waits until every run that was started has had its first turn, or for the longest that anyone
    /// waits for that; those that have not had it by then are waited for no more.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub(crate) async fn had_turns(&self) {
        // It hears of what comes from here on.
        let none = self.none.notified();
        if self.waiting.load(Ordering::SeqCst) > 0 && timeout(LONGEST, none).await.is_err() {
            self.waiting.store(0, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests;
