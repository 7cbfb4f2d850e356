//! Runs that the store did not take, for a reason that reads as its own: away, busy, full, a standby.
//!
//! 1. While the store takes nothing, one call asks for all of them: for one run alone, drawn by lot.
//! 2. Where it takes that one and not the others together, each is tried alone, as long as not too many fail
//!    one after another. So a row that makes its batch fail in such words (by a trigger of the database) is
//!    left by itself.
//! 3. Every one is tried again until it is taken, or the worker is over.

use std::time::Duration;

use jobs_core::below;

use super::{BATCH, Ended, attempt};
use crate::worker::shared::Shared;

/// The first pause between two tries; it doubles while nothing is taken.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// So many that fail alone, one after another, are a sign that the store is away after all.
const MOST_IN_A_ROW: usize = 3;

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
