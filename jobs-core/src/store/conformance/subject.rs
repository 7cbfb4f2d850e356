//! The memory store as a subject, and as the model of the others.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::super::memory::MemoryStore;
use super::super::{Inspect, Operate, Store, Transactions};
use super::{RawRow, Subject, Tampering};
use crate::clock::{ManualClock, Timestamp};
use crate::id::JobId;

/// A fresh memory store on a clock that stands still until it is advanced.
#[derive(Debug)]
pub struct MemorySubject {
    clock: Arc<ManualClock>,
    store: MemoryStore,
}

impl MemorySubject {
    /// An empty store; equal seeds give equal stores.
    pub fn new(seed: u64) -> Self {
        const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::new(clock.clone(), seed);
        Self { clock, store }
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
        self.clock.advance(span);
    }

    async fn plant(&self, row: &RawRow) -> JobId {
        self.store.plant(row).await
    }

    async fn tamper(&self, job: JobId, tampering: &Tampering) {
        self.store.tamper(job, tampering).await;
    }
}
