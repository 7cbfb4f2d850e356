//! Runs that the store did not take, for a reason that reads as its own: away, busy, full, a standby.
//!
//! 1. While the store takes nothing, one call asks for all of them: for one run alone, drawn by lot.
//! 2. Where it takes that one and not the others together, each is tried alone, as long as not too many fail
//!    one after another. So a row that makes its batch fail in such words (by a trigger of the database) is
//!    left by itself.
//! 3. Every one is tried again until it is taken, or the worker is over.
//! 4. A run whose settlement fails while the store answers other calls is told by the name of its job, and
//!    neither begins an outage nor keeps one from its end.

use std::time::Duration;

use jobs_core::{StoreError, StoreErrorKind, below};

use super::{BATCH, Ended, attempt};
use crate::log;
use crate::worker::shared::Shared;

/// The first pause between two tries; it doubles while nothing is taken.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// So many that fail alone, one after another, are a sign that the store is away after all.
const MOST_IN_A_ROW: usize = 3;

/// Whether the store is away, the calls that come by themselves tell soon, and better than the settlement of a
/// run, which may be a row's fault. Settlements tell only where no call at all was answered for so long, and
/// promotions are more frequent.
const TOLD_BY_OTHERS: Duration = Duration::from_secs(6);

/// Tells of runs that the store has just not taken, in as far as that is known to be its fault or theirs.
pub(super) fn tell<S>(shared: &Shared<S>, batch: &mut [Ended], error: &StoreError) {
    let now = shared.elapsed();
    let outage = &shared.outage;
    let answers_others = |at: Option<Duration>| at.is_some_and(|at| outage.has_answered_since(at));
    let is_of_rows = batch.iter().all(|ended| answers_others(ended.failed_at));
    let is_silent = |tried_at: Duration| {
        let long_ago = now.saturating_sub(TOLD_BY_OTHERS);
        tried_at <= long_ago && !outage.has_answered_since(long_ago)
    };
    let is_of_store = outage.is_on()
        || error.kind() != StoreErrorKind::Unavailable
        || batch.iter().any(|ended| ended.tried_at.is_some_and(is_silent));
    for ended in &mut *batch {
        ended.failed_at = Some(now);
    }
    match batch {
        [ended] if is_of_rows => {
            outage.tell_of_a_run(now, ended.run.fence.job, &ended.kind, error);
        }
        _ if is_of_store && !is_of_rows => {
            if !shared.is_outage(error, "settle") {
                log::SETTLE.write(now, || {
                    let error = jobs_core::chain(error);
                    tracing::warn!(error, runs = batch.len(), "can't settle; trying again");
                });
            }
        }
        _ => {
            let error = jobs_core::chain(error);
            tracing::debug!(error, runs = batch.len(), "not settled yet; trying again");
        }
    }
}

/// Runs that the store did not take yet.
#[derive(Debug, Default)]
pub(super) struct Untaken {
    runs: Vec<Ended>,
    doubt: Doubt,
    /// How often the store took none, one try after another.
    vain: u32,
}

/// Where the fault seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Doubt {
    /// The store's: one run alone tells.
    #[default]
    OfStore,
    /// A row's: the store took one, and the others not together.
    OfRows,
}

impl Untaken {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds runs that were just tried in vain; they are tried again soon.
    pub(super) fn add(&mut self, runs: Vec<Ended>) {
        if !runs.is_empty() {
            self.runs.extend(runs);
            self.vain = 0;
        }
    }

    /// How long to wait before the next try.
    pub(super) fn pause(&self) -> Duration {
        FIRST_PAUSE.saturating_mul(1 << self.vain.min(10)).min(LONGEST_PAUSE)
    }

    /// Tries them again, once. Puts apart those whose rows others hold.
    pub(super) async fn settle<S>(&mut self, shared: &Shared<S>, locked: &mut Vec<Ended>) {
        let before = self.runs.len();
        match self.doubt {
            Doubt::OfStore => self.settle_one_first(shared, locked).await,
            Doubt::OfRows => self.settle_each(shared, locked).await,
        }
        self.vain = if self.runs.len() < before { 0 } else { self.vain.saturating_add(1) };
    }

    /// Tries one, and where that is taken the others together. By lot: whose fault it is, is not known, and
    /// those at fault stay the longest.
    async fn settle_one_first<S>(&mut self, shared: &Shared<S>, locked: &mut Vec<Ended>) {
        let count = u64::try_from(self.runs.len()).unwrap_or(u64::MAX);
        let nth = usize::try_from(below(shared.draw(), count)).unwrap_or(0);
        let left = attempt(shared, vec![self.runs.remove(nth)], locked).await;
        if !left.is_empty() {
            self.runs.extend(left);
            return;
        }
        let together = self.runs.drain(..self.runs.len().min(BATCH)).collect();
        let left = attempt(shared, together, locked).await;
        if !left.is_empty() {
            self.doubt = Doubt::OfRows;
        }
        self.runs.extend(left);
    }

    /// Tries each alone, until too many fail one after another. Those that fail go to the back.
    async fn settle_each<S>(&mut self, shared: &Shared<S>, locked: &mut Vec<Ended>) {
        self.doubt = Doubt::OfStore;
        let (mut failed, mut in_a_row) = (Vec::new(), 0);
        let mut runs = std::mem::take(&mut self.runs).into_iter();
        while in_a_row < MOST_IN_A_ROW
            && !shared.over.is_cancelled()
            && let Some(run) = runs.next()
        {
            let left = attempt(shared, vec![run], locked).await;
            in_a_row = if left.is_empty() { 0 } else { in_a_row + 1 };
            failed.extend(left);
        }
        self.runs.extend(runs);
        self.runs.extend(failed);
    }
}
