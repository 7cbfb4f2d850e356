//! The suite that every store passes, for authors of stores.
//!
//! A [`Subject`] is one fresh store and the few things that the checks must do to it from outside.
//! The checks are the same for every store; none asks which store it runs on.

use std::time::Duration;

use async_trait::async_trait;

use super::{Inspect, Operate, Store, Transactions};
use crate::id::JobId;

/// A fresh, empty store with no other users, under test.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The store.
    fn store(&self) -> &dyn Store;
    /// Its read side.
    fn inspect(&self) -> &dyn Inspect;
    /// Its operators' side.
    fn operate(&self) -> &dyn Operate;
    /// Its transactions.
    fn transactions(&self) -> &dyn Transactions;

    /// Lets time pass for due times, leases and retention.
    ///
    /// A store that judges by a clock of its own moves its stored instants back instead.
    async fn advance(&self, span: Duration);

    /// Inserts a ready row as another language would: plain SQL, no checks but the schema's own.
    async fn plant(&self, row: &RawRow) -> JobId;

    /// Overwrites the counters and the holder of a row, as a person with SQL could.
    async fn tamper(&self, job: JobId, tampering: &Tampering);
}

/// A row as another language may write it.
#[derive(Debug, Clone)]
pub struct RawRow {
    /// The queue.
    pub queue: String,
    /// Any text.
    pub kind: String,
    /// Any text.
    pub version: String,
    /// Any text or nothing.
    pub min_reader: Option<String>,
    /// Any text that the schema's payload column takes.
    pub payload: String,
}

/// What a person with SQL could do to a row.
#[derive(Debug, Clone, Copy)]
pub enum Tampering {
    /// Every counter of the row, and its claim number, at its column's maximum.
    FillCounters,
    /// Running, held by nobody.
    RunUnheld,
}
