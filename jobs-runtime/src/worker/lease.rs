//! The lease as this process knows it: under which worker id it may claim, and until when.
//!
//! 1. Times count from when the last accepted renewal was *sent*, on a clock that runs in suspend.
//! 2. An answer to a claim that was sent under an earlier worker id is never run: whoever claims
//!    compares the id before and after.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_core::store::Phase;
use jobs_core::{Lease, WorkerId};
use tokio::sync::{Notify, watch};

/// Whether this process has a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenure {
    /// It may claim under this id.
    Held(WorkerId),
    /// It must register anew; runs of the last id are given up.
    Lost,
    /// It has left for good.
    Closed,
}

/// How near the end of the lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Margin {
    Safe,
    /// Handlers are asked to stop.
    Short,
    /// Handlers are aborted, the lease counts as lost.
    Over,
}

#[derive(Debug)]
struct State {
    renewed_at: Duration,
    sweep_from: Duration,
    phase: Phase,
    /// The latest worker id that this process had.
    latest: Option<WorkerId>,
}

/// The lease, shared by the heartbeat and the loops.
#[derive(Debug)]
pub(crate) struct Tenancy {
    lease: Lease,
    tenure: watch::Sender<Tenure>,
    state: Mutex<State>,
    entered: Notify,
}

impl Tenancy {
    pub(crate) fn new(lease: Lease) -> Self {
        let state = State {
            renewed_at: Duration::ZERO,
            sweep_from: Duration::ZERO,
            phase: Phase::Working,
            latest: None,
        };
        let tenure = watch::Sender::new(Tenure::Lost);
        Self { lease, tenure, state: Mutex::new(state), entered: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease
    }

    pub(crate) fn tenure(&self) -> Tenure {
        *self.tenure.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Tenure> {
        self.tenure.subscribe()
    }

    /// A registration that was sent at `sent_at` was accepted. One that comes after the close is left
    /// to end by itself. After an outage this process sweeps nothing for one lease, so that workers
    /// which live renew first, and what this one gave up is settled as that and not as crashed.
    pub(crate) fn registered(&self, worker: WorkerId, sent_at: Duration) {
        {
            let mut state = self.state();
            state.renewed_at = sent_at;
            if state.latest.replace(worker).is_some() {
                state.sweep_from = sent_at + self.lease.length();
            }
        }
        self.tenure.send_if_modified(|tenure| {
            let is_wanted = *tenure != Tenure::Closed;
            if is_wanted {
                *tenure = Tenure::Held(worker);
            }
            is_wanted
        });
    }

    /// A renewal that was sent at `sent_at` was accepted.
    pub(crate) fn renewed(&self, worker: WorkerId, sent_at: Duration) {
        if self.tenure() == Tenure::Held(worker) {
            self.state().renewed_at = sent_at;
        }
    }

    /// The lease of a worker is lost; this process sweeps nothing for one lease.
    pub(crate) fn lost(&self, worker: WorkerId, now: Duration) {
        self.state().sweep_from = now + self.lease.length();
        self.tenure.send_if_modified(|tenure| {
            let is_ours = *tenure == Tenure::Held(worker);
            if is_ours {
                *tenure = Tenure::Lost;
            }
            is_ours
        });
    }

    /// The worker to be closed: also one whose lease this process takes for lost, since the store may
    /// still hold it open, and a close says that its runs did not crash.
    pub(crate) fn to_close(&self) -> Option<WorkerId> {
        match self.tenure() {
            Tenure::Held(worker) => Some(worker),
            Tenure::Lost => self.state().latest,
            Tenure::Closed => None,
        }
    }

    pub(crate) fn closed(&self) {
        self.tenure.send_replace(Tenure::Closed);
    }

    /// What is left of the lease, counted from when the last accepted renewal was sent.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        let since = now.saturating_sub(self.state().renewed_at);
        self.lease.length().saturating_sub(since)
    }

    pub(crate) fn margin(&self, now: Duration) -> Margin {
        let since = now.saturating_sub(self.state().renewed_at);
        if since >= self.lease.abort() {
            Margin::Over
        } else if since >= self.lease.ask_to_stop() {
            Margin::Short
        } else {
            Margin::Safe
        }
    }

    pub(crate) fn may_sweep(&self, now: Duration) -> bool {
        now >= self.state().sweep_from
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.state().phase = phase;
        // The close says the last one.
        if phase != Phase::Done {
            self.entered.notify_one();
        }
    }

    /// Waits until another phase but the last was entered. For one who waits.
    pub(crate) async fn entered(&self) {
        self.entered.notified().await;
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }
}

#[cfg(test)]
mod tests;
