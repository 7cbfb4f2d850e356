//! The memory store, how often each of its methods was called, and calls that fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jobs_runtime::store::memory::MemoryStore;
use jobs_runtime::store::{
    Advanced, Author, Brief, BuildRecord, Cancelled, CheckpointSave, Claim, Claimed, Count,
    Declaration, Depth, Duty, Enqueued, Filter, Heartbeat, Inspect, NewWorker, Operate, Paused,
    Promoted, ReadyRoute, Redrive, Redriven, Reschedule, Retention, Row, Saved, ScheduleView,
    Schedules, Settled, Standing, Step, Store, Strand, Sweep, Swept, Tick, Waiting, Wake,
    WorkerRecord,
};
use jobs_runtime::{
    BuildId, Clock, Event, Fence, JobId, JobRecord, NewJob, ProgressNote, QueueName, Route,
    ScheduleName, Settlement, StoreError, StoreErrorKind, StoreId, WorkerId,
};

type Result<T> = std::result::Result<T, StoreError>;

/// How often what was called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(BTreeMap<&'static str, u64>);

impl Calls {
    pub(crate) fn of(&self, method: &str) -> u64 {
        self.0.get(method).copied().unwrap_or_default()
    }

    /// Claims of all kinds.
    pub(crate) fn claims(&self) -> u64 {
        self.of("claim") + self.of("claim_idle") + self.of("claim_within")
    }

    pub(crate) fn all(&self) -> u64 {
        self.0.values().sum()
    }
}

/// The calls so far, shared with the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<Mutex<Calls>>, Arc<Mutex<Vec<&'static str>>>);

impl Counter {
    fn count(&self, method: &'static str) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.0.entry(method).or_default() += 1;
    }

    /// Has the next call of this method fail, as when the database is away for a moment.
    pub(crate) fn fail(&self, method: &'static str) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(method);
    }

    /// The methods that are still to fail.
    pub(crate) fn to_fail(&self) -> usize {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn check(&self, method: &'static str) -> Result<()> {
        let mut failing = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        match failing.iter().position(|failing| *failing == method) {
            Some(at) => {
                failing.remove(at);
                Err(StoreError::new(StoreErrorKind::Unavailable, "away for a moment"))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn take(&self) -> Calls {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
pub(crate) struct Counted {
    store: MemoryStore,
    counter: Counter,
}

impl Counted {
    pub(crate) fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self { store: MemoryStore::new(clock, seed), counter: Counter::default() }
    }

    pub(crate) fn calls(&self) -> Counter {
        self.counter.clone()
    }
}

macro_rules! counted {
    (
        impl $contract:ident { $($own:item)* }
        $($method:ident($($name:ident: $type:ty),*) -> $answer:ty;)*
    ) => {
        #[async_trait]
        impl $contract for Counted {
            $($own)*

            $(async fn $method(&self, $($name: $type),*) -> Result<$answer> {
                self.counter.count(stringify!($method));
                self.counter.check(stringify!($method))?;
                $contract::$method(&self.store, $($name),*).await
            })*
        }
    };
}

counted! {
    impl Store {
        fn id(&self) -> &StoreId {
            self.store.id()
        }

        fn wake(&self) -> Box<dyn Wake> {
            self.store.wake()
        }

        /// On a thread and a clock of its own, so not counted.
        async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>> {
            self.store.heartbeat().await
        }
    }
    enqueue(jobs: &[NewJob]) -> Vec<Enqueued>;
    register(worker: &NewWorker) -> WorkerId;
    routes(queues: &[QueueName]) -> Vec<ReadyRoute>;
    claim(claim: Claim<'_>) -> Claimed;
    claim_idle(claim: Claim<'_>) -> Claimed;
    claim_within(claim: Claim<'_>, most: u32) -> Claimed;
    settle(by: &Author, settlements: &[Settlement]) -> Vec<Settled>;
    checkpoint(saves: &[CheckpointSave]) -> Vec<Saved>;
    note_progress(notes: &[ProgressNote]) -> Vec<bool>;
    check(fences: &[Fence]) -> Vec<Standing>;
    reread(fences: &[Fence]) -> Vec<Row>;
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

counted! {
    impl Schedules {}
    declare(by: Option<WorkerId>, declarations: &[Declaration]) -> ();
    undeclare(name: &ScheduleName) -> bool;
    schedules() -> ScheduleView;
    advance(step: &Step) -> Advanced;
    ticks(name: &ScheduleName) -> Vec<Tick>;
}

counted! {
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

counted! {
    impl Operate {}
    cancel(jobs: &[JobId]) -> Vec<Cancelled>;
    redrive(jobs: &[JobId], redrive: Redrive) -> Vec<Redriven>;
    run_now(jobs: &[JobId]) -> Vec<bool>;
    reschedule(jobs: &[JobId], change: Reschedule) -> Vec<bool>;
    pause(queue: &QueueName, by: &str, reason: &str) -> ();
    resume(queue: &QueueName) -> ();
}
