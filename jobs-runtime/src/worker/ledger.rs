//! The runs that this process holds, from the claim's answer to the settlement's.
//!
//! 1. A run is in the ledger from before its handler starts until its settlement was answered.
//! 2. A slot is free when its handler has really ended; at most one concurrency's worth of
//!    settlements waits, then claims wait for them.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_core::store::Held;
use jobs_core::{Fence, JobId};
use tokio::sync::Notify;

use crate::run::{Reason, RunSignals, Wrote};

/// A run that this process holds.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) kind: Arc<str>,
    pub(crate) signals: Arc<RunSignals>,
    /// Which answer to a claim it came with, counted from 1.
    answer: u64,
    /// Whether the latest audit asked the handler to return for a person's cancel.
    is_cancel_told: bool,
}

#[derive(Debug, Default)]
struct Book {
    /// By fence: the store may give a job out again while this process still runs it under an older
    /// claim, and then both hold a slot until they have really ended.
    entries: HashMap<Fence, Entry>,
    /// Fences that the store holds and this process doesn't know, at the latest audit.
    strays: Vec<Fence>,
}

impl Book {
    fn begin(&mut self, fence: Fence, kind: Arc<str>, answer: u64) -> Entry {
        let entry = Entry { kind, signals: Arc::default(), answer, is_cancel_told: false };
        self.entries.insert(fence, entry.clone());
        entry
    }
}

/// The ledger, shared by the loops of one worker.
#[derive(Debug)]
pub(crate) struct Ledger {
    concurrency: usize,
    book: Mutex<Book>,
    /// How many handlers have not ended.
    running: AtomicUsize,
    changed: Notify,
    claims_sent: AtomicU64,
    claims_answered: AtomicU64,
}

/// How many claims were sent and answered when the store was asked for an audit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    sent: u64,
    answered: u64,
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
            running: AtomicUsize::new(0),
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
        let by_slots = self.concurrency.saturating_sub(self.running());
        let by_settling = (2 * self.concurrency).saturating_sub(self.held());
        by_slots.min(by_settling)
    }

    /// How many runs are held: running, or ended and not settled.
    pub(crate) fn held(&self) -> usize {
        self.book().entries.len()
    }

    /// Whether a run is held.
    pub(crate) fn holds(&self, fence: Fence) -> bool {
        self.book().entries.contains_key(&fence)
    }

    /// How many handlers have not ended.
    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// The runs that are held.
    pub(crate) fn fences(&self) -> Vec<Fence> {
        self.book().entries.keys().copied().collect()
    }

    /// The runs whose handlers have not ended.
    pub(crate) fn running_fences(&self) -> Vec<Fence> {
        let book = self.book();
        let running = book.entries.iter().filter(|(_, entry)| !entry.signals.has_ended());
        running.map(|(fence, _)| *fence).collect()
    }

    /// Takes out the runs that were not begun, and never will be from now on: they waited for a thread.
    pub(crate) fn withdraw(&self) {
        let mut book = self.book();
        book.entries.retain(|_, entry| {
            let is_withdrawn = !entry.signals.has_ended() && entry.signals.begin();
            if is_withdrawn && entry.signals.end() {
                self.running.fetch_sub(1, Ordering::SeqCst);
            }
            !is_withdrawn
        });
    }

    /// Waits until something ended or was settled since the last return.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes in runs that begin now: what one claim gave, whose answer is not yet counted.
    pub(crate) fn begin(&self, runs: impl Iterator<Item = (Fence, Arc<str>)>) -> Vec<Entry> {
        let mut book = self.book();
        let answer = self.claims_answered.load(Ordering::SeqCst) + 1;
        let entries: Vec<Entry> =
            runs.map(|(fence, kind)| book.begin(fence, kind, answer)).collect();
        self.running.fetch_add(entries.len(), Ordering::SeqCst);
        entries
    }

    /// The handler has really ended: its slot is free.
    pub(crate) fn ended(&self, entry: &Entry) {
        if entry.signals.end() {
            self.running.fetch_sub(1, Ordering::SeqCst);
        }
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// The settlements of these runs were answered.
    pub(crate) fn settled(&self, fences: impl Iterator<Item = Fence>) {
        let mut book = self.book();
        for fence in fences {
            if let MapEntry::Occupied(entry) = book.entries.entry(fence)
                && entry.get().signals.has_ended()
            {
                entry.remove();
            }
        }
        drop(book);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Asks every running handler to return; one that a drain lets finish, only for another reason.
    pub(crate) fn ask_all(&self, reason: Reason) {
        for entry in self.book().entries.values() {
            if reason != Reason::Drain || !entry.signals.finishes() {
                entry.signals.ask(reason);
            }
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

    /// What to note before the store is asked for an audit.
    pub(crate) fn asked(&self) -> Asked {
        // Answered first: a claim that is answered in between then counts as unanswered.
        let answered = self.claims_answered.load(Ordering::SeqCst);
        Asked { sent: self.claims_sent.load(Ordering::SeqCst), answered }
    }

    /// Compares what the store says this worker holds with what it does hold. `asked` is what
    /// [`asked`](Self::asked) said before the store was.
    ///
    /// 1. A run that the store holds and nobody here knows is a stray at two audits in a row, unless
    ///    a claim that was sent before the store was asked is still unanswered: it may be of that.
    /// 2. A run that nobody there knows is lost, unless its claim was answered after the store was
    ///    asked, or its settlement may be on the wire, or the handler wrote its success itself: then
    ///    that was committed, most likely, and the handler may go on with something else.
    pub(crate) fn audit(&self, held: &[Held], asked: Asked) -> Findings {
        let are_answered = self.claims_answered.load(Ordering::SeqCst) >= asked.sent;
        let mut guard = self.book();
        let book = &mut *guard;
        let mut findings = Findings::default();
        let mut strays = Vec::new();
        for run in held {
            match book.entries.get_mut(&run.fence) {
                Some(entry) if run.is_cancel_requested => tell_cancel(entry),
                Some(_) => {}
                None if !are_answered => {}
                None if book.strays.contains(&run.fence) => findings.strays.push(run.fence),
                None => strays.push(run.fence),
            }
        }
        let held: HashSet<Fence> = held.iter().map(|run| run.fence).collect();
        for (fence, entry) in &book.entries {
            let is_old = entry.answer <= asked.answered;
            let may_be_done = entry.signals.wrote() == Wrote::Success;
            if !entry.signals.has_ended() && is_old && !may_be_done && !held.contains(fence) {
                entry.signals.ask(Reason::Lease);
                entry.signals.aborted().cancel();
                findings.lost.push(fence.job);
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
        let blocked = book.entries.iter().filter_map(|(fence, entry)| {
            let span = entry.signals.blocks_for(now);
            (!entry.signals.has_ended() && span > limit)
                .then(|| (fence.job, entry.kind.clone(), span))
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
