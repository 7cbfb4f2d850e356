//! What a handler has said and the store does not have yet.
//!
//! 1. Nothing is made for a handler that says nothing.
//! 2. It outlives the handler's future: whatever ends a run, what was put off can still be written.
//! 3. A checkpoint that was put off never follows a later one: whoever saves another takes it away
//!    before.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use jobs_core::Notes;
use jobs_core::store::CheckpointSave;

/// What was said and not written.
#[derive(Debug, Default)]
pub(crate) struct Kept(OnceLock<Box<Mutex<Said>>>);

#[derive(Debug, Default)]
struct Said {
    checkpoint: Option<CheckpointSave>,
    progress: Option<String>,
    result: Option<String>,
}

impl Kept {
    fn said(&self) -> MutexGuard<'_, Said> {
        // A poisoned one is whole: no method panics between two changes.
        self.0.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// Keeps a checkpoint for later, in place of an earlier one.
    pub(crate) fn put_off(&self, save: CheckpointSave) {
        self.said().checkpoint = Some(save);
    }

    /// Takes the checkpoint that was put off.
    pub(crate) fn take_checkpoint(&self) -> Option<CheckpointSave> {
        if self.is_empty() { None } else { self.said().checkpoint.take() }
    }

    /// Keeps a progress text; answers whether none was kept before.
    pub(crate) fn tell(&self, text: String) -> bool {
        self.said().progress.replace(text).is_none()
    }

    /// The progress that is to be written, if still any.
    pub(crate) fn progress(&self) -> Option<String> {
        if self.is_empty() { None } else { self.said().progress.clone() }
    }

    /// Notes that a progress text was written; answers whether a later one is kept.
    pub(crate) fn told(&self, text: &str) -> bool {
        let mut said = self.said();
        if said.progress.as_deref() == Some(text) {
            said.progress = None;
        }
        said.progress.is_some()
    }

    /// Keeps the result of the run.
    pub(crate) fn keep_result(&self, result: String) {
        self.said().result = Some(result);
    }

    /// What a finish within a transaction writes. It stays, since the transaction may be undone.
    pub(crate) fn notes(&self) -> Notes {
        if self.is_empty() {
            return Notes::default();
        }
        let said = self.said();
        Notes { progress: said.progress.clone(), result: said.result.clone() }
    }

    /// What the settlement writes.
    pub(crate) fn take_notes(&self) -> Notes {
        if self.is_empty() {
            return Notes::default();
        }
        let mut said = self.said();
        Notes { progress: said.progress.take(), result: said.result.take() }
    }
}
