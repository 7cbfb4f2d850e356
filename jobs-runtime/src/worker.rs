//! The worker: the one file that knows every part and wires them.
//!
//! 1. The heartbeat outlives the handlers, and the settler outlives them too.
//! 2. Every loop ends before [`Worker::run_until`] returns; only a handler that does not end can
//!    outlive it, and is reported as abandoned.
//! 3. A worker that lost its lease registers anew under another id; its old runs are settled as
//!    given up, where nobody took them back.

mod budget;
mod builder;
mod claim;
mod dispatch;
mod drain;
mod exit;
mod flush;
#[cfg(feature = "http")]
mod health;
mod heartbeat;
mod intake;
mod lease;
mod ledger;
mod look;
mod outage;
mod progress;
mod queues;
mod report;
mod routes;
mod runners;
mod schedule;
mod settings;
mod settle;
mod shared;
mod starts;
mod stranded;
mod suspects;
mod systemd;
mod tenure;
mod upkeep;
mod wake;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::QueueName;
use jobs_core::drain::Split;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::budget::Budget;
use self::drain::Stop;
use self::lease::Tenancy;
use self::ledger::Ledger;
use self::queues::Running;
pub use self::report::DrainReport;
use self::settings::Wanted;
use self::shared::{Shared, Tally};
use self::starts::Starts;
use self::systemd::Notifier;
use crate::client::Jobs;
use crate::error::{Error, ErrorKind};
use crate::registry::Handlers;
use crate::run::Board;
use crate::signals::Signals;
use crate::telemetry::Meters;

/// Claims and runs jobs until it is told to stop.
pub struct Worker<S> {
    jobs: Jobs,
    handlers: Handlers<S>,
    state: S,
    wanted: Wanted,
}

/// The exit status of a process that [`Worker::run_until_terminated`] had to end because something
/// in it did not: 75, the system's word for a failure that passes. What was left runs elsewhere.
pub const EXIT_UNFINISHED: i32 = 75;

impl<S: Clone + Send + Sync + 'static> Worker<S> {
    /// A worker with the default settings.
    pub fn new(jobs: &Jobs, handlers: Handlers<S>, state: S) -> Self {
        Self { jobs: jobs.clone(), handlers, state, wanted: Wanted::default() }
    }

    /// Runs until SIGTERM or SIGINT, then drains. A second signal moves the drain on one phase.
    ///
    /// The process is gone before the grace period ends, since then the supervisor would kill it: if
    /// it still runs a moment before, because a handler or anything else blocks, it is ended with
    /// the status [`EXIT_UNFINISHED`].
    ///
    /// Under systemd it says when it is ready, what phase its drain is in, and, where the unit has a
    /// watchdog, that it lives.
    ///
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) for a setting outside its range;
    /// [`Store`](ErrorKind::Store) when the worker can't register; [`Broken`](ErrorKind::Broken) when
    /// a part of it can't start or panics. Once it runs, troubles of the store are logged and retried.
    ///
    /// # Cancel safety
    /// As [`run_until`](Self::run_until). SIGTERM and SIGINT don't end the process by themselves after a
    /// dropped call; one that came before the drop still ends it when the grace period does.
    pub async fn run_until_terminated(self) -> Result<DrainReport, Error> {
        let budget = Budget::ask(self.wanted.stated).await?;
        let wired = self.wire(budget, Notifier::of_process())?;
        let stop = wired.heartbeat.within(Signals::take)?;
        wired.run(Stop::Signals(stop)).await
    }

    /// Runs until `stop` is ready, then drains.
    ///
    /// The process is the application's and lives on. A handler that blocks its thread for ever is left
    /// behind ([`DrainReport::abandoned`]): when the grace period has ended its job runs again elsewhere,
    /// although the old run may still be at it, and whatever that one then writes to the store is refused.
    /// [`run_until_terminated`](Self::run_until_terminated) ends the process instead.
    ///
    /// # Errors
    /// As [`run_until_terminated`](Self::run_until_terminated).
    ///
    /// # Cancel safety
    /// A dropped call aborts its handlers and leaves their jobs to the lease: they run again elsewhere
    /// once it ends. Only a handler that blocks its thread goes on, until it yields.
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
        let budget = Budget::ask(self.wanted.stated).await?;
        let wired = self.wire(budget, Notifier::default())?;
        tokio::select! {
            report = wired.run(Stop::Asked(stopped)) => report,
            () = tell => unreachable!("the teller never ends before the worker"),
        }
    }

    /// Checks the settings and puts the parts together; nothing runs yet.
    fn wire(self, budget: Budget, notifier: Notifier) -> Result<Wired<S>, Error> {
        #[cfg(feature = "http")]
        let door = self.wanted.health.as_deref().map(health::Door::open).transpose()?;
        #[cfg(feature = "http")]
        if door.is_some() {
            // Before the meters are made.
            health::install();
        }
        let settings = self.wanted.checked(&self.handlers, budget)?;
        budget.tell(&self.handlers);
        let (ended, ends) = mpsc::unbounded_channel();
        let meters = Meters::of(&self.handlers);
        let split = Split::of(settings.drain);
        let answers_within = split.interrupting.saturating_sub(split.quiet);
        let patience = settings.lease.ask_to_stop();
        let shared = Arc::new(Shared {
            ledger: Ledger::new(settings.concurrency),
            running: Running::default(),
            starts: Starts::default(),
            tenancy: Tenancy::new(settings.lease),
            jobs: self.jobs,
            settings,
            handlers: self.handlers,
            state: self.state,
            intake_closed: CancellationToken::new(),
            intake_ended: CancellationToken::new(),
            broken: CancellationToken::new(),
            outdated: CancellationToken::new(),
            over: CancellationToken::new(),
            ready: tokio::sync::Notify::new(),
            scheduled: tokio::sync::Notify::new(),
            ended,
            board: Arc::new(Board::new(answers_within, patience)),
            tally: Tally::default(),
            meters,
            pulse: shared::Pulse::default(),
            nudged: tokio::sync::Notify::new(),
            outage: outage::StoreOutage::default(),
            notifier,
        });
        Ok(Wired {
            shared,
            ends,
            heartbeat: heartbeat::Thread::new()?,
            #[cfg(feature = "http")]
            door,
        })
    }
}

/// A worker whose parts are put together.
struct Wired<S> {
    shared: Arc<Shared<S>>,
    ends: mpsc::UnboundedReceiver<settle::Ended>,
    heartbeat: heartbeat::Thread,
    #[cfg(feature = "http")]
    door: Option<health::Door>,
}

impl<S: Clone + Send + Sync + 'static> Wired<S> {
    async fn run(self, stop: Stop) -> Result<DrainReport, Error> {
        let Self { shared, ends, heartbeat, .. } = self;
        let _ends_with_us = OverOnDrop(&shared);
        #[cfg(feature = "http")]
        let served = self.door.map(|door| door.serve(&shared)).transpose()?;
        tenure::register(&shared).await?;
        tell(&shared);
        shared.notifier.ready();
        let (reports, report) = oneshot::channel();
        let heartbeat = heartbeat.start(shared.clone(), stop, reports)?;
        let mut loops = JoinSet::new();
        loops.spawn(tenure::tenure_loop(shared.clone()));
        // First what it is there for.
        loops.spawn(claim::claim_loop(shared.clone()));
        loops.spawn(settle::settle_loop(shared.clone(), ends));
        loops.spawn(wake::wake_loop(shared.clone()));
        loops.spawn(upkeep::promote_loop(shared.clone()));
        loops.spawn(upkeep::sweep_loop(shared.clone()));
        loops.spawn(upkeep::prune_loop(shared.clone()));
        loops.spawn(upkeep::recall_loop(shared.clone()));
        loops.spawn(shared::pulse_loop(shared.clone()));
        loops.spawn(schedule::schedule_loop(shared.clone()));
        loops.spawn(stranded::stranded_loop(shared.clone()));
        loops.spawn(progress::progress_loop(shared.clone()));
        let report = watch_over(&shared, &mut loops, report).await;
        shared.over.cancel();
        // A loop that waits for a store which never answers must not hold the application up.
        let ended = async { while loops.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_CALLS, ended).await.is_err() {
            tracing::warn!("the store does not answer; leaving its last calls behind");
        } else {
            let _ = tokio::time::timeout(LAST_CALLS, shared.jobs.backend().rest()).await;
        }
        // It has nothing left to do: the report was its last word.
        drop(tokio::task::spawn_blocking(move || heartbeat.join()).await);
        #[cfg(feature = "http")]
        if let Some(served) = served {
            drop(tokio::task::spawn_blocking(move || served.join()).await);
        }
        report
    }
}

/// How long the calls in flight may take once the worker is over.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Waits for the report of the drain. A loop that panics is a bug of ours: the worker then drains,
/// since it would otherwise hold jobs that it can't run or settle. So is a heartbeat that ends without
/// a report: its runs were given up, and are settled as that while the loops still run.
async fn watch_over<S>(
    shared: &Shared<S>,
    loops: &mut JoinSet<()>,
    mut report: oneshot::Receiver<DrainReport>,
) -> Result<DrainReport, Error> {
    let mut broke = None;
    loop {
        tokio::select! {
            biased;
            report = &mut report => return match (broke, report) {
                (Some(panic), _) => Err(panic),
                (None, Ok(report)) => Ok(report),
                (None, Err(_)) => {
                    drop(tokio::time::timeout(LAST_CALLS, given_up(shared)).await);
                    Err(heartbeat::died())
                }
            },
            Some(ended) = loops.join_next() => {
                let Err(panic) = ended else { continue };
                tracing::error!(%panic, "a loop of the worker panicked; draining");
                shared.broken.cancel();
                let what = format!("a loop of the worker panicked, which is a bug: {panic}");
                broke.get_or_insert(Error::new(ErrorKind::Broken, what));
            }
        }
    }
}

/// Gives up the runs, and waits until they are settled.
async fn given_up<S>(shared: &Shared<S>) {
    shared.give_up();
    while shared.ledger.held() > 0 {
        shared.ledger.changed().await;
    }
}

/// Ends every loop and every handler when the worker's own future is dropped: nobody renews the lease
/// any more, so a handler that went on would soon run beside its successor.
struct OverOnDrop<'a, S>(&'a Shared<S>);

impl<S> Drop for OverOnDrop<'_, S> {
    fn drop(&mut self) {
        self.0.over.cancel();
        self.0.give_up();
    }
}

/// Says what a person who starts a worker asks: which store, which queues, what it knows.
fn tell<S>(shared: &Shared<S>) {
    let queues: Vec<&str> = shared.settings.queues.iter().map(QueueName::as_str).collect();
    let (store, queues) = (shared.jobs.backend().place(), queues.join(", "));
    let (kinds, schedules) = (shared.handlers.all().len(), shared.handlers.schedules().len());
    tracing::info!(kinds, schedules, "working {store}: queues {queues}");
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
