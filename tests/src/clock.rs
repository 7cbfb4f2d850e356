//! A clock that is wrong, as that of a host may be.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jobs_runtime::{Clock, SystemClock, Timestamp};

/// The host's clock, set wrong by some milliseconds; its elapsed time is right.
#[derive(Debug, Default)]
pub struct WrongClock {
    ahead_ms: AtomicI64,
}

impl WrongClock {
    /// Sets the clock ahead, or back where that is negative.
    pub fn step(&self, by_ms: i64) {
        self.ahead_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        let ahead_us = self.ahead_ms.load(Ordering::SeqCst) * 1_000;
        Timestamp::from_micros(SystemClock.now().as_micros() + ahead_us)
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }
}
