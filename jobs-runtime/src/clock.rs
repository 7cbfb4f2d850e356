//! The operating system's clocks. The only module that reads them.

use std::time::{Duration, SystemTime};

use jobs_core::{Clock, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The host's clocks: the wall clock, and the one since boot that runs on in suspend.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn elapsed(&self) -> Duration {
        let since_boot = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(since_boot.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(since_boot.tv_nsec).unwrap_or(0);
        Duration::new(seconds, nanos)
    }
}

/// The instant that lies this far ahead, for handlers that watch their time; `None` beyond what the clock counts.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn instant_in(span: Duration) -> Option<std::time::Instant> {
    tokio::time::Instant::now().into_std().checked_add(span)
}
