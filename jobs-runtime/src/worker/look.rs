//! Looks at the head of the ready index: which routes have ready jobs, and where their first ones are.
//!
//! 1. A look goes beside the claims, and no claim waits for it: where a snapshot is held for long, it
//!    walks all that vacuum can't remove.
//! 2. It shows what was ready when it was sent. What comes of a hint or a claim afterwards takes another
//!    one.
//! 3. Looks take a twentieth of the time at most, except that one begins [`RETURN`] after the last at the latest.
//!    They are cheap mostly, and then what waits before the places of the claims is found at once.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::StoreError;
use jobs_core::store::ReadyRoute;
use tokio::task::{JoinError, JoinSet};

use super::shared::Shared;

/// How soon at the latest a worker that always finds something returns to the head.
pub(crate) const RETURN: Duration = Duration::from_millis(250);
/// How many times as long as a look took it is from its begin to that of the next one.
const REST: u32 = 20;

/// What a look saw.
pub(crate) struct Seen {
    pub(crate) routes: Vec<ReadyRoute>,
    /// Whether nothing came and nothing was claimed since it was sent.
    pub(crate) is_of_now: bool,
}

#[derive(Default)]
pub(super) struct Looks {
    /// The one that is under way.
    running: JoinSet<(Result<Vec<ReadyRoute>, StoreError>, Duration)>,
    /// What the last one saw, until it is taken in.
    seen: Option<Result<Seen, StoreError>>,
    /// When the last one was sent, on the clock of leases.
    sent_at: Option<Duration>,
    /// How long that took.
    took: Duration,
    /// Whether something changed since that it may not have seen.
    is_outdated: bool,
}

impl Looks {
    /// Jobs came, or were claimed.
    pub(super) fn changed(&mut self) {
        self.is_outdated = true;
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// How long it is to the next one, of a worker whose claims give nothing.
    pub(super) fn rest(&self, now: Duration) -> Duration {
        let rest = (self.took * REST).min(RETURN);
        self.sent_at.map_or(Duration::ZERO, |at| (at + rest).saturating_sub(now))
    }

    /// Whether the next one is due, of a worker whose claims give something.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        !self.is_running() && self.sent_at.is_none_or(|at| at + RETURN <= now)
    }

    /// Sends one; none may be under way.
    pub(super) fn begin<S>(&mut self, shared: &Arc<Shared<S>>)
    where
        S: Send + Sync + 'static,
    {
        self.sent_at = Some(shared.elapsed());
        self.is_outdated = false;
        let shared = Arc::clone(shared);
        self.running.spawn(async move {
            let routes = shared.store().routes(&shared.settings.queues).await;
            (routes, shared.elapsed())
        });
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

    fn end(&mut self, ended: Result<(Result<Vec<ReadyRoute>, StoreError>, Duration), JoinError>) {
        match ended {
            Ok((routes, ended_at)) => {
                self.took = ended_at.saturating_sub(self.sent_at.unwrap_or(ended_at));
                let is_of_now = !self.is_outdated;
                self.seen = Some(routes.map(|routes| Seen { routes, is_of_now }));
            }
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime ends, and with it whoever would take it in.
            Err(_) => {}
        }
    }
}
