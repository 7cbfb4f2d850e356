//! The runs that this process holds, from the claim's answer to the settlement's.
//!
//! 1. A run is in the ledger from before its handler starts until its settlement was answered.
//! 2. A slot is free when its handler has really ended; at most one concurrency's worth of
//!    settlements waits, then claims wait for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_core::store::Held;
use jobs_core::{ClaimNumber, Fence, JobId};
use tokio::sync::Notify;

use crate::run::{Reason, RunSignals};

/// A run that this process holds.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) kind: Arc<str>,
    pub(crate) signals: Arc<RunSignals>,
    claim: ClaimNumber,
    stage: Stage,
    /// Whether the latest audit asked the handler to return for a person's cancel.
    is_cancel_told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Settling,
}

#[derive(Debug, Default)]
struct Book {
    entries: HashMap<JobId, Entry>,
    running: usize,
    /// Fences that the store holds and this process doesn't know, at the latest audit.
    strays: Vec<Fence>,
}

impl Book {
    fn begin(&mut self, fence: Fence, kind: Arc<str>) -> Entry {
        let entry = Entry {
            kind,
            signals: Arc::default(),
            claim: fence.claim,
            stage: Stage::Running,
            is_cancel_told: false,
        };
        self.running += 1;
        let before = self.entries.insert(fence.job, entry.clone());
        if before.is_some_and(|before| before.stage == Stage::Running) {
            // The store gave the job out again while this process still ran it: the older run lost
            // its claim, and its slot is freed when it ends.
            self.running -= 1;
        }
        entry
    }
}

/// The ledger, shared by the loops of one worker.
#[derive(Debug)]
pub(crate) struct Ledger {
    concurrency: usize,
    book: Mutex<Book>,
    changed: Notify,
    claims_sent: AtomicU64,
    claims_answered: AtomicU64,
}

/// What an audit found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Held by the store, unknown here at two audits: give them back.
    pub(crate) strays: Vec<Fence>,
    /// Running here, not held by the store: they were aborted.
    pub(crate) lost: Vec<JobId>,
}

impl Ledger {
    pub(crate) fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            book: Mutex::default(),
            changed: Notify::new(),
            claims_sent: AtomicU64::new(0),
            claims_answered: AtomicU64::new(0),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // A poisoned book is whole: no method panics between two of its changes.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many jobs may be claimed now.
    pub(crate) fn free(&self) -> usize {
        let book = self.book();
        let by_slots = self.concurrency.saturating_sub(book.running);
        let by_settling = (2 * self.concurrency).saturating_sub(book.entries.len());
        by_slots.min(by_settling)
    }

    /// How many runs are held: running, or ended and not settled.
    pub(crate) fn held(&self) -> usize {
        self.book().entries.len()
    }

    /// How many handlers have not ended.
    #[cfg(test)]
    fn running(&self) -> usize {
        self.book().running
    }

    /// The runs whose handlers have not ended.
    pub(crate) fn running_fences(&self) -> Vec<Fence> {
        let book = self.book();
        let running = book.entries.iter().filter(|(_, entry)| entry.stage == Stage::Running);
        running.map(|(job, entry)| Fence { job: *job, claim: entry.claim }).collect()
    }

    /// Waits until something ended or was settled since the last return.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes in runs that begin now.
    pub(crate) fn begin(&self, runs: impl Iterator<Item = (Fence, Arc<str>)>) -> Vec<Entry> {
        let mut book = self.book();
        runs.map(|(fence, kind)| book.begin(fence, kind)).collect()
    }

    /// The handler has really ended: its slot is free.
    pub(crate) fn ended(&self, fence: Fence) {
        let mut book = self.book();
        if let Some(entry) = book.entries.get_mut(&fence.job)
            && entry.claim == fence.claim
            && entry.stage == Stage::Running
        {
            entry.stage = Stage::Settling;
            book.running -= 1;
        }
        drop(book);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// The settlements of these runs were answered.
    pub(crate) fn settled(&self, fences: impl Iterator<Item = Fence>) {
        let mut book = self.book();
        for fence in fences {
            if book.entries.get(&fence.job).is_some_and(|entry| entry.claim == fence.claim) {
                book.entries.remove(&fence.job);
            }
        }
        drop(book);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Asks every running handler to return.
    pub(crate) fn ask_all(&self, reason: Reason) {
        for entry in self.book().entries.values() {
            entry.signals.ask(reason);
        }
    }

    /// Aborts every running handler.
    pub(crate) fn abort_all(&self, reason: Reason) {
        for entry in self.book().entries.values() {
            entry.signals.ask(reason);
            entry.signals.aborted().cancel();
        }
    }

    pub(crate) fn claim_sent(&self) {
        self.claims_sent.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn claim_answered(&self) {
        self.claims_answered.fetch_add(1, Ordering::SeqCst);
    }

    /// How many claims were sent so far; an audit notes it before it asks the store.
    pub(crate) fn claims_sent(&self) -> u64 {
        self.claims_sent.load(Ordering::SeqCst)
    }

    /// Compares what the store says this worker holds with what it does hold. `claims_sent` is what
    /// [`claims_sent`](Self::claims_sent) said before the store was asked.
    pub(crate) fn audit(&self, held: &[Held], claims_sent: u64) -> Findings {
        let are_claims_answered = self.claims_answered.load(Ordering::SeqCst) >= claims_sent;
        let mut book = self.book();
        let mut findings = Findings::default();
        let mut strays = Vec::new();
        for run in held {
            match book.entries.get_mut(&run.fence.job) {
                Some(entry) if entry.claim == run.fence.claim => {
                    if run.is_cancel_requested {
                        tell_cancel(entry);
                    }
                }
                Some(_) | None if are_claims_answered => {
                    if book.strays.contains(&run.fence) {
                        findings.strays.push(run.fence);
                    } else {
                        strays.push(run.fence);
                    }
                }
                Some(_) | None => {}
            }
        }
        let is_held = |job: &JobId, claim: ClaimNumber| {
            held.binary_search_by_key(job, |run| run.fence.job)
                .is_ok_and(|at| held[at].fence.claim == claim)
        };
        for (job, entry) in &book.entries {
            // A run that began after the store was asked is not yet in its answer, but then a claim
            // was unanswered; one that is being settled may be gone from it already.
            if entry.stage == Stage::Running && are_claims_answered && !is_held(job, entry.claim) {
                entry.signals.ask(Reason::Lease);
                entry.signals.aborted().cancel();
                findings.lost.push(*job);
            }
        }
        book.strays = strays;
        findings
    }

    /// The handlers that have held their thread for longer than `limit`, as (job, kind, how long).
    pub(crate) fn blocking(
        &self,
        now: Duration,
        limit: Duration,
    ) -> Vec<(JobId, Arc<str>, Duration)> {
        let book = self.book();
        let blocked = book.entries.iter().filter_map(|(job, entry)| {
            let span = entry.signals.blocks_for(now);
            (entry.stage == Stage::Running && span > limit)
                .then(|| (*job, entry.kind.clone(), span))
        });
        blocked.collect()
    }
}

/// Asks a handler to return for a person's cancel; at the next audit it is aborted.
fn tell_cancel(entry: &mut Entry) {
    entry.signals.ask(Reason::Cancel);
    if entry.is_cancel_told {
        entry.signals.aborted().cancel();
    }
    entry.is_cancel_told = true;
}

#[cfg(test)]
mod tests;
