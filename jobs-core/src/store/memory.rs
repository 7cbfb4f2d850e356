//! The reference store: simple, obviously right, gone with the process.
//!
//! 1. It keeps the whole contract; the other stores are compared with it, call by call.
//! 2. It reads no clock and no entropy but the ones it is given.
//! 3. One call or transaction at a time: everyone else waits for its end, readers too.
//!
//! Deliberately absent: indexes and speed. Every question is a scan of plain tables, so that each
//! answer can be checked by reading the few lines that give it.
//!
//! Why one lock: a transaction works on a copy that its commit puts in place of the original. That
//! is how a store with one writer behaves, and it leaves no interleaving to think about.

mod claim;
mod due;
mod inspect;
mod lease;
mod operate;
#[cfg(feature = "conformance")]
mod outside;
mod rollout;
mod schedule;
mod settle;
mod tables;
mod transaction;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use async_lock::Mutex;
use async_trait::async_trait;

use self::tables::Tables;
use self::wake::{Bell, Listener};
use super::{
    Author, CheckpointSave, Claim, Claimed, Duty, Enqueued, Heartbeat, Held, Leaving, NewWorker,
    Phase, Promoted, ReadyRoute, Renewed, Result, Retention, Row, Saved, Settled, Standing, Store,
    Strand, Sweep, Swept, Wake,
};
use crate::clock::{Clock, Timestamp};
use crate::envelope::NewJob;
use crate::error::{StoreError, StoreErrorKind};
use crate::id::{Fence, JobId, StoreId, WorkerId};
use crate::name::{BuildId, QueueName};
use crate::random::{Random, SeededRandom};
use crate::record::ProgressNote;
use crate::route::Route;
use crate::transition::Settlement;

/// A store in this process's memory. Clones are handles of the same store.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: StoreId,
    clock: Arc<dyn Clock>,
    random: SeededRandom,
    tables: Arc<Mutex<Tables>>,
    bell: Bell,
}

/// When a call happens: due times are judged by the one, leases by the other.
#[derive(Debug, Clone, Copy)]
struct Moment {
    now: Timestamp,
    elapsed: Duration,
}

impl MemoryStore {
    /// An empty store. The seed makes its identity and moves the waits that no caller draws for.
    pub fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let id = StoreId(format!("{:016x}{:016x}", random.draw(), random.draw()));
        let tables = Arc::new(Mutex::new(Tables::default()));
        Self { shared: Arc::new(Shared { id, clock, random, tables, bell: Bell::default() }) }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.shared.clock.now(), elapsed: self.shared.clock.elapsed() }
    }

    /// One call: alone with the tables, at one moment.
    async fn call<T>(&self, call: impl FnOnce(&mut Tables, Moment) -> T + Send) -> T {
        let mut tables = self.shared.tables.lock().await;
        call(&mut tables, self.moment())
    }

    /// A call that makes jobs ready or due.
    async fn waking<T>(&self, call: impl FnOnce(&mut Tables, Moment) -> T + Send) -> T {
        self.waking_if(call, |_| true).await
    }

    /// A call that may make jobs ready or due, and rings only where its answer says that it did: a
    /// worker promotes at every ring, and would ring for itself without end.
    async fn waking_if<T>(
        &self,
        call: impl FnOnce(&mut Tables, Moment) -> T + Send,
        wakes: impl FnOnce(&T) -> bool + Send,
    ) -> T {
        let answer = self.call(call).await;
        if wakes(&answer) {
            self.shared.bell.ring();
        }
        answer
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn id(&self) -> &StoreId {
        &self.shared.id
    }

    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        Ok(self.waking(|tables, at| tables.enqueue(at.now, jobs)).await)
    }

    async fn register(&self, worker: &NewWorker) -> Result<WorkerId> {
        Ok(self.call(|tables, at| tables.register(at, worker)).await)
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>> {
        Ok(Box::new(self.clone()))
    }

    async fn routes(&self, queues: &[QueueName]) -> Result<Vec<ReadyRoute>> {
        Ok(self.call(|tables, _| tables.routes(queues)).await)
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Claimed> {
        Ok(self.call(|tables, at| tables.claim(at.now, &claim)).await)
    }

    async fn claim_within(&self, claim: Claim<'_>, most: u32) -> Result<Claimed> {
        Ok(self.call(|tables, at| tables.claim_within(at.now, &claim, most)).await)
    }

    async fn settle(&self, by: &Author, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        let settle = |tables: &mut Tables, at: Moment| {
            settlements.iter().map(|settlement| tables.settle(at.now, by, settlement)).collect()
        };
        let wakes = |answers: &Vec<Settled>| {
            answers.iter().any(|answer| match answer {
                Settled::Applied(state) => state.is_waiting(),
                Settled::LeaseLost | Settled::Locked => false,
            })
        };
        Ok(self.waking_if(settle, wakes).await)
    }

    async fn checkpoint(&self, saves: &[CheckpointSave]) -> Result<Vec<Saved>> {
        let save =
            |save: &CheckpointSave, tables: &mut Tables| Saved::Answered(tables.checkpoint(save));
        let all = |tables: &mut Tables, _| saves.iter().map(|one| save(one, tables)).collect();
        Ok(self.call(all).await)
    }

    async fn note_progress(&self, notes: &[ProgressNote]) -> Result<Vec<bool>> {
        let write =
            |tables: &mut Tables, _| notes.iter().map(|note| tables.note_progress(note)).collect();
        Ok(self.call(write).await)
    }

    async fn check(&self, fences: &[Fence]) -> Result<Vec<Standing>> {
        let check =
            |tables: &mut Tables, _| fences.iter().map(|fence| tables.standing(*fence)).collect();
        Ok(self.call(check).await)
    }

    async fn reread(&self, fences: &[Fence]) -> Result<Vec<Row>> {
        let reread =
            |tables: &mut Tables, _| fences.iter().map(|fence| tables.reread(*fence)).collect();
        Ok(self.call(reread).await)
    }

    async fn promote(&self, limit: u32) -> Result<Promoted> {
        Ok(self.waking_if(|tables, at| tables.promote(at.now, limit), |done| done.count > 0).await)
    }

    async fn expire(&self, limit: u32) -> Result<u32> {
        Ok(self.call(|tables, at| tables.expire(at.now, limit)).await)
    }

    async fn refused_routes(&self) -> Result<Vec<Route>> {
        Ok(self.call(|tables, _| tables.refused_routes()).await)
    }

    async fn recall(&self, routes: &[Route], limit: u32) -> Result<u32> {
        Ok(self
            .waking_if(|tables, at| tables.recall(at.now, routes, limit), |count| *count > 0)
            .await)
    }

    async fn strand(&self, strand: &Strand<'_>) -> Result<u32> {
        Ok(self.call(|tables, at| tables.strand(at.now, strand)).await)
    }

    async fn publish(&self, build: &BuildId, manifest: &str) -> Result<()> {
        self.call(|tables, at| tables.publish(at.now, build.as_str(), manifest)).await;
        Ok(())
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        Ok(self
            .waking_if(|tables, at| tables.sweep(at, sweep), |swept| !swept.jobs.is_empty())
            .await)
    }

    async fn take_duty(&self, duty: Duty, worker: WorkerId) -> Result<bool> {
        Ok(self.call(|tables, _| tables.take_duty(duty, worker)).await)
    }

    async fn give_back_duty(&self, duty: Duty, worker: WorkerId) -> Result<()> {
        self.call(|tables, _| tables.give_back_duty(duty, worker)).await;
        Ok(())
    }

    async fn prune(&self, retention: Retention, limit: u32) -> Result<u32> {
        Ok(self.call(|tables, at| tables.prune(at.now, retention, limit)).await)
    }

    fn wake(&self) -> Box<dyn Wake> {
        Box::new(Listener::new(self.clone()))
    }
}

#[async_trait]
impl Heartbeat for MemoryStore {
    async fn renew(&mut self, worker: WorkerId, phase: Phase, _: Duration) -> Result<Renewed> {
        let renew = |tables: &mut Tables, at: Moment| {
            (tables.renew(at.elapsed, worker, phase), tables.is_outgrown)
        };
        match self.call(renew).await {
            (renewed, false) => Ok(renewed),
            (_, true) => {
                Err(StoreError::new(StoreErrorKind::Schema, "the store needs a newer build"))
            }
        }
    }

    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>> {
        Ok(self.call(|tables, _| tables.held(worker)).await)
    }

    async fn close(
        &mut self,
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
    ) -> Result<Vec<JobId>> {
        let draw = self.shared.random.draw();
        Ok(self.waking(|tables, at| tables.close(at, worker, by, leaving, draw)).await)
    }
}
