//! The tasks that runs happen in: made when they are first needed, and used again.
//!
//! 1. A run has a task to itself from its first turn to its end; the task then begins the next one.
//! 2. Whoever begins a run and leaves others behind has seen to it that another task comes for them, so
//!    that a handler which blocks its thread keeps no other run waiting while a thread is free. Where that
//!    task is stuck behind such a handler, the watchdog has one more called.
//! 3. A task that finds nothing to begin waits; as many wait as there are slots, no more.
//! 4. When the claiming has ended, those that wait end at once and the others after their runs, and what
//!    was handed over is still begun, unless a drain asks it to return before.
//!
//! Why not a task for each run: waking a thousand of them, each with a state that has left the cache,
//! was a quarter of the processor time that short runs cost outside of the store.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::iter::Zip;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec;

use jobs_core::ClaimedJob;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::dispatch::dispatch;
use super::ledger::Entry;
use super::shared::{Shared, turn};

/// What a runner begins.
type Start = (ClaimedJob, Entry);

/// What one claim gave.
type Starts = Zip<vec::IntoIter<ClaimedJob>, vec::IntoIter<Entry>>;

/// The runners of one worker. Dropped, it takes nothing more.
pub(super) struct Runners<S: Clone + Send + Sync + 'static>(Arc<Bench<S>>);

/// Where runners wait, and find what they begin.
struct Bench<S> {
    shared: Arc<Shared<S>>,
    /// How many runners are called for what a claim gave: as many as the runtime has threads.
    threads: usize,
    book: Mutex<Book>,
    called: Notify,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Book {
    /// What is to be begun; none of them is empty.
    claims: VecDeque<Starts>,
    /// How many runners wait.
    sitting: usize,
    /// How many were called, and have not come yet.
    coming: usize,
    is_closed: bool,
}

impl Book {
    fn next(&mut self) -> Option<Start> {
        let claim = self.claims.front_mut()?;
        let start = claim.next();
        if claim.len() == 0 {
            self.claims.pop_front();
        }
        start
    }
}

impl<S: Clone + Send + Sync + 'static> Runners<S> {
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new(shared: &Arc<Shared<S>>) -> Self {
        let threads = Handle::current().metrics().num_workers();
        let (shared, book) = (shared.clone(), Mutex::default());
        let (called, tasks) = (Notify::new(), TaskTracker::new());
        let bench = Arc::new(Bench { shared, threads, book, called, tasks });
        bench.tasks.spawn(help(bench.clone()));
        Self(bench)
    }

    /// Starts runs: these jobs with these entries.
    pub(super) fn start(&self, jobs: Vec<ClaimedJob>, entries: Vec<Entry>) {
        let starts = jobs.into_iter().zip(entries);
        let runs = starts.len();
        if runs > 0 {
            self.0.book().claims.push_back(starts);
        }
        for _ in 0..runs.min(self.0.threads) {
            self.0.call();
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Drop for Runners<S> {
    fn drop(&mut self) {
        let mut book = self.0.book();
        book.is_closed = true;
        // All of them are woken.
        book.sitting = 0;
        drop(book);
        self.0.called.notify_waiters();
    }
}

/// Answers the watchdog, which has a thread of its own, when a handler blocks one of the runtime.
///
/// 1. Runners that should come may wait behind that handler, where no other thread can take them: one more
///    is called.
/// 2. One thread of a runtime waits for sockets and timers for all. Where it is that one, and the others sleep,
///    nothing that is answered and no timer wakes anyone: the thread that runs this waits for them next.
async fn help<S>(bench: Arc<Bench<S>>)
where
    S: Clone + Send + Sync + 'static,
{
    loop {
        tokio::select! {
            biased;
            () = bench.shared.over.cancelled() => return,
            () = bench.shared.nudged.notified() => bench.hand_over(),
        }
    }
}

/// Begins one run after another, as long as there are any, and waits for more.
async fn serve<S>(bench: Arc<Bench<S>>)
where
    S: Clone + Send + Sync + 'static,
{
    loop {
        let mut next = bench.arrive();
        while let Some((job, entry)) = next {
            {
                let mut run = pin!(dispatch(&bench.shared, &job, &entry));
                let mut has_had_turn = false;
                // One poll a turn: what the first woke is polled before the next may block this thread.
                poll_fn(|cx| {
                    let polled = run.as_mut().poll(cx);
                    if !std::mem::replace(&mut has_had_turn, true) {
                        bench.shared.starts.had_turn();
                        if polled.is_pending() {
                            bench.hand_over();
                        }
                    }
                    polled
                })
                .await;
            }
            drop((job, entry));
            next = bench.next();
            if next.is_some() {
                // What the run woke is polled before the next one may block this thread.
                turn().await;
            }
        }
        let mut called = pin!(bench.called.notified());
        {
            let mut book = bench.book();
            if book.is_closed || book.sitting >= bench.shared.settings.concurrency {
                return;
            }
            // From here on it hears of a call: whoever counts it as sitting reaches it.
            called.as_mut().enable();
            book.sitting += 1;
        }
        called.await;
    }
}

impl<S: Clone + Send + Sync + 'static> Bench<S> {
    fn book(&self) -> MutexGuard<'_, Book> {
        // A poisoned one is whole: no method panics between two changes.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one more runner come: one that waits, or a new one.
    fn call(self: &Arc<Self>) {
        let mut book = self.book();
        book.coming += 1;
        let is_one_sitting = book.sitting > 0;
        book.sitting = book.sitting.saturating_sub(1);
        drop(book);
        if is_one_sitting {
            // The one that sat down last: its state is still in the cache.
            self.called.notify_last();
        } else {
            self.tasks.spawn(serve(self.clone()));
        }
    }

    /// A runner that was called has come: answers what it begins.
    fn arrive(self: &Arc<Self>) -> Option<Start> {
        let mut book = self.book();
        book.coming = book.coming.saturating_sub(1);
        drop(book);
        self.next()
    }

    /// What a runner begins next. Another is on its way to what it leaves behind.
    fn next(self: &Arc<Self>) -> Option<Start> {
        let mut book = self.book();
        let start = book.next();
        let is_left_alone = !book.claims.is_empty() && book.coming == 0;
        drop(book);
        if is_left_alone {
            self.call();
        }
        start
    }

    /// A runner is about to wait for its run: another begins what it leaves behind. One that is on its
    /// way already does not count, since it may be stuck behind a handler that blocks its thread.
    fn hand_over(self: &Arc<Self>) {
        if !self.book().claims.is_empty() {
            self.call();
        }
    }
}
