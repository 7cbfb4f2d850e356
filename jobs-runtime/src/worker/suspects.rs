//! What a worker does about suspects: jobs that one more crash may end, which run alone.
//!
//! 1. A suspect never starts beside another run before it has waited for long, so that nobody dies
//!    for a crasher; and only a crash alone is held against it.
//! 2. It starts in the end: when nothing else is ready, when a worker has made itself clear for it,
//!    or beside others after all.
//! 3. One worker at a time is clear or makes itself clear, by a [`Duty`]: the others go on.
//!
//! The waits are counted from when this worker first saw a suspect, and anew once it sees none.

use std::time::Duration;

use jobs_core::store::Duty;
use jobs_core::{Lease, WorkerId};

use super::shared::Shared;
use crate::log;

/// What a claim may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// What is ready, suspects aside.
    Apart,
    /// One suspect and nothing else: nothing is held. Needs the duty.
    Alone,
    /// Nothing, until nothing is held. Needs the duty, unless a suspect runs.
    Clear,
    /// What is ready, suspects like all others.
    Beside,
}

/// What this worker knows of suspects.
#[derive(Debug)]
pub(super) struct Suspects {
    lease: Lease,
    /// When suspects were first seen that this build reads, since it last saw none.
    seen_at: Option<Duration>,
    /// Whether one was claimed to run alone and may still be held.
    is_running: bool,
    /// The worker that has the duty: this one, under the id it had then.
    holder: Option<WorkerId>,
    /// When the duty was last asked for in vain.
    refused_at: Option<Duration>,
}

impl Suspects {
    pub(super) const fn new(lease: Lease) -> Self {
        Self { lease, seen_at: None, is_running: false, holder: None, refused_at: None }
    }

    /// Takes in whether a look saw suspects that this build reads.
    pub(super) fn looked(&mut self, now: Duration, are_ready: bool) {
        self.seen_at = are_ready.then(|| self.seen_at.unwrap_or(now));
    }

    /// One was claimed to run alone.
    pub(super) fn started(&mut self) {
        self.is_running = true;
    }

    /// What the next claim may take, given how many runs are held and whether others are ready.
    fn plan(&self, now: Duration, held: usize, are_others_ready: bool) -> Plan {
        if self.is_running {
            return Plan::Clear;
        }
        let Some(seen_at) = self.seen_at else {
            return Plan::Apart;
        };
        let waited = now.saturating_sub(seen_at);
        let is_idle = held == 0 && !are_others_ready;
        if waited >= self.lease.beside_after() {
            Plan::Beside
        } else if waited < self.lease.clear_after() && !is_idle {
            Plan::Apart
        } else if held > 0 {
            Plan::Clear
        } else {
            Plan::Alone
        }
    }

    /// What the next claim may take. Takes the duty where that needs it, and gives it back where
    /// nothing does.
    pub(super) async fn decide<S>(
        &mut self,
        shared: &Shared<S>,
        worker: WorkerId,
        are_others_ready: bool,
    ) -> Plan {
        let (now, held) = (shared.elapsed(), shared.ledger.held());
        self.is_running &= held > 0;
        let plan = self.plan(now, held, are_others_ready);
        match plan {
            Plan::Apart | Plan::Beside => {
                self.give_back(shared).await;
                plan
            }
            Plan::Clear if self.is_running => plan,
            Plan::Alone | Plan::Clear if self.has_duty(shared, worker, now).await => plan,
            Plan::Alone | Plan::Clear => Plan::Apart,
        }
    }

    async fn has_duty<S>(&mut self, shared: &Shared<S>, worker: WorkerId, now: Duration) -> bool {
        if self.holder == Some(worker) {
            return true;
        }
        let pause = shared.settings.poll_interval;
        if self.refused_at.is_some_and(|at| now < at + pause) {
            return false;
        }
        let taken = shared.store().take_duty(Duty::Suspects, worker).await;
        let has_it = taken.unwrap_or_else(|error| {
            if !shared.is_outage(&error, "ask for a duty") {
                log::DUTY.write(now, || {
                    tracing::warn!(error = jobs_core::chain(&error), "can't ask for a duty");
                });
            }
            false
        });
        if has_it {
            tracing::info!("a suspect waits: claiming nothing else until it has run alone");
        }
        self.holder = has_it.then_some(worker);
        self.refused_at = (!has_it).then_some(now);
        has_it
    }

    /// Gives the duty back. Where the store can't be asked, it ends with the worker's lease.
    pub(super) async fn give_back<S>(&mut self, shared: &Shared<S>) {
        let Some(worker) = self.holder.take() else {
            return;
        };
        if let Err(error) = shared.store().give_back_duty(Duty::Suspects, worker).await {
            let error = jobs_core::chain(&error);
            tracing::warn!(error, "can't give a duty back; it ends with this worker");
        }
    }
}

#[cfg(test)]
mod tests;
