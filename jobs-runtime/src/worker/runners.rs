//! The tasks that runs happen in: made when they are first needed, and used again.
//!
//! 1. A run has a task to itself from its claim to its end, so that a handler which blocks its thread
//!    keeps no other run waiting.
//! 2. A task whose run has ended waits for the next one; as many wait as there are slots, no more.
//! 3. When the claiming has ended, those that wait end at once and the others after their runs.
//!
//! Why not a new task for each run: making it was a quarter of the processor time that a short run
//! cost outside of the store.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::poll;
use jobs_core::ClaimedJob;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::dispatch::dispatch;
use super::ledger::Entry;
use super::shared::Shared;

/// What a runner is given.
type Start = (ClaimedJob, Entry);

/// The runners of one worker. Dropped, it starts nothing more.
pub(super) struct Runners<S> {
    shared: Arc<Shared<S>>,
    bench: Arc<Bench>,
    tasks: TaskTracker,
}

/// Where runners wait.
struct Bench {
    most: usize,
    /// `None`: nothing is started any more.
    waiting: Mutex<Option<Vec<Arc<Seat>>>>,
}

/// One runner's place.
#[derive(Default)]
struct Seat {
    given: Mutex<Option<Start>>,
    called: Notify,
}

impl<S: Clone + Send + Sync + 'static> Runners<S> {
    pub(super) fn new(shared: &Arc<Shared<S>>) -> Self {
        let most = shared.settings.concurrency;
        let waiting = Mutex::new(Some(Vec::new()));
        let bench = Arc::new(Bench { most, waiting });
        Self { shared: shared.clone(), bench, tasks: TaskTracker::new() }
    }

    /// Starts a run.
    pub(super) fn start(&self, job: ClaimedJob, entry: Entry) {
        let waiting = self.bench.waiting().as_mut().and_then(Vec::pop);
        match waiting {
            Some(seat) => seat.call(Some((job, entry))),
            None => {
                self.tasks.spawn(serve(self.shared.clone(), self.bench.clone(), job, entry));
            }
        }
    }
}

impl<S> Drop for Runners<S> {
    fn drop(&mut self) {
        let waiting = self.bench.waiting().take();
        waiting.into_iter().flatten().for_each(|seat| seat.call(None));
    }
}

/// Makes one run after another, the first of them this.
async fn serve<S>(shared: Arc<Shared<S>>, bench: Arc<Bench>, job: ClaimedJob, entry: Entry)
where
    S: Clone + Send + Sync + 'static,
{
    let seat = Arc::new(Seat::default());
    let mut given = Some((job, entry));
    while let Some((job, entry)) = given {
        {
            let mut run = pin!(dispatch(&shared, &job, &entry));
            let is_over = poll!(&mut run).is_ready();
            shared.starts.had_turn();
            if !is_over {
                run.await;
            }
        }
        drop((job, entry));
        if !bench.take(&seat) {
            return;
        }
        seat.called.notified().await;
        given = seat.given().take();
    }
}

impl Bench {
    fn waiting(&self) -> MutexGuard<'_, Option<Vec<Arc<Seat>>>> {
        // A poisoned one is whole: no method panics between two changes.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a runner that waits from now on, where it is still of use.
    fn take(&self, seat: &Arc<Seat>) -> bool {
        match self.waiting().as_mut() {
            Some(waiting) if waiting.len() < self.most => {
                waiting.push(seat.clone());
                true
            }
            Some(_) | None => false,
        }
    }
}

impl Seat {
    fn given(&self) -> MutexGuard<'_, Option<Start>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the runner that sits here, with its next run or to end.
    fn call(&self, given: Option<Start>) {
        *self.given() = given;
        self.called.notify_one();
    }
}
