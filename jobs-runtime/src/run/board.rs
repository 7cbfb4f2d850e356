//! Where handlers hand in how far they have come, for the worker to write.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jobs_core::Fence;
use tokio::sync::Notify;

use super::RunSignals;

/// What the runs of one worker share with it.
#[derive(Debug)]
pub(crate) struct Board {
    /// How long a handler has to return once it is asked to, before it is aborted.
    answers_within: Duration,
    /// For how long a checkpoint is tried again that the store does not take: what is left of a lease
    /// when its worker asks the handlers to stop is for aborting them.
    patience: Duration,
    /// The runs that have told something since it was last written, each once.
    told: Mutex<Vec<(Fence, Arc<RunSignals>)>>,
    news: Notify,
}

impl Board {
    pub(crate) fn new(answers_within: Duration, patience: Duration) -> Self {
        Self { answers_within, patience, told: Mutex::default(), news: Notify::new() }
    }

    pub(crate) fn answers_within(&self) -> Duration {
        self.answers_within
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// A run has progress to be written.
    pub(crate) fn put(&self, fence: Fence, signals: Arc<RunSignals>) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push((fence, signals));
        self.news.notify_one();
    }

    /// Takes the runs that have progress to be written.
    pub(crate) fn take(&self) -> Vec<(Fence, Arc<RunSignals>)> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until a run was put there since the last return.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }
}
