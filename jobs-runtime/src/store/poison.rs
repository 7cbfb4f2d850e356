//! Rows of jobs that the database does not let anyone write, because of a trigger, a constraint or damage.
//!
//! What is done to many rows in one transaction (taking back, promoting, ending, deleting) would be undone
//! for all of them by one such row, again and again. So where the database answers that a row is at fault:
//!
//! 1. The call is made again in halves, down to the row that fails alone; all others are written.
//! 2. That row is told by its id with the database's own words, and passed over for a pause that doubles from
//!    one second to a minute; then it is tried again, after all rows that have not failed. So however many
//!    such rows stand together, they hold up no other for ever, up to the [ten thousand](MOST_KNOWN) that are
//!    kept in mind.
//! 3. Where many fail one after another it is not a row's fault, and the call goes no further.
//! 4. A call ends: it makes at most so many tries, and what it has written by then is kept.
//!
//! A row is known for what could not be done to it; whatever else is done with it goes on as ever. While none
//! is known, all of it costs one look at a flag.

mod call;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_core::JobId;

pub(super) use self::call::{Call, Halves, answer};
use crate::log::Few;

/// The first pause of a row; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A row that nobody has met for so long after its pause is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(2);
/// Nobody comes back for a row sooner than that: pauses that end one after another are waited for together.
const SOONEST: Duration = Duration::from_millis(100);
/// More rows than that are not kept in mind for one operation: each call tries them with all others.
/// So many rows a call looks at, and a server locks, beyond those that it is to write.
const MOST_KNOWN: usize = 10_000;

/// What is done to many rows at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Promote,
    Recall,
    Expire,
    Prune,
    TakeBack,
}

impl Operation {
    const COUNT: usize = Self::TakeBack as usize + 1;

    /// What could not be done, for the line that tells of a row.
    const fn doing(self) -> &'static str {
        match self {
            Self::Promote => "promote a job",
            Self::Recall => "recall a refused job",
            Self::Expire => "end an expired job",
            Self::Prune => "prune a job",
            Self::TakeBack => "take a job back",
        }
    }
}

/// The rows that are known, of one store.
#[derive(Debug)]
pub(super) struct Poison {
    known: [Known; Operation::COUNT],
    most_known: usize,
    line: Few,
}

/// The rows that are known for one operation.
#[derive(Debug, Default)]
struct Known {
    /// Whether there are any.
    is_any: AtomicBool,
    rows: Mutex<HashMap<JobId, Pause>>,
}

/// When a row is tried again.
#[derive(Debug, Clone, Copy)]
struct Pause {
    over_at: Duration,
    span: Duration,
    /// When a call last saw the row where it stood.
    met_at: Duration,
}

/// What is known of a row that has just failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    New,
    Again,
    /// It is not kept in mind.
    TooMany,
}

impl Default for Poison {
    fn default() -> Self {
        Self::of_most(MOST_KNOWN)
    }
}

impl Poison {
    fn of_most(most_known: usize) -> Self {
        Self { known: Default::default(), most_known, line: Few::new() }
    }

    /// Whether any row is known for it. Cheap.
    pub(super) fn is_known(&self, operation: Operation) -> bool {
        self.of(operation).is_any.load(Ordering::Relaxed)
    }

    /// How many rows are to be passed over now.
    pub(super) fn paused(&self, operation: Operation, now: Duration) -> u32 {
        let rows = self.of(operation).lasting(now);
        count(rows.values().filter(|pause| pause.over_at > now).count())
    }

    /// The first of these that is not to be passed over now.
    pub(super) fn first_free<T>(
        &self,
        operation: Operation,
        rows: impl IntoIterator<Item = (JobId, T)>,
        now: Duration,
    ) -> Option<T> {
        let known = self.of(operation).rows();
        let is_paused = |job: &JobId| known.get(job).is_some_and(|pause| pause.over_at > now);
        rows.into_iter().find(|(job, _)| !is_paused(job)).map(|(_, row)| row)
    }

    /// How long until the first of the rows that are passed over is tried again; never in no time.
    pub(super) fn next_in(&self, operation: Operation, now: Duration) -> Option<Duration> {
        let rows = self.of(operation).rows();
        let left = rows.values().map(|pause| pause.over_at.saturating_sub(now));
        left.filter(|left| !left.is_zero()).min().map(|left| left.max(SOONEST))
    }

    /// A call that writes at most `limit` rows in halves.
    pub(super) fn call<E>(&self, operation: Operation, limit: u32) -> Call<'_, E> {
        Call::new(self, operation, limit)
    }

    /// How many rows are known, whether they are passed over or not.
    fn known(&self, operation: Operation, now: Duration) -> u32 {
        count(self.of(operation).lasting(now).len())
    }

    /// Parts rows that a call has met: those that never failed, and those whose pause is over, longest over
    /// first, so that each has its turn. The others are passed over.
    fn sort<T>(
        &self,
        operation: Operation,
        met: Vec<(JobId, T)>,
        now: Duration,
    ) -> (Vec<T>, Vec<T>) {
        let mut rows = self.of(operation).rows();
        let (mut fresh, mut known) = (Vec::new(), Vec::new());
        for (job, row) in met {
            match rows.get_mut(&job) {
                None => fresh.push(row),
                Some(pause) => {
                    pause.met_at = now;
                    if pause.over_at <= now {
                        known.push((pause.over_at, row));
                    }
                }
            }
        }
        known.sort_by_key(|(over_at, _)| *over_at);
        (fresh, known.into_iter().map(|(_, row)| row).collect())
    }

    /// A row could not be written, though nothing else was written with it.
    fn found(&self, operation: Operation, job: JobId, error: &str, now: Duration) -> Found {
        let (found, span) = self.of(operation).pause(job, self.most_known, now);
        let doing = operation.doing();
        if span > FIRST_PAUSE && span < LONGEST_PAUSE {
            // It was told a moment ago.
            tracing::debug!(job = job.0, doing, error, "a row is still not to be written");
            return found;
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
        found
    }

    /// Rows were written.
    fn cured(&self, operation: Operation, jobs: impl IntoIterator<Item = JobId>) {
        if !self.is_known(operation) {
            return;
        }
        let known = self.of(operation);
        let mut rows = known.rows();
        for job in jobs {
            rows.remove(&job);
        }
        known.note(&rows);
    }

    fn of(&self, operation: Operation) -> &Known {
        &self.known[operation as usize]
    }
}

impl Known {
    fn rows(&self) -> MutexGuard<'_, HashMap<JobId, Pause>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All but those that nobody has met for long, which it forgets.
    fn lasting(&self, now: Duration) -> MutexGuard<'_, HashMap<JobId, Pause>> {
        let mut rows = self.rows();
        rows.retain(|_, pause| {
            now < pause.over_at.max(pause.met_at).saturating_add(FORGOTTEN_AFTER)
        });
        self.note(&rows);
        rows
    }

    /// Passes a row over from now on; answers for how long.
    fn pause(&self, job: JobId, most: usize, now: Duration) -> (Found, Duration) {
        let mut rows = self.rows();
        let span = rows.get(&job).map(|pause| pause.span.saturating_mul(2).min(LONGEST_PAUSE));
        let found = match span {
            Some(_) => Found::Again,
            None if rows.len() < most => Found::New,
            None => Found::TooMany,
        };
        let span = span.unwrap_or(FIRST_PAUSE);
        if found != Found::TooMany {
            rows.insert(job, Pause { over_at: now.saturating_add(span), span, met_at: now });
        }
        self.note(&rows);
        (found, span)
    }

    fn note(&self, rows: &HashMap<JobId, Pause>) {
        self.is_any.store(!rows.is_empty(), Ordering::Relaxed);
    }
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
