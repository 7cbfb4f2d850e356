//! Time, passed in. Nothing in this crate reads the operating system's clock.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant on the world's clock: microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A source of time.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The world's clock. It may jump; leases never rest on it.
    fn now(&self) -> Timestamp;

    /// Time since some fixed instant, never stepping back and running on while the host is
    /// suspended.
    fn elapsed(&self) -> Duration;
}

impl Timestamp {
    /// The instant `micros` microseconds after the epoch; negative ones lie before it.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This instant moved by a span, held at the largest representable instant.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// How far this instant lies after an earlier one; zero when it doesn't.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }
}

/// A span as whole microseconds, held at the largest that a store can keep.
pub fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(micros(after)),
            Err(before) => Self(micros(before.duration()).saturating_neg()),
        }
    }
}

impl fmt::Display for Timestamp {
    /// As RFC 3339 in UTC; instants outside the calendar as plain microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => f.pad(&instant.to_string()),
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

/// A clock that stands still until it is told to move, for tests.
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    elapsed_us: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub const fn new(start: Timestamp) -> Self {
        Self { start, elapsed_us: AtomicI64::new(0) }
    }

    /// Moves both the world's clock and the elapsed time forward.
    pub fn advance(&self, span: Duration) {
        self.elapsed_us.fetch_add(micros(span), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.start.after(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.elapsed_us.load(Ordering::SeqCst).unsigned_abs())
    }
}
