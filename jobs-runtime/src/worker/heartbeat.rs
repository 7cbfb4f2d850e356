//! Keeps the lease: on a thread, a runtime and a connection of its own.
//!
//! 1. Neither a handler that blocks or spins nor a drained pool holds a renewal up.
//! 2. It starts before the first claim and ends after the last settlement.
//! 3. When it can't renew, handlers are asked to stop and then aborted before the lease can end,
//!    counted from when the last accepted renewal was sent.
//! 4. Each regular beat audits what the store says this worker holds. Each publishes the phase; a new one comes
//!    at once.
//! 5. When the thread itself dies, which is a bug, the runs are given up and the worker ends.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use jobs_core::store::{Heartbeat, Phase, Renewed};
use jobs_core::{JobId, StoreError, StoreErrorKind, WorkerId};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::DrainReport;
use super::drain::{Stop, drain};
use super::lease::Margin;
use super::settle::Ended;
use super::shared::Shared;
use crate::error::{Error, ErrorKind};
use crate::log;
use crate::run::Reason;

/// A handler that holds its thread for longer than this is named in the log.
const BLOCKING: Duration = Duration::from_secs(1);

/// The thread that the heartbeat and the drain run on, before it is started.
#[derive(Debug)]
pub(super) struct Thread(Option<Runtime>);

impl Drop for Thread {
    fn drop(&mut self) {
        // A runtime that is dropped within another one panics, as when the worker can't register.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Thread {
    pub(super) fn new() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| Self(Some(runtime))).map_err(|error| cannot_start(&error))
    }

    /// Does something that must belong to the thread's runtime, such as listening for signals.
    pub(super) fn within<T>(&self, make: impl FnOnce() -> T) -> T {
        let _entered = self.0.as_ref().map(Runtime::enter);
        make()
    }

    /// Starts it. It ends when the worker is over; its last word is the report of the drain.
    pub(super) fn start<S>(
        mut self,
        shared: Arc<Shared<S>>,
        stop: Stop,
        reports: oneshot::Sender<DrainReport>,
    ) -> Result<JoinHandle<()>, Error>
    where
        S: Clone + Send + Sync + 'static,
    {
        let drain = async |shared: &Shared<S>| {
            tokio::select! {
                biased;
                // Nobody waits for it when the worker's future was dropped.
                report = drain(shared, stop) => drop(reports.send(report)),
                () = shared.over.cancelled() => {}
            }
        };
        let runtime = self.0.take();
        let body = move || {
            let _gives_up = GivesUp(&shared);
            // It is there until here.
            let Some(runtime) = runtime else { return };
            runtime.block_on(async {
                tokio::join!(beat_loop(&shared), watch_loop(&shared), drain(&shared));
            });
        };
        let thread = std::thread::Builder::new().name("jobs-heartbeat".to_owned());
        thread.spawn(body).map_err(|error| cannot_start(&error))
    }
}

/// Gives up the runs when the thread panics: without it nobody renews, drains or aborts.
struct GivesUp<'a, S>(&'a Shared<S>);

impl<S> Drop for GivesUp<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

/// What is said when the thread ended without a report, which is a bug of ours.
pub(super) fn died() -> Error {
    let what = "the heartbeat's thread panicked, which is a bug; the log has the panic's text";
    Error::new(ErrorKind::Broken, what)
}

fn cannot_start(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Broken, format!("can't start the heartbeat's thread: {error}"))
}

async fn beat_loop<S>(shared: &Shared<S>) {
    let lease = shared.tenancy.lease();
    // A beat that failed is repeated soon: the next regular one may come too late.
    let soon = lease.length() / 30;
    let mut connection = None;
    let mut why = Why::Time;
    loop {
        let next = match shared.worker() {
            None => soon,
            Some(worker) => match beat(shared, &mut connection, worker, why).await {
                Ok(Next::Regular) => lease.heartbeat(),
                Ok(Next::Soon) => soon,
                Err(error) => {
                    connection = None;
                    if !shared.is_outage(&error, "renew the lease") {
                        log::RENEW.write(shared.elapsed(), || {
                            let error = jobs_core::chain(&error);
                            tracing::warn!(error, worker = worker.0, "can't renew the lease");
                        });
                    }
                    soon
                }
            },
        };
        why = tokio::select! {
            biased;
            () = shared.over.cancelled() => return,
            () = shared.tenancy.entered() => Why::Phase,
            () = tokio::time::sleep(next) => Why::Time,
        }
    }
}

/// Why a beat is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Time,
    /// Whoever looks at the workers is to see at once that this one drains. An audit comes with its time: what
    /// two in a row find is acted on.
    Phase,
}

/// One renewal and one audit, each bounded, so that a dead connection is replaced in time.
async fn beat<S>(
    shared: &Shared<S>,
    connection: &mut Option<Box<dyn Heartbeat>>,
    worker: WorkerId,
    why: Why,
) -> Result<Next, StoreError> {
    let limit = shared.tenancy.lease().heartbeat();
    let heartbeat = match connection {
        Some(heartbeat) => heartbeat,
        None => connection.insert(bounded(limit, shared.store().heartbeat()).await?),
    };
    let sent_at = shared.elapsed();
    let left = shared.tenancy.left(sent_at);
    // Less than the bound, so that the store's own answer comes first on a busy machine too.
    let renewed = heartbeat.renew(worker, shared.tenancy.phase(), limit * 3 / 4);
    let renewed = match bounded(limit * 5 / 4, renewed).await {
        Err(error) if error.kind() == StoreErrorKind::Schema => {
            if !shared.outdated.is_cancelled() {
                let error = jobs_core::chain(&error);
                tracing::error!(error, "this build can't work on the schema any more: draining");
                shared.outdated.cancel();
            }
            Renewed::Renewed
        }
        renewed => renewed?,
    };
    match renewed {
        Renewed::Renewed => {
            shared.answered();
            shared.tenancy.renewed(worker, sent_at);
            shared.meters.renewed(left);
        }
        Renewed::Undecided => {
            shared.tenancy.renewed(worker, sent_at);
            return Ok(Next::Soon);
        }
        // The drain closes the worker just now.
        Renewed::Ended if shared.tenancy.phase() == Phase::Done => return Ok(Next::Soon),
        Renewed::Ended => {
            shared.tenancy.lost(worker, shared.elapsed());
            shared.ledger.abort_all(Reason::Lease);
            tracing::warn!(worker = worker.0, "the lease was taken back; registering anew");
            return Ok(Next::Soon);
        }
    }
    if why == Why::Phase {
        return Ok(Next::Regular);
    }
    let asked = shared.ledger.asked();
    let held = bounded(limit, heartbeat.held(worker)).await?;
    let findings = shared.ledger.audit(&held, asked);
    for JobId(job) in findings.lost {
        tracing::warn!(job, "the store gave this run's job to another; the run is aborted");
    }
    if !findings.strays.is_empty() {
        let count = findings.strays.len();
        log::AUDIT.write(shared.elapsed(), || {
            tracing::warn!(jobs = count, "giving back claims whose answer was lost");
        });
    }
    for fence in findings.strays {
        // The settler is gone only when the worker is over, and then the close gives them back.
        drop(shared.ended.send(Ended::stray(fence)));
    }
    Ok(Next::Regular)
}

/// When the next beat is.
enum Next {
    Regular,
    Soon,
}

async fn bounded<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(limit, call).await.unwrap_or_else(|_| {
        let what = format!("no answer to a heartbeat within {limit:?}");
        Err(StoreError::new(StoreErrorKind::Unavailable, what))
    })
}

/// Looks, without asking the store, how near the lease's end is and whether a handler blocks.
async fn watch_loop<S>(shared: &Shared<S>) {
    let every = (shared.tenancy.lease().length() / 30).min(Duration::from_secs(1));
    let every = every.min(shared.notifier.interval());
    let mut named: Vec<JobId> = Vec::new();
    shared.pulse.heartbeat(shared.elapsed());
    while timeout(every, shared.over.cancelled()).await.is_err() {
        let now = shared.elapsed();
        shared.pulse.heartbeat(now);
        shared.notifier.lives(now);
        if let Some(worker) = shared.worker() {
            match shared.tenancy.margin(now) {
                Margin::Safe => {}
                Margin::Short => shared.ledger.ask_all(Reason::Lease),
                Margin::Over => {
                    tracing::warn!(
                        worker = worker.0,
                        "the lease can't be renewed; giving up its runs"
                    );
                    shared.tenancy.lost(worker, now);
                    shared.ledger.abort_all(Reason::Lease);
                }
            }
        }
        let mut blocking = shared.ledger.blocking(now, every);
        if !blocking.is_empty() {
            shared.nudged.notify_one();
        }
        blocking.retain(|(.., span)| *span > BLOCKING);
        for (job, kind, span) in &blocking {
            if !named.contains(job) {
                tracing::warn!(
                    job = job.0,
                    kind = %kind,
                    seconds = span.as_secs(),
                    "a handler blocks its thread without yielding; move the work to spawn_blocking"
                );
            }
        }
        named = blocking.into_iter().map(|(job, ..)| job).collect();
    }
}
