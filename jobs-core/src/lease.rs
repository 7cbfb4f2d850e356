//! The times of a lease, all derived from its length.
//!
//! The order is what keeps a stale worker from working beside its successor: handlers are asked to
//! stop, then aborted, and only then may anyone else take their jobs.

use std::time::Duration;

/// The length of a worker's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease(Duration);

impl Default for Lease {
    /// 30 s: three heartbeats.
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

impl Lease {
    /// The shortest lease: below it a busy disk looks like a dead worker.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// The longest lease: above it a crash stalls its jobs for longer than people wait.
    pub const LONGEST: Duration = Duration::from_hours(1);

    /// A lease of this length; `None` outside [`SHORTEST`](Self::SHORTEST) to
    /// [`LONGEST`](Self::LONGEST).
    pub fn new(length: Duration) -> Option<Self> {
        (Self::SHORTEST..=Self::LONGEST).contains(&length).then_some(Self(length))
    }

    /// How long a worker may write after its last accepted renewal.
    pub const fn length(self) -> Duration {
        self.0
    }

    /// How often it is renewed: a third of its length.
    pub fn heartbeat(self) -> Duration {
        self.0 / 3
    }

    /// How often every worker looks for expired leases of others: a third of its length.
    pub fn sweep(self) -> Duration {
        self.0 / 3
    }

    /// How long a suspect waits until a worker makes itself clear for it: a minute, or two leases
    /// where that is less.
    pub fn clear_after(self) -> Duration {
        (self.0 * 2).min(Duration::from_mins(1))
    }

    /// How long a suspect waits until it runs beside others all the same: five minutes, or ten
    /// leases where that is less.
    pub fn beside_after(self) -> Duration {
        (self.0 * 10).min(Duration::from_mins(5))
    }

    /// When a worker that can't renew asks its handlers to stop, counted from when the last
    /// accepted renewal was sent: 22 s of 30 s.
    pub fn ask_to_stop(self) -> Duration {
        self.0 * 22 / 30
    }

    /// When it aborts them, counted likewise: 26 s of 30 s.
    pub fn abort(self) -> Duration {
        self.0 * 26 / 30
    }
}
