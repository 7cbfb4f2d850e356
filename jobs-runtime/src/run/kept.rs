//! What a handler has said and the store does not have yet.
//!
//! 1. Nothing is made for a handler that says nothing.
//! 2. It outlives the handler's future: whatever ends a run, what was put off can still be written.
//! 3. A checkpoint that was put off never follows a later one: it goes when another is put off or
//!    saved. Where a transaction of the application saves the later one, nobody here hears whether that
//!    was committed: the earlier one stays, with what the store had before, and the row decides.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use jobs_core::store::CheckpointSave;
use jobs_core::{JobRecord, Notes};

/// What was said and not written.
#[derive(Debug, Default)]
pub(crate) struct Kept(OnceLock<Box<Mutex<Said>>>);

/// A checkpoint that was put off.
#[derive(Debug)]
pub(crate) struct PutOff {
    pub(crate) save: CheckpointSave,
    /// What the store had before a transaction of the application saved a later one, if any did.
    pub(crate) before: Option<Before>,
}

/// The checkpoint of a row: its number, 0 where there is none, and its text.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) number: i64,
    pub(crate) text: Option<String>,
}

impl Before {
    pub(crate) fn of(record: Option<JobRecord>) -> Self {
        let saved = record.and_then(|record| record.checkpoint);
        let number = saved.as_ref().map_or(0, |saved| saved.number);
        Self { number, text: saved.map(|saved| saved.text) }
    }
}

#[derive(Debug, Default)]
struct Said {
    checkpoint: Option<PutOff>,
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

    /// Keeps a checkpoint for later, in place of an earlier one, which it answers.
    pub(crate) fn put_off(&self, save: CheckpointSave) -> Option<PutOff> {
        self.said().checkpoint.replace(PutOff { save, before: None })
    }

    /// Keeps a checkpoint that was taken.
    pub(crate) fn keep(&self, put_off: PutOff) {
        self.said().checkpoint = Some(put_off);
    }

    /// Takes the checkpoint that was put off.
    pub(crate) fn take_checkpoint(&self) -> Option<PutOff> {
        if self.is_empty() { None } else { self.said().checkpoint.take() }
    }

    /// A checkpoint has been saved, or never will be, and the earlier one is due again.
    pub(crate) fn settle_checkpoint(&self, save: &CheckpointSave, earlier: Option<PutOff>) {
        let mut said = self.said();
        // Another one that was put off meanwhile stays.
        if said.checkpoint.as_ref().is_some_and(|put_off| put_off.save == *save) {
            said.checkpoint = earlier;
        }
    }

    /// Whether a checkpoint was put off that no transaction has followed yet.
    pub(crate) fn has_undoubted(&self) -> bool {
        !self.is_empty()
            && self.said().checkpoint.as_ref().is_some_and(|put_off| put_off.before.is_none())
    }

    /// A transaction of the application saves a later checkpoint than the one that was put off, and may
    /// come to nothing. `before` is what the store has, where it was to be asked.
    pub(crate) fn follow_in_transaction(&self, later: &CheckpointSave, before: Option<Before>) {
        if self.is_empty() {
            return;
        }
        let mut said = self.said();
        let Some(put_off) = &mut said.checkpoint else { return };
        if put_off.before.is_none() {
            put_off.before = before;
        }
        // One that looks like the stored one moves nothing: the row could not tell of its commit.
        let can_tell =
            put_off.before.as_ref().is_some_and(|it| it.text.as_ref() != Some(&later.text));
        if !can_tell {
            said.checkpoint = None;
        }
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
