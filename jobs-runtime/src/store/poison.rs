//! Rows of jobs that the database does not let anyone write, because of a trigger, a constraint or damage.
//!
//! What is done to many rows in one transaction (taking back, promoting, ending, deleting) would be undone
//! for all of them by one such row, again and again. So where the database answers that a row is at fault:
//!
//! 1. The call is made again in halves, down to the row that fails alone; all others are written.
//! 2. That row is told by its id with the database's own words, and passed over for a pause that doubles from
//!    one second to a minute; then it is tried again.
//! 3. Where many fail one after another it is not a row's fault, and the call goes no further.
//!
//! While no row is known, all of it costs one look at a flag.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_core::JobId;

use crate::log::Few;

/// The first pause of a row; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// So many rows that fail alone, one after another, are no row's fault.
const MOST_IN_A_ROW: usize = 8;
/// More rows than that are not kept in mind: they are tried with all others.
const MOST_KNOWN: usize = 10_000;

/// The rows that are known, of one store.
#[derive(Debug)]
pub(super) struct Poison {
    /// Whether there are any.
    is_known: AtomicBool,
    rows: Mutex<HashMap<JobId, Pause>>,
    line: Few,
}

/// When a row is tried again.
#[derive(Debug, Clone, Copy)]
struct Pause {
    over_at: Duration,
    span: Duration,
}

impl Default for Poison {
    fn default() -> Self {
        Self { is_known: AtomicBool::new(false), rows: Mutex::default(), line: Few::new() }
    }
}

impl Poison {
    /// Whether any row is known. Cheap.
    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Whether a row is to be passed over now.
    pub(super) fn is_paused(&self, job: JobId, now: Duration) -> bool {
        self.rows().get(&job).is_some_and(|pause| pause.over_at > now)
    }

    /// How many rows are to be passed over now. Forgets those that nobody has met for long.
    pub(super) fn paused(&self, now: Duration) -> u32 {
        let mut rows = self.rows();
        rows.retain(|_, pause| now < pause.over_at.saturating_add(LONGEST_PAUSE * 2));
        self.is_known.store(!rows.is_empty(), Ordering::Relaxed);
        let paused = rows.values().filter(|pause| pause.over_at > now).count();
        u32::try_from(paused).unwrap_or(u32::MAX)
    }

    /// How long until the first of the rows that are passed over is tried again.
    pub(super) fn next_in(&self, now: Duration) -> Option<Duration> {
        let pauses = self.rows();
        let left = pauses.values().map(|pause| pause.over_at.saturating_sub(now));
        left.filter(|left| !left.is_zero()).min()
    }

    /// A row could not be written, though nothing else was written with it. `doing` says what was wanted.
    pub(super) fn found(&self, job: JobId, doing: &str, error: &str, now: Duration) {
        let span = {
            let mut rows = self.rows();
            let known = rows.get(&job).map(|pause| pause.span.saturating_mul(2).min(LONGEST_PAUSE));
            let span = known.unwrap_or(FIRST_PAUSE);
            if known.is_some() || rows.len() < MOST_KNOWN {
                rows.insert(job, Pause { over_at: now.saturating_add(span), span });
            }
            self.is_known.store(true, Ordering::Relaxed);
            span
        };
        if span > FIRST_PAUSE && span < LONGEST_PAUSE {
            // It was told a moment ago.
            return tracing::debug!(job = job.0, doing, error, "a row is still not to be written");
        }
        self.line.write(now, |left_out| {
            tracing::warn!(
                job = job.0,
                doing,
                error,
                left_out,
                "the database lets nobody write the row of a job; going on without it"
            );
        });
    }

    /// Rows were written.
    pub(super) fn cured(&self, jobs: impl IntoIterator<Item = JobId>) {
        let mut rows = self.rows();
        for job in jobs {
            rows.remove(&job);
        }
        self.is_known.store(!rows.is_empty(), Ordering::Relaxed);
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<JobId, Pause>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows that are written together, or else in halves, down to those that can't be written at all.
#[derive(Debug)]
pub(super) struct Halves<T> {
    /// The next part is the last.
    left: Vec<Vec<T>>,
    in_a_row: usize,
}

impl<T> Halves<T> {
    /// All of the rows in one part.
    pub(super) fn of(rows: Vec<T>) -> Self {
        Self { left: if rows.is_empty() { Vec::new() } else { vec![rows] }, in_a_row: 0 }
    }

    /// The next part to write, never an empty one.
    pub(super) fn next(&mut self) -> Option<Vec<T>> {
        if self.is_given_up() { None } else { self.left.pop() }
    }

    /// Whether so many failed one after another that the rest was not tried.
    pub(super) fn is_given_up(&self) -> bool {
        self.in_a_row >= MOST_IN_A_ROW
    }

    /// The part was written.
    pub(super) fn written(&mut self) {
        self.in_a_row = 0;
    }

    /// The part was not written, for the fault of a row: which, if it is the only one.
    pub(super) fn failed(&mut self, mut part: Vec<T>) -> Option<T> {
        if part.len() <= 1 {
            self.in_a_row += 1;
            return part.pop();
        }
        let second = part.split_off(part.len() / 2);
        self.left.extend([second, part]);
        None
    }
}

#[cfg(test)]
mod tests;
