//! The worker: the one file that knows every part and wires them.
//!
//! 1. The heartbeat outlives the handlers, and the settler outlives them too.
//! 2. Every task is tracked and ends before [`Worker::run_until`] returns.
//! 3. A worker that lost its lease registers anew under another id; its old runs are settled as
//!    given up, where nobody took them back.

mod claim;
mod dispatch;
mod drain;
mod exit;
mod heartbeat;
mod lease;
mod ledger;
mod manifest;
mod routes;
mod settle;
mod shared;
mod upkeep;
mod wake;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::NewWorker;
use jobs_core::{Lease, QueueName, StoreError, WorkerName};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::drain::Stop;
use self::lease::{Tenancy, Tenure};
use self::ledger::Ledger;
use self::shared::{Settings, Shared, Tally};
use crate::client::Jobs;
use crate::error::{Error, ErrorKind};
use crate::log;
use crate::registry::Handlers;
use crate::run::Reason;
use crate::signals::Signals;

/// Claims and runs jobs until it is told to stop.
pub struct Worker<S> {
    jobs: Jobs,
    handlers: Handlers<S>,
    state: S,
    wanted: Wanted,
}

/// The settings as given, not yet checked.
#[derive(Debug)]
struct Wanted {
    name: Option<String>,
    queues: Vec<String>,
    concurrency: usize,
    lease: Duration,
    poll_interval: Duration,
    grace_period: Duration,
}

/// The exit status of a process that [`Worker::run_until_terminated`] had to end because something
/// in it did not: 75, the system's word for a failure that passes. What was left runs elsewhere.
pub const EXIT_UNFINISHED: i32 = 75;

/// What a worker did from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Runs whose outcome was settled: successes, failures, snoozes.
    pub settled: u64,
    /// Runs that were given back as interrupted.
    pub interrupted: u64,
    /// Claims that were given back unrun: refused, or too late.
    pub released: u64,
    /// Handlers that had not ended when the worker left; what they still write is refused.
    pub abandoned: usize,
    /// From the request to stop to the end.
    pub took: Duration,
}

impl<S: Clone + Send + Sync + 'static> Worker<S> {
    /// A worker with the default settings.
    pub fn new(jobs: &Jobs, handlers: Handlers<S>, state: S) -> Self {
        let wanted = Wanted {
            name: None,
            queues: Vec::new(),
            concurrency: 10,
            lease: Lease::default().length(),
            poll_interval: Duration::from_secs(1),
            grace_period: Duration::from_secs(30),
        };
        Self { jobs: jobs.clone(), handlers, state, wanted }
    }

    /// How many handlers run at once, at least 1. Default: 10.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.wanted.concurrency = handlers;
        self
    }

    /// Also works this queue. Default: the queues of the registered kinds, or `default`.
    #[must_use]
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.wanted.queues.push(name.into());
        self
    }

    /// A name for people, 1 to 255 bytes; never an identity. Default: the process id.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.wanted.name = Some(name.into());
        self
    }

    /// How long the worker may be silent before others take its jobs: 1 s to 1 h. Default: 30 s.
    /// It is renewed every third of it.
    #[must_use]
    pub fn lease(mut self, length: Duration) -> Self {
        self.wanted.lease = length;
        self
    }

    /// How often an idle worker looks for jobs that no wake-up told of, at least 10 ms, moved by up
    /// to a tenth. Default: 1 s.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.wanted.poll_interval = interval;
        self
    }

    /// How long the supervisor waits between its SIGTERM and its SIGKILL, at least 1 s. The drain
    /// ends before. Default: 30 s.
    #[must_use]
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.wanted.grace_period = grace;
        self
    }

    /// Runs until SIGTERM or SIGINT, then drains. A second signal moves the drain on one phase.
    ///
    /// The process is gone before the grace period ends, since then the supervisor would kill it: if
    /// it still runs a moment before, because a handler or anything else blocks, it is ended with
    /// the status [`EXIT_UNFINISHED`].
    ///
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) for a setting outside its range;
    /// [`Store`](ErrorKind::Store) when the worker can't register. Once it runs, troubles are
    /// logged and retried.
    pub async fn run_until_terminated(self) -> Result<DrainReport, Error> {
        let wired = self.wire()?;
        let stop = wired.heartbeat.within(Signals::take)?;
        wired.run(Stop::Signals(stop)).await
    }

    /// Runs until `stop` is ready, then drains.
    ///
    /// # Errors
    /// As [`run_until_terminated`](Self::run_until_terminated).
    ///
    /// # Cancel safety
    /// A dropped call leaves its jobs to the lease: they run again elsewhere once it ends.
    pub async fn run_until(
        self,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<DrainReport, Error> {
        let (stops, stopped) = mpsc::unbounded_channel();
        let tell = async move {
            stop.await;
            // Nobody listens any more when the worker failed to start.
            let _ = stops.send(());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            report = self.wire()?.run(Stop::Asked(stopped)) => report,
            () = tell => unreachable!("the teller never ends before the worker"),
        }
    }

    /// Checks the settings and puts the parts together; nothing runs yet.
    fn wire(self) -> Result<Wired<S>, Error> {
        let settings = self.wanted.checked(&self.handlers)?;
        let (ended, ends) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            ledger: Ledger::new(settings.concurrency),
            tenancy: Tenancy::new(settings.lease),
            jobs: self.jobs,
            settings,
            handlers: self.handlers,
            state: self.state,
            intake_closed: CancellationToken::new(),
            intake_ended: CancellationToken::new(),
            over: CancellationToken::new(),
            ready: tokio::sync::Notify::new(),
            scheduled: tokio::sync::Notify::new(),
            ended,
            tally: Tally::default(),
        });
        Ok(Wired { shared, ends, heartbeat: heartbeat::Thread::new()? })
    }
}

/// A worker whose parts are put together.
struct Wired<S> {
    shared: Arc<Shared<S>>,
    ends: mpsc::UnboundedReceiver<settle::Ended>,
    heartbeat: heartbeat::Thread,
}

impl<S: Clone + Send + Sync + 'static> Wired<S> {
    async fn run(self, stop: Stop) -> Result<DrainReport, Error> {
        let Self { shared, ends, heartbeat } = self;
        let _ends_with_us = OverOnDrop(shared.over.clone());
        register(&shared).await?;
        let (reports, report) = oneshot::channel();
        let heartbeat = heartbeat.start(shared.clone(), stop, reports)?;
        let loops = TaskTracker::new();
        let runs = TaskTracker::new();
        loops.spawn(tenure_loop(shared.clone()));
        loops.spawn(settle::settle_loop(shared.clone(), ends));
        loops.spawn(wake::wake_loop(shared.clone()));
        loops.spawn(upkeep::promote_loop(shared.clone()));
        loops.spawn(upkeep::sweep_loop(shared.clone()));
        loops.spawn(upkeep::prune_loop(shared.clone()));
        loops.spawn(claim::claim_loop(shared.clone(), runs.clone()));
        let report = report.await.map_err(|_| heartbeat::died())?;
        shared.over.cancel();
        loops.close();
        loops.wait().await;
        // It has nothing left to do: the report was its last word.
        drop(tokio::task::spawn_blocking(move || heartbeat.join()).await);
        Ok(report)
    }
}

/// Ends every loop when the worker's own future is dropped.
struct OverOnDrop(CancellationToken);

impl Drop for OverOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Asks the store for a lease, and makes what this build reads and others refused ready.
async fn register<S>(shared: &Shared<S>) -> Result<(), StoreError> {
    let worker = NewWorker {
        name: shared.settings.name.clone(),
        build: shared.jobs.build().clone(),
        manifest: manifest::text(&shared.handlers),
        lease: shared.settings.lease,
    };
    let sent_at = shared.elapsed();
    let id = shared.store().register(&worker).await?;
    shared.tenancy.registered(id, sent_at);
    tracing::info!(
        worker = id.0,
        build = %worker.build,
        lease = ?worker.lease.length(),
        concurrency = shared.settings.concurrency,
        grace_period = ?shared.settings.grace_period,
        "registered"
    );
    if let Err(error) = upkeep::recall(shared).await {
        let error = jobs_core::chain(&error);
        tracing::warn!(error, "can't recall refused jobs; they fall due by themselves");
    }
    Ok(())
}

/// Registers anew whenever the lease is lost.
async fn tenure_loop<S>(shared: Arc<Shared<S>>) {
    let mut tenure = shared.tenancy.watch();
    loop {
        tokio::select! {
            biased;
            () = shared.over.cancelled() => return,
            lost = tenure.wait_for(|tenure| *tenure == Tenure::Lost) => {
                if lost.is_err() {
                    return;
                }
            }
        }
        shared.ledger.abort_all(Reason::Lease);
        if shared.intake_closed.is_cancelled() {
            return;
        }
        if let Err(error) = register(&shared).await {
            log::REGISTER.write(shared.elapsed(), || {
                let error = jobs_core::chain(&error);
                tracing::warn!(error, "can't register anew; trying again");
            });
            let wait = jobs_core::jittered(shared.settings.poll_interval, shared.draw());
            if shared::pause(&shared, wait).await {
                return;
            }
        }
    }
}

impl Wanted {
    fn checked<S>(self, handlers: &Handlers<S>) -> Result<Settings, Error> {
        let refuse = |what: String| Err(Error::new(ErrorKind::Configuration, what));
        if self.concurrency == 0 {
            return refuse("a concurrency of 0 runs nothing; it is at least 1".to_owned());
        }
        if self.poll_interval < Duration::from_millis(10) {
            return refuse(format!("a poll interval of {:?} is below 10 ms", self.poll_interval));
        }
        if self.grace_period < Duration::from_secs(1) {
            return refuse(format!("a grace period of {:?} is below 1 s", self.grace_period));
        }
        let Some(lease) = Lease::new(self.lease) else {
            return refuse(format!("a lease of {:?} is not one of 1 s to 1 h", self.lease));
        };
        let name = self.name.unwrap_or_else(|| format!("process {}", std::process::id()));
        let wanted = if self.queues.is_empty() {
            handlers.all().iter().map(|handled| handled.policy.queue.to_owned()).collect()
        } else {
            self.queues
        };
        let mut queues = wanted.iter().map(QueueName::new).collect::<Result<Vec<_>, _>>()?;
        queues.sort();
        queues.dedup();
        if queues.is_empty() {
            queues.push(QueueName::default());
        }
        Ok(Settings {
            name: WorkerName::new(name)?,
            queues,
            concurrency: self.concurrency,
            lease,
            poll_interval: self.poll_interval,
            grace_period: self.grace_period,
        })
    }
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, handlers, wanted, .. } = self;
        f.debug_struct("Worker")
            .field("jobs", jobs)
            .field("handlers", handlers)
            .field("wanted", wanted)
            .finish_non_exhaustive()
    }
}
