//! One call that writes many rows in halves: what it tries, in which order, and when it is over.
//!
//! Pure: the stores read and write, this decides for both.

use std::time::Duration;

use jobs_core::JobId;
use jobs_core::store::Swept;

use super::{Found, Operation, Poison, count};

/// So many rows that fail alone, one after another, and then one from the other end: no row's fault. Where more
/// are known already, there may be as many again.
pub(super) const MOST_IN_A_ROW: u32 = 8;
/// So many parts a call tries at most, each under a savepoint of the one transaction: it holds its locks for
/// so long, and the next call goes on from there. Rows by the thousand are one part where none is at fault.
pub(super) const MOST_TRIES: u32 = 256;

/// How far a call has come. `E` is what the store says of a part that was not written.
#[derive(Debug)]
pub(in crate::store) struct Call<'a, E> {
    poison: &'a Poison,
    operation: Operation,
    limit: u32,
    written: u32,
    tries: u32,
    in_a_row: u32,
    most_in_a_row: u32,
    /// When others wait for what the call holds.
    over_at: Duration,
    /// None before the first.
    round: Option<Round>,
    is_any_new: bool,
    is_given_up: bool,
    /// Why the last row that failed alone did.
    last: Option<E>,
}

/// What became of the rows that were looked at last.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    has_failed: bool,
    /// Rows were written or are passed over now, so that others stand there at the next look.
    has_moved: bool,
}

impl<'a, E> Call<'a, E> {
    pub(super) fn new(poison: &'a Poison, operation: Operation, limit: u32) -> Self {
        Self {
            poison,
            operation,
            limit,
            written: 0,
            tries: 0,
            in_a_row: 0,
            most_in_a_row: MOST_IN_A_ROW,
            over_at: Duration::MAX,
            round: None,
            is_any_new: false,
            is_given_up: false,
            last: None,
        }
    }

    /// Ends at this instant, once there is something to show for it.
    pub(in crate::store) fn until(self, over_at: Duration) -> Self {
        Self { over_at, ..self }
    }

    /// How many rows to look at next: as many as are still to be written, behind all that are known. None
    /// where the call is over.
    pub(in crate::store) fn look(&mut self, now: Duration) -> Option<u32> {
        let goes_on = self.round.is_none_or(|round| round.has_failed && round.has_moved);
        if !goes_on || self.left() == 0 || self.is_over(now) {
            return None;
        }
        let known = self.poison.known(self.operation, now);
        if self.round.replace(Round::default()).is_none() {
            self.most_in_a_row = MOST_IN_A_ROW.max(known);
        }
        Some(self.left().saturating_add(known))
    }

    /// Which of the rows that were looked at are tried, in two lists, the second after the first: those that
    /// never failed, then those whose pause is over.
    pub(in crate::store) fn choose<T>(&self, met: Vec<(JobId, T)>, now: Duration) -> [Vec<T>; 2] {
        let (mut fresh, mut known) = self.poison.sort(self.operation, met, now);
        let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
        fresh.truncate(left);
        known.truncate(left - fresh.len());
        [fresh, known]
    }

    /// The next part to write, never an empty one.
    pub(in crate::store) fn next<T>(
        &mut self,
        halves: &mut Halves<T>,
        now: Duration,
    ) -> Option<Vec<T>> {
        if self.is_over(now) {
            return None;
        }
        let part = halves.next()?;
        self.tries += 1;
        Some(part)
    }

    /// A part was written, as so many rows.
    pub(in crate::store) fn written(&mut self, jobs: impl IntoIterator<Item = JobId>, rows: usize) {
        self.in_a_row = 0;
        self.written = self.written.saturating_add(count(rows));
        self.round.get_or_insert_default().has_moved |= rows > 0;
        self.poison.cured(self.operation, jobs);
    }

    /// A part was not written, for the fault of a row. `told` are the database's words.
    pub(in crate::store) fn failed<T>(
        &mut self,
        halves: &mut Halves<(JobId, T)>,
        part: Vec<(JobId, T)>,
        (error, told): (E, &str),
        now: Duration,
    ) {
        let Some((job, _)) = halves.failed(part) else {
            return;
        };
        let found = self.poison.found(self.operation, job, told, now);
        self.is_any_new |= found != Found::Again;
        let round = self.round.get_or_insert_default();
        round.has_failed = true;
        round.has_moved |= found != Found::TooMany;
        self.in_a_row += 1;
        let is_last_hope = self.in_a_row == self.most_in_a_row && halves.bring_last_forward();
        self.is_given_up = self.in_a_row >= self.most_in_a_row && !is_last_hope;
        self.last = Some(error);
    }

    /// How many rows were written.
    ///
    /// # Errors
    /// None at all, and it is no row's fault: what the store said of the last of them. Rows that had failed
    /// before don't count: they were told.
    pub(in crate::store) fn end(self) -> Result<u32, E> {
        let is_in_vain = self.written == 0 && self.is_any_new;
        match self.last {
            Some(error) if is_in_vain && self.has_given_up() => Err(error),
            Some(_) | None => Ok(self.written),
        }
    }

    fn left(&self) -> u32 {
        self.limit.saturating_sub(self.written)
    }

    fn is_over(&self, now: Duration) -> bool {
        // Rows that failed alone let others go first at the next call.
        let has_something_to_show = self.written > 0 || self.last.is_some();
        self.has_given_up() || (now >= self.over_at && has_something_to_show)
    }

    fn has_given_up(&self) -> bool {
        self.is_given_up || self.tries >= MOST_TRIES
    }
}

/// What a sweep answers after its commit, whose runs were taken back in halves, or could not be at all. The
/// ends of leases are told all the same: no later sweep meets them again.
///
/// # Errors
/// Neither a run was taken back nor a lease ended.
pub(in crate::store) fn answer<E>(
    swept: Swept,
    taken: Result<u32, E>,
    told: impl FnOnce(&E) -> String,
) -> Result<Swept, E> {
    match taken {
        Ok(_) => Ok(swept),
        Err(error) if swept.workers.is_empty() => Err(error),
        Err(error) => {
            let error = told(&error);
            tracing::warn!(error, "no run of workers whose leases have ended can be taken back");
            Ok(swept)
        }
    }
}

/// Rows that are written together, or else in halves, down to those that can't be written at all.
#[derive(Debug)]
pub(in crate::store) struct Halves<T> {
    /// The next part is the last.
    left: Vec<Vec<T>>,
}

impl<T> Halves<T> {
    /// All of the rows in one part.
    pub(in crate::store) fn of(rows: Vec<T>) -> Self {
        Self { left: if rows.is_empty() { Vec::new() } else { vec![rows] } }
    }

    /// The next part, never an empty one.
    pub(in crate::store) fn next(&mut self) -> Option<Vec<T>> {
        self.left.pop()
    }

    /// The part was not written: for the fault of which row, if it is the only one.
    pub(in crate::store) fn failed(&mut self, mut part: Vec<T>) -> Option<T> {
        if part.len() <= 1 {
            return part.pop();
        }
        let second = part.split_off(part.len() / 2);
        self.left.extend([second, part]);
        None
    }

    /// Makes the last of all rows the next part. False where none is left.
    fn bring_last_forward(&mut self) -> bool {
        let last = self.left.first_mut().and_then(Vec::pop);
        self.left.retain(|part| !part.is_empty());
        let is_any = last.is_some();
        self.left.extend(last.map(|row| vec![row]));
        is_any
    }
}
