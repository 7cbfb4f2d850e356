//! Log lines that an outage would repeat without end, held to one a minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MINUTE_US: u64 = 60_000_000;

/// One kind of line, of the whole process or of one kind of job; written at most once a minute.
#[derive(Debug)]
pub(crate) struct Seldom {
    /// When it was last written; 0: never.
    last_us: AtomicU64,
}

pub(crate) static CHECKPOINT: Seldom = Seldom::new();
pub(crate) static CLAIM: Seldom = Seldom::new();
pub(crate) static SETTLE: Seldom = Seldom::new();
pub(crate) static RENEW: Seldom = Seldom::new();
pub(crate) static DUTY: Seldom = Seldom::new();
pub(crate) static AUDIT: Seldom = Seldom::new();
pub(crate) static REGISTER: Seldom = Seldom::new();
pub(crate) static PROGRESS: Seldom = Seldom::new();
pub(crate) static PROMOTE: Seldom = Seldom::new();
pub(crate) static SWEEP: Seldom = Seldom::new();
pub(crate) static SCHEDULE: Seldom = Seldom::new();
pub(crate) static UNREADABLE_SCHEDULE: Seldom = Seldom::new();
pub(crate) static EXPIRE: Seldom = Seldom::new();
pub(crate) static PRUNE: Seldom = Seldom::new();
pub(crate) static STRANDED: Seldom = Seldom::new();
pub(crate) static PUBLISH: Seldom = Seldom::new();
pub(crate) static GATE: Seldom = Seldom::new();
pub(crate) static WARNINGS: Seldom = Seldom::new();

impl Seldom {
    pub(crate) const fn new() -> Self {
        Self { last_us: AtomicU64::new(0) }
    }

    /// Writes the line unless it was written less than a minute before `now`.
    pub(crate) fn write(&self, now: Duration, line: impl FnOnce()) {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1);
        let last = self.last_us.load(Ordering::Relaxed);
        let is_due = last == 0 || now.saturating_sub(last) >= MINUTE_US;
        let is_ours = || {
            self.last_us.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        if is_due && is_ours() {
            line();
        }
    }
}
