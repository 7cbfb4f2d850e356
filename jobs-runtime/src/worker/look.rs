//! Looks at the head of the ready index: which routes have ready jobs, and where their first ones are.
//!
//! 1. A look goes beside the claims: where a snapshot is held for long, it walks all that vacuum can't remove.
//!    A claim whose place is known waits for it only where what is known is [`OLD`], and not for longer than
//!    [`PATIENCE`]. A worker that knows of no place where jobs may be has nothing else to wait for.
//! 2. It shows what was ready when it was sent. What comes or is claimed afterwards takes another one.
//! 3. Mostly they are cheap, and follow each other so that they take a twentieth of the time: what waits
//!    before the places of the claims is then found at once. Where two in a row take longer, a pause of
//!    [`RETURN`] follows, or of their own length if that is more.

use std::panic::resume_unwind;
use std::time::Duration;

use jobs_core::StoreError;
use jobs_core::store::ReadyRoute;
use tokio::task::{JoinError, JoinSet};

/// How soon after the last look a worker looks again whose claims always give something.
const RETURN: Duration = Duration::from_millis(250);
/// How soon it does where it was woken: a job of a higher priority may have come.
const WOKEN: Duration = Duration::from_millis(50);
/// Since when the last look was sent that a slot which gets free is not filled by any more.
const OLD: Duration = Duration::from_millis(500);
/// How long a free slot waits for a look.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// How many times as long as looks take is the pause behind one.
const REST: u32 = 20;

/// What a look saw.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) routes: Vec<ReadyRoute>,
    /// Whether nothing came and nothing was claimed since it was sent.
    pub(super) is_of_now: bool,
}

/// What a look answers, and when it ended on the clock of leases.
pub(super) type Answer = (Result<Vec<ReadyRoute>, StoreError>, Duration);

#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The one that is under way.
    running: JoinSet<Answer>,
    /// What the last one saw, until it is taken in.
    seen: Option<Result<Seen, StoreError>>,
    /// When the last one was sent, and when it ended, on the clock of leases.
    sent_at: Option<Duration>,
    ended_at: Option<Duration>,
    /// How long the last two took.
    took: [Duration; 2],
    /// Whether something changed since it was sent that it may not have seen.
    is_outdated: bool,
    /// Whether this worker was woken since.
    was_woken: bool,
}

impl Looks {
    /// Jobs were claimed.
    pub(super) fn claimed(&mut self) {
        self.is_outdated = true;
    }

    /// Jobs came.
    pub(super) fn woken(&mut self) {
        (self.is_outdated, self.was_woken) = (true, true);
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// How long it is to the next one, of a worker whose claims give nothing.
    pub(super) fn rest(&self, now: Duration) -> Duration {
        self.left(now, self.pause())
    }

    /// Whether the next one is due, of a worker whose claims give something.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let usual = RETURN.max(self.took());
        let gap = if self.was_woken { self.pause().max(WOKEN) } else { usual };
        !self.is_running() && self.left(now, gap).is_zero()
    }

    /// Whether the next one is due before anything is claimed: what the last one saw says little of now.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        let is_old = self.sent_at.is_none_or(|at| at + OLD <= now);
        is_old && !self.is_running() && self.rest(now).is_zero()
    }

    /// The pause behind the last one.
    fn pause(&self) -> Duration {
        self.took().saturating_mul(REST).min(RETURN.max(self.took()))
    }

    /// How long they take: a single slow one says nothing.
    fn took(&self) -> Duration {
        self.took[0].min(self.took[1])
    }

    /// What is left of a gap behind the last one.
    fn left(&self, now: Duration, gap: Duration) -> Duration {
        self.ended_at.map_or(Duration::ZERO, |at| at.saturating_add(gap).saturating_sub(now))
    }

    /// Sends one; none may be under way.
    pub(super) fn begin(
        &mut self,
        now: Duration,
        look: impl Future<Output = Answer> + Send + 'static,
    ) {
        self.sent_at = Some(now);
        (self.is_outdated, self.was_woken) = (false, false);
        self.running.spawn(look);
    }

    /// Waits until the one under way is over; for ever where there is none. Cancel safe.
    pub(super) async fn ended(&mut self) {
        match self.running.join_next().await {
            Some(ended) => self.end(ended),
            None => std::future::pending().await,
        }
    }

    /// What the last one saw, if it is over; once.
    pub(super) fn take(&mut self) -> Option<Result<Seen, StoreError>> {
        if let Some(ended) = self.running.try_join_next() {
            self.end(ended);
        }
        self.seen.take()
    }

    /// Gives up the one under way.
    pub(super) async fn close(&mut self) {
        self.running.abort_all();
        while let Some(ended) = self.running.join_next().await {
            self.end(ended);
        }
    }

    fn end(&mut self, ended: Result<Answer, JoinError>) {
        match ended {
            Ok((routes, ended_at)) => {
                let took = ended_at.saturating_sub(self.sent_at.unwrap_or(ended_at));
                self.took = [self.took[1], took];
                self.ended_at = Some(ended_at);
                let is_of_now = !self.is_outdated;
                self.seen = Some(routes.map(|routes| Seen { routes, is_of_now }));
            }
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // It was given up, or the runtime ends.
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
