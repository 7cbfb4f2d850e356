//! Which workers live, as far as this process can see.
//!
//! Nobody's clock is compared with another's. A worker is dead when the operating system has freed
//! its lock file, or when one observer has seen no sign of it for a whole lease on its own clock.
//!
//! A sign is a renewal, or a mark: a renewal that could not have the write lock leaves a byte in the
//! worker's lock file before it is answered as undecided, and where it can leave none it fails. So
//! whatever a worker takes for a renewal an observer can see, however others held the lock and
//! whenever the observer got it in between. What it has seen no sign of since `t` asked for its last
//! renewal before `t`, so by its own clock too its lease is over at `t` and a lease.
//!
//! An observer leaves out the time in which it waited for the lock, and what it did not see: a gap of
//! more than two leases between two looks, as when the host was suspended, starts the count anew, so
//! that the others have time to renew. It does so once until there is a new sign, for an observer may
//! look that rarely always.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_core::{Clock, WorkerId};

use super::alive::LockFiles;

/// What this process has seen of the renewals of workers.
#[derive(Debug, Default)]
pub(super) struct Renewals(Mutex<HashMap<WorkerId, Seen>>);

/// What a worker leaves behind that tells of its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signs {
    /// The number of its renewals.
    pub(super) renewals: i64,
    /// How many marks its lock file has.
    pub(super) marks: u64,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    signs: Signs,
    /// When these signs were seen first, without the time that does not count.
    since: Duration,
    looked_at: Duration,
    /// Whether the count was started anew after a long gap.
    is_anew: bool,
}

impl Seen {
    const fn now(signs: Signs, elapsed: Duration) -> Self {
        Self { signs, since: elapsed, looked_at: elapsed, is_anew: false }
    }
}

impl Renewals {
    /// Notes the signs of a worker that lives.
    pub(super) fn note(&self, worker: WorkerId, signs: Signs, elapsed: Duration) {
        self.seen().insert(worker, Seen::now(signs, elapsed));
    }

    /// Looks at a worker's signs; answers for how long they have been the same.
    pub(super) fn look(
        &self,
        worker: WorkerId,
        signs: Signs,
        lease: Duration,
        elapsed: Duration,
    ) -> Duration {
        let mut seen = self.seen();
        let fresh = Seen::now(signs, elapsed);
        let last = seen.entry(worker).or_insert(fresh);
        let is_late = elapsed.saturating_sub(last.looked_at) > lease.saturating_mul(2);
        *last = if last.signs != signs {
            fresh
        } else if is_late && !last.is_anew {
            Seen { is_anew: true, ..fresh }
        } else {
            Seen { looked_at: elapsed, ..*last }
        };
        elapsed.saturating_sub(last.since)
    }

    /// Leaves a time out of account in which the observer could see nothing.
    pub(super) fn skip(&self, waited: Duration) {
        for seen in self.seen().values_mut() {
            seen.since = seen.since.saturating_add(waited);
            seen.looked_at = seen.looked_at.saturating_add(waited);
        }
    }

    pub(super) fn forget(&self, worker: WorkerId) {
        self.seen().remove(&worker);
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<WorkerId, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells the living from the dead.
#[derive(Debug, Clone)]
pub(super) struct Observer {
    pub(super) files: Arc<LockFiles>,
    pub(super) renewals: Arc<Renewals>,
    pub(super) clock: Arc<dyn Clock>,
}
