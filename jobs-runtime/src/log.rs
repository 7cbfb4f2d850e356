//! Log lines that an outage would repeat without end, held to one a minute; and those that come as often
//! as jobs end, held to a few a second.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use jobs_core::StoreError;

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
pub(crate) static UNREADABLE_SCHEDULE: Seldom = Seldom::new();
pub(crate) static STRANDED: Seldom = Seldom::new();
pub(crate) static WRONG_VOUCH: Seldom = Seldom::new();
pub(crate) static PUBLISH: Seldom = Seldom::new();
pub(crate) static GATE: Seldom = Seldom::new();
pub(crate) static WARNINGS: Seldom = Seldom::new();

/// A call that is made again when it has failed, and the line that tells of that.
#[derive(Debug)]
pub(crate) struct Retried {
    /// What was wanted.
    pub(crate) call: &'static str,
    text: &'static str,
    line: Seldom,
}

pub(crate) static REGISTER: Retried =
    Retried::new("register anew", "can't register anew; trying again");
pub(crate) static PROGRESS: Retried = Retried::new(
    "write how far runs have come",
    "can't write how far runs have come; trying again",
);
pub(crate) static LOOK: Retried = Retried::new(
    "look for ready jobs",
    "can't look for ready jobs; claiming where the last ones were",
);
pub(crate) static PROMOTE: Retried = Retried::new("promote", "can't promote; trying again");
pub(crate) static SWEEP: Retried = Retried::new("sweep", "can't sweep; trying again");
pub(crate) static SCHEDULE: Retried =
    Retried::new("keep the schedules", "can't keep the schedules; trying again");
pub(crate) static EXPIRE: Retried =
    Retried::new("end expired jobs", "can't end expired jobs; trying again");
pub(crate) static PRUNE: Retried = Retried::new("prune", "can't prune; trying again");

/// A span as a person reads it: tenths of a second below ten, whole seconds from there on.
pub(crate) fn rounded(span: Duration) -> Duration {
    let step_ms = if span < Duration::from_secs(10) { 100 } else { 1_000 };
    let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    // What is short must not read as nothing.
    if span_ms < step_ms {
        return Duration::from_millis(span_ms);
    }
    Duration::from_millis(span_ms.saturating_add(step_ms / 2) / step_ms * step_ms)
}

impl Seldom {
    pub(crate) const fn new() -> Self {
        Self { last_us: AtomicU64::new(0) }
    }

    /// Writes the line unless it was written less than a minute before `now`.
    pub(crate) fn write(&self, now: Duration, line: impl FnOnce()) {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1);
        let last = self.last_us.load(Relaxed);
        let is_due = last == 0 || now.saturating_sub(last) >= MINUTE_US;
        let is_ours = || self.last_us.compare_exchange(last, now, Relaxed, Relaxed).is_ok();
        if is_due && is_ours() {
            line();
        }
    }
}

impl Retried {
    const fn new(call: &'static str, text: &'static str) -> Self {
        Self { call, text, line: Seldom::new() }
    }

    /// Writes the line, as seldom as others.
    pub(crate) fn write(&self, now: Duration, error: &StoreError) {
        self.line.write(now, || tracing::warn!(error = jobs_core::chain(error), "{}", self.text));
    }
}

/// A kind of line that may come as often as jobs end.
#[derive(Debug)]
pub(crate) struct Few {
    second: AtomicU64,
    written: AtomicU64,
    left_out: AtomicU64,
}

pub(crate) static FAILED: Few = Few::new();
pub(crate) static LOST: Few = Few::new();
pub(crate) static REFUSED: Few = Few::new();
pub(crate) static INTERRUPTED: Few = Few::new();

impl Few {
    /// How many are written within a second.
    pub(crate) const MOST: u64 = 20;

    pub(crate) const fn new() -> Self {
        Self { second: AtomicU64::new(0), written: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }

    /// Writes the line unless [`MOST`](Self::MOST) were written within the second of `now`; tells it how
    /// many were left out before.
    pub(crate) fn write(&self, now: Duration, line: impl FnOnce(u64)) {
        let second = now.as_secs();
        if self.second.swap(second, Relaxed) != second {
            self.written.store(0, Relaxed);
        }
        if self.written.fetch_add(1, Relaxed) < Self::MOST {
            line(self.left_out.swap(0, Relaxed));
        } else {
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seldom_line_comes_once_a_minute() {
        let seldom = Seldom::new();
        let mut lines = 0;
        for second in 0..125 {
            seldom.write(Duration::from_secs(second), || lines += 1);
        }
        assert_eq!(lines, 3);
    }

    #[test]
    fn of_many_lines_a_few_are_written_and_the_rest_is_counted() {
        let few = Few::new();
        let mut told = Vec::new();
        for _ in 0..50 {
            few.write(Duration::from_secs(1), |left_out| told.push(left_out));
        }
        assert_eq!(told, [0; 20]);
        few.write(Duration::from_secs(2), |left_out| told.push(left_out));
        few.write(Duration::from_secs(2), |left_out| told.push(left_out));
        assert_eq!(told[20..], [30, 0]);
    }

    #[test]
    fn spans_are_told_as_people_say_them() {
        let told = |ms| format!("{:?}", rounded(Duration::from_millis(ms)));
        assert_eq!(told(0), "0ns");
        assert_eq!(told(40), "40ms");
        assert_eq!(told(7_333), "7.3s");
        assert_eq!(told(24_400), "24s");
        assert_eq!(told(86_399_600), "86400s");
    }
}
