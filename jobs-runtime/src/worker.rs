//! The worker: the one file that knows every part and wires them.
//!
//! 1. The heartbeat outlives the handlers, and the settler outlives them too.
//! 2. Every task is tracked and ends before [`Worker::run_until`] returns.
//! 3. A worker that lost its lease registers anew under another id; its old runs are settled as
//!    given up, where nobody took them back.

mod claim;
mod dispatch;
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
use std::sync::atomic::Ordering;
use std::time::Duration;

use jobs_core::drain::{Action, Drain, Event, Split};
use jobs_core::store::{NewWorker, Phase};
use jobs_core::{Lease, QueueName, StoreError, WorkerName};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) for a setting outside its range;
    /// [`Store`](ErrorKind::Store) when the worker can't register. Once it runs, troubles are
    /// logged and retried.
    pub async fn run_until_terminated(self) -> Result<DrainReport, Error> {
        let mut signals = Signals::take()?;
        let (stops, stop) = mpsc::unbounded_channel();
        let listen = async move {
            loop {
                signals.next().await;
                if stops.send(()).is_err() {
                    return std::future::pending().await;
                }
            }
        };
        tokio::select! {
            report = self.run(stop) => report,
            () = listen => unreachable!("the listener never ends before the worker"),
        }
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
            report = self.run(stopped) => report,
            () = tell => unreachable!("the teller never ends before the worker"),
        }
    }

    async fn run(self, stop: mpsc::UnboundedReceiver<()>) -> Result<DrainReport, Error> {
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
            over: CancellationToken::new(),
            ready: tokio::sync::Notify::new(),
            scheduled: tokio::sync::Notify::new(),
            ended,
            tally: Tally::default(),
        });
        let _ends_with_us = OverOnDrop(shared.over.clone());
        register(&shared).await?;
        let heartbeat = heartbeat::start(shared.clone())?;
        let loops = TaskTracker::new();
        let runs = TaskTracker::new();
        loops.spawn(tenure_loop(shared.clone()));
        loops.spawn(settle::settle_loop(shared.clone(), ends));
        loops.spawn(wake::wake_loop(shared.clone()));
        loops.spawn(upkeep::promote_loop(shared.clone()));
        loops.spawn(upkeep::sweep_loop(shared.clone()));
        loops.spawn(upkeep::prune_loop(shared.clone()));
        let intake = loops.spawn(claim::claim_loop(shared.clone(), runs.clone()));
        let report = drain(&shared, stop, intake).await;
        shared.over.cancel();
        loops.close();
        loops.wait().await;
        // The heartbeat's thread looks at `over` at least every second; its calls are bounded.
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

/// Waits for the stop and drives the drain to its end.
async fn drain<S>(
    shared: &Shared<S>,
    mut stop: mpsc::UnboundedReceiver<()>,
    mut intake: tokio::task::JoinHandle<()>,
) -> DrainReport {
    let mut drain = Drain::new(Split::of(shared.settings.grace_period));
    let mut stopped_at = None;
    let mut wake_at = None;
    let mut is_intake_open = true;
    loop {
        let now = shared.elapsed();
        let sleep = async {
            match wake_at {
                Some(at) => tokio::time::sleep(Duration::saturating_sub(at, now)).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            Some(()) = stop.recv() => Event::Stop,
            _ = &mut intake, if is_intake_open => {
                is_intake_open = false;
                Event::IntakeClosed
            }
            () = shared.ledger.changed(), if stopped_at.is_some() => Event::Tick,
            () = sleep => Event::Tick,
        };
        let now = shared.elapsed();
        if event == Event::Stop {
            stopped_at.get_or_insert(now);
        }
        let mut actions = drain.step(now, Event::Held(shared.ledger.held()));
        actions.extend(drain.step(now, event));
        for action in actions {
            match action {
                Action::Enter(phase) => enter(shared, phase),
                Action::CloseIntake => shared.intake_closed.cancel(),
                Action::AskHandlers => shared.ledger.ask_all(Reason::Drain),
                Action::AbortHandlers => shared.ledger.abort_all(Reason::Drain),
                Action::WakeAt(at) => wake_at = Some(at),
                Action::CloseWorker | Action::Exit => {
                    close(shared, &drain, stopped_at.unwrap_or(now)).await;
                    return report(shared, stopped_at.unwrap_or(now));
                }
            }
        }
    }
}

fn enter<S>(shared: &Shared<S>, phase: Phase) {
    tracing::info!(phase = phase.as_str(), held = shared.ledger.held(), "drain");
    shared.tenancy.enter(phase);
}

/// Gives the lease back, and with it whatever the store still says is held here. Tries until the
/// time is up; then the lease ends by itself.
async fn close<S>(shared: &Shared<S>, drain: &Drain, stopped_at: Duration) {
    debug_assert_eq!(drain.phase(), Phase::Done);
    let Some(worker) = shared.worker() else {
        shared.tenancy.closed();
        return;
    };
    let ends_at = stopped_at + Split::of(shared.settings.grace_period).exit;
    loop {
        let left = ends_at.saturating_sub(shared.elapsed()).max(Duration::from_millis(100));
        let author = shared.author();
        let closing = shared.store().close(worker, &author);
        let error = match tokio::time::timeout(left, closing).await {
            Ok(Ok(gave_back)) => {
                shared.tenancy.closed();
                let count = u64::try_from(gave_back.len()).unwrap_or(u64::MAX);
                shared.tally.interrupted.fetch_add(count, Ordering::Relaxed);
                return;
            }
            Ok(Err(error)) => jobs_core::chain(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        if shared.elapsed() >= ends_at {
            tracing::warn!(error, worker = worker.0, "can't close the worker; its lease will end");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn report<S>(shared: &Shared<S>, stopped_at: Duration) -> DrainReport {
    let report = DrainReport {
        settled: shared.tally.settled.load(Ordering::Relaxed),
        interrupted: shared.tally.interrupted.load(Ordering::Relaxed),
        released: shared.tally.released.load(Ordering::Relaxed),
        abandoned: shared.ledger.running(),
        took: shared.elapsed().saturating_sub(stopped_at),
    };
    let DrainReport { settled, interrupted, released, abandoned, took } = report;
    tracing::info!(settled, interrupted, released, abandoned, ?took, "worker done");
    report
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
