//! Workers in this process, what their handlers tell, and the check of what became of the jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{
    Clock, DrainReport, Enqueued, ErrorKind, JobId, JobRecord, State, StoreErrorKind, SystemClock,
};
use sqlx::{Connection, PgConnection};
use tests::{Work, until};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) const SOON: Duration = Duration::from_secs(40);

/// What the handlers of a test tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told(Arc<Mutex<BTreeMap<(i64, i64), Run>>>);

/// One run as its handler told it, in microseconds since the epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    pub(crate) ended_at_us: Option<i64>,
    /// When the handler's future went, whether it had ended or not.
    pub(crate) dropped_at_us: Option<i64>,
}

impl Told {
    pub(crate) fn runs(&self) -> MutexGuard<'_, BTreeMap<(i64, i64), Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn starts_of(&self, job: i64) -> usize {
        self.runs().range((job, i64::MIN)..=(job, i64::MAX)).count()
    }
}

struct Dropped<'a>(&'a Told, (i64, i64));

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        let run = &mut *self.0.runs();
        run.entry(self.1).or_default().dropped_at_us = Some(now_us());
    }
}

fn now_us() -> i64 {
    SystemClock.now().as_micros()
}

async fn work(job: Work, cx: JobContext<Told>) -> Result<(), JobError> {
    let run = (cx.id().0, cx.claim().0);
    let before = cx.state.runs().insert(run, Run::default());
    assert!(before.is_none(), "{run:?} started twice");
    let _dropped = Dropped(&cx.state, run);
    // A run that follows an interrupted one has less left to do.
    let millis = if cx.claim().0 == 1 { job.millis } else { job.millis / 100 };
    tokio::time::sleep(Duration::from_millis(millis)).await;
    cx.state.runs().entry(run).or_default().ended_at_us = Some(now_us());
    Ok(())
}

/// A worker with fast timers.
pub(crate) fn worker(jobs: &Jobs, told: &Told) -> Worker<Told> {
    let handlers = Registry::new().handle(work).build().expect("one handler");
    Worker::new(jobs, handlers, told.clone())
        .poll_interval(Duration::from_millis(100))
        .lease(Duration::from_secs(3))
        .grace_period(Duration::from_secs(8))
}

/// Workers that run until they are told to stop.
pub(crate) struct Crew {
    stop: watch::Sender<bool>,
    workers: JoinSet<Result<DrainReport, jobs_runtime::Error>>,
}

impl Crew {
    pub(crate) fn start<S>(all: impl IntoIterator<Item = Worker<S>>) -> Self
    where
        S: Clone + Send + Sync + 'static,
    {
        let stop = watch::Sender::new(false);
        let mut workers = JoinSet::new();
        for worker in all {
            let mut stopped = stop.subscribe();
            workers.spawn(worker.run_until(async move {
                drop(stopped.wait_for(|stop| *stop).await);
            }));
        }
        Self { stop, workers }
    }

    /// Tells them to stop.
    pub(crate) fn ask(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) async fn stop(self) {
        self.ask();
        self.ended().await;
    }

    /// Waits for their ends, without asking.
    pub(crate) async fn ended(self) {
        for ended in self.workers.join_all().await {
            ended.expect("the worker ends well");
        }
    }
}

/// Enqueues without a pause, and keeps what was acknowledged.
pub(crate) struct Enqueuer {
    is_over: Arc<AtomicBool>,
    task: JoinSet<BTreeSet<JobId>>,
}

impl Enqueuer {
    pub(crate) fn start(jobs: &Jobs) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut task = JoinSet::new();
        task.spawn(enqueue_until(jobs.clone(), is_over.clone()));
        Self { is_over, task }
    }

    /// What was acknowledged.
    pub(crate) async fn stop(mut self) -> BTreeSet<JobId> {
        self.is_over.store(true, Ordering::SeqCst);
        self.task.join_next().await.expect("it runs").expect("it does not panic")
    }
}

async fn enqueue_until(jobs: Jobs, is_over: Arc<AtomicBool>) -> BTreeSet<JobId> {
    let mut acknowledged = BTreeSet::new();
    while !is_over.load(Ordering::SeqCst) {
        let many = jobs.enqueue_all((0..5).map(|millis| Work { millis })).await;
        let one = jobs.enqueue(Work { millis: 1 }).await;
        for error in many.as_ref().err().into_iter().chain(one.as_ref().err()) {
            // A standby on its way to be more says that it takes no writes.
            let is_read_only = error.kind() == ErrorKind::Store(StoreErrorKind::ReadOnly);
            assert!(error.is_transient() || is_read_only, "{}", jobs_runtime::chain(error));
        }
        acknowledged.extend(many.into_iter().flatten().map(Enqueued::id));
        acknowledged.extend(one.into_iter().map(Enqueued::id));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    acknowledged
}

pub(crate) async fn all(jobs: &Jobs) -> Vec<JobRecord> {
    jobs.inspect().jobs(&Filter::default(), u32::MAX).await.expect("the store answers")
}

/// How many jobs are in a state; `None` while the store does not answer.
pub(crate) async fn count(jobs: &Jobs, state: State) -> Option<u64> {
    let counts = jobs.inspect().counts().await.ok()?;
    Some(counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum())
}

/// Waits until so many jobs have succeeded.
pub(crate) async fn until_succeeded(jobs: &Jobs, wanted: u64) {
    until(&format!("{wanted} jobs have succeeded"), SOON, async || {
        count(jobs, State::Succeeded).await >= Some(wanted)
    })
    .await;
}

/// Waits until nothing waits or runs.
pub(crate) async fn until_idle(jobs: &Jobs) {
    until("nothing waits or runs any more", SOON, async || {
        // By one statement: from one to the next a job can change its state.
        let counts = jobs.inspect().counts().await;
        counts.is_ok_and(|counts| counts.iter().all(|count| count.state.is_finished()))
    })
    .await;
}

/// Every acknowledged job is there; every job succeeded by a run whose handler ended, none failed,
/// and none started more often than interruptions explain.
pub(crate) async fn assert_each_succeeded_once(
    jobs: &Jobs,
    acknowledged: &BTreeSet<JobId>,
    told: &Told,
) {
    let records = all(jobs).await;
    let there: BTreeSet<JobId> = records.iter().map(|record| record.id).collect();
    let lost: Vec<_> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    for record in records {
        let id = record.id.0;
        assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0), "job {id}");
        let run = told.runs().get(&(id, record.claim.0)).copied();
        assert!(run.is_some_and(|run| run.ended_at_us.is_some()), "job {id}: {run:?}");
        let starts = told.starts_of(id);
        let most = 1 + record.counters.interruptions as usize;
        assert!(starts <= most, "job {id} started {starts} times: {:?}", record.counters);
    }
}

/// A connection such as a person with a shell has.
pub(crate) async fn shell(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("the server takes connections")
}
