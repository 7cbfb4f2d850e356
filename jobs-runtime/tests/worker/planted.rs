//! The store in memory, with answers that a test plants.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jobs_runtime::prelude::*;
use jobs_runtime::store::memory::MemoryStore;
use jobs_runtime::store::{
    Advanced, Author, Brief, BuildRecord, Cancelled, CheckpointSave, Claim, Claimed, Count,
    Declaration, Depth, Duty, Enqueued, Filter, Heartbeat, Held, Inspect, Leaving, NewWorker,
    Operate, Paused, Phase, Promoted, ReadyRoute, Redrive, Redriven, Renewed, Reschedule,
    Retention, Row, Saved, ScheduleView, Schedules, Settled, Standing, Step, Store, Strand, Sweep,
    Swept, Tick, Waiting, Wake, WorkerRecord,
};
use jobs_runtime::{
    BuildId, Event, Fence, JobId, JobRecord, NewJob, ProgressNote, QueueName, Route, ScheduleName,
    Settlement, StoreError, StoreErrorKind, StoreId, SystemClock, WorkerId,
};
use tokio::sync::Notify;

type Result<T> = std::result::Result<T, StoreError>;

/// What a test plants.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Calls that panic, which is a bug of the store.
    pub(crate) panicking: HashSet<&'static str>,
    /// Calls that are answered as by a store that is away.
    pub(crate) away: HashSet<&'static str>,
    /// Calls that are never answered.
    pub(crate) stuck: HashSet<&'static str>,
    /// Jobs whose rows someone else holds: they are not settled.
    pub(crate) locked: HashSet<JobId>,
    /// Jobs that were to be settled while someone else held their rows.
    pub(crate) met_locked: HashSet<JobId>,
    /// Jobs whose outcome the store does not take, unless it is that plain failure.
    pub(crate) refused: HashSet<JobId>,
    /// Jobs with which a batch of settlements fails as if the store were at fault.
    pub(crate) spoiling: HashMap<JobId, StoreErrorKind>,
    /// Whether a close is answered only once the worker has renewed beside it.
    pub(crate) is_close_slow: bool,
    /// Jobs whose rows can't be reread.
    pub(crate) corrupt: HashSet<JobId>,
    /// What the store warns of.
    pub(crate) warnings: Vec<String>,
    /// Calls that came.
    pub(crate) met: HashSet<&'static str>,
    /// Whether an enqueue is answered with nothing.
    pub(crate) is_mute: bool,
}

/// The store, whose clones are handles of the same one.
#[derive(Debug, Clone)]
pub(crate) struct Planted {
    store: MemoryStore,
    plan: Arc<Mutex<Plan>>,
    /// Calls have changed the plan.
    news: Arc<Notify>,
}

impl Planted {
    pub(crate) fn new() -> Self {
        let store = MemoryStore::new(Arc::new(SystemClock), 7);
        Self { store, plan: Arc::default(), news: Arc::default() }
    }

    /// A client of it.
    pub(crate) fn jobs(&self) -> Jobs {
        Jobs::builder().over(self.clone()).expect("the label is fine")
    }

    pub(crate) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until calls have made this so.
    pub(crate) async fn until(&self, holds: impl Fn(&Plan) -> bool) {
        loop {
            // Made before the look, so that it hears of what comes behind that.
            let news = self.news.notified();
            if holds(&self.plan()) {
                return;
            }
            news.await;
        }
    }

    /// Notes what a call has met.
    fn note<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> T {
        let noted = change(&mut self.plan());
        self.news.notify_waiters();
        noted
    }

    async fn meet(&self, method: &'static str) -> Result<()> {
        let (panics, is_stuck, is_away) = self.note(|plan| {
            plan.met.insert(method);
            let is_in = |calls: &HashSet<&'static str>| calls.contains(method);
            (is_in(&plan.panicking), is_in(&plan.stuck), is_in(&plan.away))
        });
        assert!(!panics, "a planted panic of {method}");
        if is_stuck {
            std::future::pending::<()>().await;
        }
        if is_away {
            let away = format!("a planted outage of {method}");
            return Err(StoreError::new(StoreErrorKind::Unavailable, away));
        }
        Ok(())
    }
}

macro_rules! planted {
    (
        impl $contract:ident { $($own:item)* }
        $($method:ident($($name:ident: $type:ty),*) -> $answer:ty;)*
    ) => {
        #[async_trait]
        impl $contract for Planted {
            $($own)*

            $(async fn $method(&self, $($name: $type),*) -> Result<$answer> {
                self.meet(stringify!($method)).await?;
                $contract::$method(&self.store, $($name),*).await
            })*
        }
    };
}

planted! {
    impl Store {
        fn id(&self) -> &StoreId {
            self.store.id()
        }

        fn wake(&self) -> Box<dyn Wake> {
            self.store.wake()
        }

        async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
            self.meet("enqueue").await?;
            let enqueued = self.store.enqueue(jobs).await?;
            Ok(if self.plan().is_mute { Vec::new() } else { enqueued })
        }

        async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>> {
            let (inner, planted) = (self.store.heartbeat().await?, self.clone());
            Ok(Box::new(PlantedHeartbeat { inner, planted }))
        }

        async fn settle(&self, by: &Author, settlements: &[Settlement]) -> Result<Vec<Settled>> {
            self.meet("settle").await?;
            let mut answers = Vec::new();
            for settlement in settlements {
                let job = settlement.fence.job;
                if let Some(kind) = self.plan().spoiling.get(&job) {
                    return Err(StoreError::new(*kind, "the store is not as it should be"));
                }
                let is_plain = settlement.error.as_ref().is_some_and(|it| it.class == "unsettleable");
                if !is_plain && self.plan().refused.contains(&job) {
                    let error = StoreError::new(StoreErrorKind::Invalid, "could not settle runs");
                    return Err(error.because("a character has no equivalent"));
                }
                let is_locked = self.note(|plan| {
                    let is_locked = plan.locked.contains(&job);
                    if is_locked {
                        plan.met_locked.insert(job);
                    }
                    is_locked
                });
                if is_locked {
                    answers.push(Settled::Locked);
                } else {
                    answers.extend(self.store.settle(by, std::slice::from_ref(settlement)).await?);
                }
            }
            Ok(answers)
        }

        async fn reread(&self, fences: &[Fence]) -> Result<Vec<Row>> {
            self.meet("reread").await?;
            if let Some(fence) = fences.iter().find(|it| self.plan().corrupt.contains(&it.job)) {
                let what = format!("the row of job {} can't be read", fence.job);
                return Err(StoreError::new(StoreErrorKind::Corrupt, what));
            }
            self.store.reread(fences).await
        }

        async fn warnings(&self, _: Duration) -> Result<Vec<String>> {
            Ok(self.plan().warnings.clone())
        }
    }
    register(worker: &NewWorker) -> WorkerId;
    routes(queues: &[QueueName]) -> Vec<ReadyRoute>;
    claim(claim: Claim<'_>) -> Claimed;
    claim_within(claim: Claim<'_>, most: u32) -> Claimed;
    checkpoint(saves: &[CheckpointSave]) -> Vec<Saved>;
    note_progress(notes: &[ProgressNote]) -> Vec<bool>;
    check(fences: &[Fence]) -> Vec<Standing>;
    promote(limit: u32) -> Promoted;
    expire(limit: u32) -> u32;
    refused_routes() -> Vec<Route>;
    recall(routes: &[Route], limit: u32) -> u32;
    strand(strand: &Strand<'_>) -> u32;
    publish(build: &BuildId, manifest: &str) -> ();
    sweep(sweep: &Sweep) -> Swept;
    take_duty(duty: Duty, worker: WorkerId) -> bool;
    give_back_duty(duty: Duty, worker: WorkerId) -> ();
    prune(retention: Retention, limit: u32) -> u32;
}

planted! {
    impl Schedules {}
    declare(by: Option<WorkerId>, declarations: &[Declaration]) -> ();
    undeclare(name: &ScheduleName) -> bool;
    schedules() -> ScheduleView;
    advance(step: &Step) -> Advanced;
    ticks(name: &ScheduleName) -> Vec<Tick>;
}

planted! {
    impl Inspect {}
    job(id: JobId) -> Option<JobRecord>;
    events(id: JobId) -> Vec<Event>;
    jobs(filter: &Filter, limit: u32) -> Vec<JobRecord>;
    newest(filter: &Filter, limit: u32) -> Vec<JobRecord>;
    briefs(filter: &Filter, limit: u32) -> Vec<Brief>;
    newest_briefs(filter: &Filter, limit: u32) -> Vec<Brief>;
    briefs_of(jobs: &[JobId]) -> Vec<Brief>;
    depth(most: u32) -> Depth;
    counts() -> Vec<Count>;
    waiting() -> Vec<Waiting>;
    count_due(routes: &[Route], most: u32) -> Vec<u64>;
    builds() -> Vec<BuildRecord>;
    workers() -> Vec<WorkerRecord>;
    paused() -> Vec<Paused>;
}

planted! {
    impl Operate {}
    cancel(jobs: &[JobId]) -> Vec<Cancelled>;
    redrive(jobs: &[JobId], redrive: Redrive) -> Vec<Redriven>;
    run_now(jobs: &[JobId]) -> Vec<bool>;
    reschedule(jobs: &[JobId], change: Reschedule) -> Vec<bool>;
    pause(queue: &QueueName, by: &str, reason: &str) -> ();
    resume(queue: &QueueName) -> ();
}

#[derive(Debug)]
struct PlantedHeartbeat {
    inner: Box<dyn Heartbeat>,
    planted: Planted,
}

#[async_trait]
impl Heartbeat for PlantedHeartbeat {
    async fn renew(&mut self, worker: WorkerId, phase: Phase, within: Duration) -> Result<Renewed> {
        self.planted.meet("renew").await?;
        let renewed = self.inner.renew(worker, phase, within).await;
        if phase == Phase::Done {
            self.planted.note(|plan| plan.met.insert("renew when done"));
        }
        renewed
    }

    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>> {
        self.planted.meet("held").await?;
        self.inner.held(worker).await
    }

    async fn close(
        &mut self,
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
    ) -> Result<Vec<JobId>> {
        self.planted.meet("close").await?;
        let closed = self.inner.close(worker, by, leaving).await;
        let may_answer = |plan: &Plan| !plan.is_close_slow || plan.met.contains("renew when done");
        self.planted.until(may_answer).await;
        closed
    }
}
