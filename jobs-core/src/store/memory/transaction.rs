//! Transactions: a copy of the tables that a commit puts in place of the original.

use async_lock::MutexGuardArc;
use async_trait::async_trait;

use super::super::{CheckpointSave, Enqueued, Result, Standing, Transaction, Transactions};
use super::MemoryStore;
use super::tables::Tables;
use crate::envelope::NewJob;
use crate::id::Fence;
use crate::record::Notes;

/// An open transaction. Nobody else sees or changes the store until it ends.
struct Open {
    store: MemoryStore,
    tables: MutexGuardArc<Tables>,
    copy: Tables,
}

#[async_trait]
impl Transactions for MemoryStore {
    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let tables = self.shared.tables.lock_arc().await;
        let copy = tables.clone();
        Ok(Box::new(Open { store: self.clone(), tables, copy }))
    }
}

#[async_trait]
impl Transaction for Open {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        Ok(self.copy.enqueue(self.store.moment().now, jobs))
    }

    async fn checkpoint(&mut self, save: &CheckpointSave) -> Result<Standing> {
        Ok(self.copy.checkpoint(save))
    }

    async fn done(&mut self, fence: Fence, notes: &Notes) -> Result<Standing> {
        Ok(self.copy.done(self.store.moment().now, fence, notes))
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        let Self { store, mut tables, copy } = *self;
        *tables = copy;
        drop(tables);
        store.shared.bell.ring();
        Ok(())
    }

    async fn rollback(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
