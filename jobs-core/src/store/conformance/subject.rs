//! The memory store as a subject, and as the model of the others.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::super::memory::MemoryStore;
use super::super::{Inspect, Operate, Store, Transactions};
use super::{RawRow, Subject, Tampering};
use crate::clock::{Clock, ManualClock, Timestamp};
use crate::id::JobId;

const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// A fresh memory store.
#[derive(Debug)]
pub struct MemorySubject {
    store: MemoryStore,
    time: Time,
}

/// How time passes for a subject.
#[derive(Debug)]
enum Time {
    /// Its clock stands still until it is advanced.
    Given(Arc<ManualClock>),
    /// Its clock runs by itself; stored instants move back.
    Own,
}

impl MemorySubject {
    /// An empty store on a clock that stands still until it is advanced: the model. Equal seeds give
    /// equal stores.
    pub fn new(seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::new(clock.clone(), seed);
        Self { store, time: Time::Given(clock) }
    }

    /// An empty store that is to the suite what a database with a clock of its own is.
    pub fn with_own_clock(seed: u64) -> Self {
        let clock = ManualClock::new(START);
        clock.advance(Duration::from_hours(24 * 365));
        let store = MemoryStore::new(Arc::new(RunningClock(clock)), seed);
        Self { store, time: Time::Own }
    }
}

/// A clock that moves on a little whenever someone looks at it.
#[derive(Debug)]
struct RunningClock(ManualClock);

impl Clock for RunningClock {
    fn now(&self) -> Timestamp {
        self.0.advance(Duration::from_micros(20));
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[async_trait]
impl Subject for MemorySubject {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn inspect(&self) -> &dyn Inspect {
        &self.store
    }

    fn operate(&self) -> &dyn Operate {
        &self.store
    }

    fn transactions(&self) -> &dyn Transactions {
        &self.store
    }

    async fn advance(&self, span: Duration) {
        match &self.time {
            Time::Given(clock) => clock.advance(span),
            Time::Own => self.store.move_back(span).await,
        }
    }

    async fn plant(&self, row: &RawRow) -> JobId {
        self.store.plant(row).await
    }

    async fn outgrow(&self) {
        self.store.outgrow().await;
    }

    async fn tamper(&self, job: JobId, tampering: &Tampering) {
        self.store.tamper(job, tampering).await;
    }
}
