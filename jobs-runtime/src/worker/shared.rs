//! What the loops of one worker share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use jobs_core::store::{Author, Drained, Store};
use jobs_core::{StoreError, WorkerId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::lease::{Tenancy, Tenure};
use super::ledger::Ledger;
use super::outage::StoreOutage;
use super::queues::Running;
use super::settings::Settings;
use super::settle::Ended;
use super::starts::Starts;
use super::systemd::Notifier;
use crate::client::Jobs;
use crate::judge::Build;
use crate::log::Retried;
use crate::registry::Handlers;
use crate::run::{Board, Reason};
use crate::telemetry::Meters;

/// What the loops of one worker share.
pub(crate) struct Shared<S> {
    pub(crate) jobs: Jobs,
    pub(crate) settings: Settings,
    pub(crate) handlers: Handlers<S>,
    pub(crate) state: S,
    pub(crate) ledger: Ledger,
    pub(crate) running: Running,
    pub(crate) starts: Starts,
    pub(crate) tenancy: Tenancy,
    /// Claim nothing more.
    pub(crate) intake_closed: CancellationToken,
    /// The claim loop has ended, and all it claimed is in the ledger.
    pub(crate) intake_ended: CancellationToken,
    /// A loop panicked: drain.
    pub(crate) broken: CancellationToken,
    /// The schema is gone, or needs a newer build: drain, and say so.
    pub(crate) outdated: CancellationToken,
    /// Every loop ends.
    pub(crate) over: CancellationToken,
    /// Jobs may have become ready.
    pub(crate) ready: Notify,
    /// Jobs may have been scheduled.
    pub(crate) scheduled: Notify,
    pub(crate) ended: tokio::sync::mpsc::UnboundedSender<Ended>,
    pub(crate) board: Arc<Board>,
    pub(crate) tally: Tally,
    pub(crate) meters: Meters,
    pub(crate) pulse: Pulse,
    /// A handler blocks its thread: another thread of the runtime is to wake, and to begin what is stuck.
    pub(crate) nudged: Notify,
    pub(crate) outage: StoreOutage,
    pub(super) notifier: Notifier,
}

/// What happened since the start, for the report.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) settled: AtomicU64,
    pub(crate) interrupted: AtomicU64,
    pub(crate) released: AtomicU64,
}

impl Tally {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub(crate) fn so_far(&self) -> Drained {
        Drained {
            settled: self.settled.load(Ordering::Relaxed),
            interrupted: self.interrupted.load(Ordering::Relaxed),
            released: self.released.load(Ordering::Relaxed),
            ..Drained::default()
        }
    }
}

impl<S> Shared<S> {
    pub(crate) fn store(&self) -> &dyn Store {
        self.jobs.store()
    }

    /// The time on the clock that leases are counted on.
    pub(crate) fn elapsed(&self) -> Duration {
        self.jobs.clock().elapsed()
    }

    pub(crate) fn draw(&self) -> u64 {
        self.jobs.random().draw()
    }

    /// Whether a call failed because the store is away, which is told once for all calls; what else went
    /// wrong is the caller's to tell.
    pub(crate) fn is_outage(&self, error: &StoreError, call: &'static str) -> bool {
        self.outage.holds(self.elapsed(), error, call)
    }

    /// Tells of a call that failed: of an outage as all calls do, of anything else by its own line.
    pub(crate) fn tell_failed(&self, call: &Retried, error: &StoreError) {
        if !self.is_outage(error, call.call) {
            call.write(self.elapsed(), error);
        }
    }

    /// The store answered a call.
    pub(crate) fn answered(&self) {
        self.outage.answered(self.elapsed());
    }

    /// What this build is to a stored job.
    pub(crate) fn build(&self) -> Build<'_, S> {
        Build { handlers: &self.handlers, label: self.jobs.build() }
    }

    pub(crate) fn worker(&self) -> Option<WorkerId> {
        match self.tenancy.tenure() {
            Tenure::Held(worker) => Some(worker),
            Tenure::Lost | Tenure::Closed => None,
        }
    }

    /// Gives up every run at once, since nobody renews the lease any more: handlers are aborted, and
    /// nothing more is claimed.
    pub(crate) fn give_up(&self) {
        self.intake_closed.cancel();
        if let Some(worker) = self.worker() {
            self.tenancy.lost(worker, self.elapsed());
        }
        self.ledger.abort_all(Reason::Lease);
    }

    pub(crate) fn author(&self) -> Author {
        Author { worker: self.worker(), build: self.jobs.build().clone() }
    }
}

/// When the runtime and the heartbeat's thread last moved, in milliseconds of the leases' clock; 0
/// before they have begun, which nobody is killed for: the store may be away.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    runtime_ms: AtomicU64,
    heartbeat_ms: AtomicU64,
}

/// What stands still.
#[cfg(feature = "http")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standstill {
    Heartbeat,
    Runtime,
}

impl Pulse {
    pub(crate) fn heartbeat(&self, now: Duration) {
        self.heartbeat_ms.store(millis(now), Ordering::Relaxed);
    }

    /// What has stood still for longer than `longest`.
    #[cfg(feature = "http")]
    pub(crate) fn standstill(&self, now: Duration, longest: Duration) -> Option<Standstill> {
        let stands = |moved: &AtomicU64| {
            let moved_ms = moved.load(Ordering::Relaxed);
            moved_ms > 0 && millis(now).saturating_sub(moved_ms) > millis(longest)
        };
        if stands(&self.heartbeat_ms) {
            Some(Standstill::Heartbeat)
        } else {
            stands(&self.runtime_ms).then_some(Standstill::Runtime)
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Shows that the runtime moves.
pub(crate) async fn pulse_loop<S>(shared: Arc<Shared<S>>) {
    loop {
        shared.pulse.runtime_ms.store(millis(shared.elapsed()), Ordering::Relaxed);
        if pause(&shared, Duration::from_secs(1)).await {
            return;
        }
    }
}

/// A turn of the runtime: lets run what is ready now.
///
/// Not tokio's `yield_now`, which gives a task back only when its thread has nothing else to do: a
/// handler that blocked that thread would hold it up, and with it all that the worker claims or settles.
pub(crate) async fn turn() {
    let mut has_waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A pause that ends early when the worker is over; answers whether it is.
pub(crate) async fn pause<S>(shared: &Arc<Shared<S>>, span: Duration) -> bool {
    tokio::time::timeout(span, shared.over.cancelled()).await.is_ok()
}

#[cfg(all(test, feature = "http"))]
mod tests;
