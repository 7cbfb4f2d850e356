//! Saving checkpoints, and how often.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jobs_core::store::{CheckpointSave, Standing};
use jobs_core::{StoreError, Versioned};

use super::{JobContext, unanswered};
use crate::handler::JobError;
use crate::log;
use crate::run::{self, Before, Wrote};
use crate::store::UserTransaction;

/// The largest checkpoint: 64 KiB of JSON text.
pub const MAX_CHECKPOINT_BYTES: usize = 64 * 1024;
/// A checkpoint above this is warned of: it is written again and again.
const LARGE_CHECKPOINT_BYTES: usize = 8 * 1024;

/// The first pause between two tries while the store is away; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// When a run saved, in microseconds of the clock; 0: not yet.
#[derive(Debug, Default)]
pub(super) struct Pace {
    saved_us: AtomicU64,
    written_us: AtomicU64,
}

impl Pace {
    /// Notes a checkpoint; answers how long after the one before it came.
    fn saved(&self, now: Duration) -> Duration {
        since(self.saved_us.swap(micros(now), Ordering::Relaxed), now)
    }

    fn written(&self, now: Duration) {
        self.written_us.store(micros(now), Ordering::Relaxed);
    }

    /// Whether one was written less than `every` ago. The first of a run never waits.
    fn is_early(&self, now: Duration, every: Duration) -> bool {
        let last = self.written_us.load(Ordering::Relaxed);
        last != 0 && since(last, now) < every
    }
}

fn micros(now: Duration) -> u64 {
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// How long ago something was; nothing where it never was.
fn since(then_us: u64, now: Duration) -> Duration {
    match then_us {
        0 => Duration::ZERO,
        then_us => now.saturating_sub(Duration::from_micros(then_us)),
    }
}

impl<S, C: Versioned> JobContext<S, C> {
    /// The checkpoint to resume from, or a first one. Only the first call sees the saved one.
    pub fn resume_or(&mut self, first: C) -> C {
        self.resumed().unwrap_or(first)
    }

    pub(super) fn resumed(&self) -> Option<C> {
        self.resume.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Saves a checkpoint. It is durable when this returns, even where that is an
    /// [`Interrupted`](crate::Interrupted) for a stop or a cancel.
    ///
    /// Where the job has `checkpoint_every`, one that comes sooner than that after the last is kept
    /// in this process, and the answer is what is known here without asking the store. The latest
    /// is written when its time has come, when the handler is asked to return, and when the run
    /// ends, however it does; only a process that is killed loses it.
    ///
    /// While the store is away it tries again, for 22 s of a lease of 30 s and in proportion, or until
    /// the handler is asked to return: a server that restarts interrupts no run.
    ///
    /// # Errors
    /// An [`Interrupted`](crate::Interrupted), to be passed on with `?`; an infrastructure error when
    /// the store could not save it in that time; a permanent one, of the class `checkpoint_too_large`, when it is
    /// larger than [`MAX_CHECKPOINT_BYTES`].
    ///
    /// # Cancel safety
    /// A dropped call has saved it or not, and may still do so: await it before another is saved. If none
    /// is, it is written when the run ends.
    pub async fn checkpoint(&self, at: &C) -> Result<(), JobError> {
        let (save, now) = self.save(at)?;
        let kept = self.parts.signals.kept();
        let every = self.parts.info.of.checkpoint_every;
        let is_early = every.is_some_and(|every| self.pace.is_early(now, every));
        // Also what is written at once: this call may be dropped half-way.
        let earlier = kept.put_off(save.clone());
        if is_early && self.standing_here().is_ok() {
            return Ok(());
        }
        self.parts.signals.note_write(Wrote::Checkpoint);
        match self.saved(&save, now).await {
            Ok(standing) => {
                kept.settle_checkpoint(&save, None);
                self.pace.written(now);
                self.stand(standing)
            }
            Err(error) => {
                // It may be back when the run ends.
                if !error.is_transient() {
                    kept.settle_checkpoint(&save, earlier);
                }
                Err(unanswered(error.into()))
            }
        }
    }

    /// Saves a checkpoint, however often that takes, until the handler is asked to return or the
    /// patience of its worker ends.
    async fn saved(&self, save: &CheckpointSave, begun: Duration) -> Result<Standing, StoreError> {
        let (jobs, board) = (&self.parts.jobs, &self.parts.board);
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match run::save(jobs.store(), save).await {
                Ok(standing) => return Ok(standing),
                Err(error) => error,
            };
            let now = jobs.clock().elapsed();
            let is_over = now.saturating_sub(begun) >= board.patience();
            if is_over || !error.is_transient() || self.is_stopping() {
                return Err(error);
            }
            log::CHECKPOINT.write(now, || {
                let (kind, error) = (&*self.parts.info.of.kind, jobs_core::chain(&error));
                tracing::warn!(kind, error, "can't save a checkpoint; trying again");
            });
            // A stop is answered at once: by one more try, which is the last.
            let _ = tokio::time::timeout(pause, self.stopping()).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    pub(super) async fn save_in<T: UserTransaction>(
        &self,
        tx: &mut T,
        at: &C,
    ) -> Result<Standing, JobError> {
        let (save, _) = self.save(at)?;
        let kept = self.parts.signals.kept();
        let before = if kept.has_undoubted() {
            // Where the store does not say it, what was put off is dropped.
            let record = self.parts.jobs.inspect().job(self.info().id()).await;
            record.ok().map(Before::of)
        } else {
            None
        };
        kept.follow_in_transaction(&save, before);
        self.parts.signals.note_write(Wrote::Checkpoint);
        let standing = self.parts.jobs.backend().checkpoint_in(tx.connection(), &save).await;
        standing.map_err(unanswered)
    }

    /// A checkpoint to be saved, and the time. Warns of what makes stops dear.
    fn save(&self, at: &C) -> Result<(CheckpointSave, Duration), JobError> {
        let text = at.encode().map_err(|error| JobError::from(error).permanent())?;
        let bytes = text.len();
        if bytes > MAX_CHECKPOINT_BYTES {
            let text = format!(
                "the checkpoint has {bytes} bytes, more than the limit of {MAX_CHECKPOINT_BYTES}; \
                 keep the bulk in a table and a reference in the checkpoint"
            );
            return Err(JobError::new(text).class("checkpoint_too_large").permanent());
        }
        let (of, now) = (&self.parts.info.of, self.parts.jobs.clock().elapsed());
        let kind = &*of.kind;
        if bytes > LARGE_CHECKPOINT_BYTES {
            of.large.write(now, || {
                let limit = MAX_CHECKPOINT_BYTES;
                tracing::warn!(kind, bytes, limit, "a checkpoint is large; keep a reference in it");
            });
        }
        let (apart, allowed) = (self.pace.saved(now), self.parts.board.answers_within());
        if apart > allowed {
            of.apart.write(now, || {
                tracing::warn!(
                    kind,
                    ?apart,
                    ?allowed,
                    "two checkpoints lie further apart than a handler has to return when its worker \
                     stops: what came after the last one is then done again"
                );
            });
        }
        let (version, min_reader) = (C::VERSION, C::MIN_READER);
        let keeps_failures = of.keeps_failures;
        let fence = self.fence();
        Ok((CheckpointSave { fence, version, min_reader, text, keeps_failures }, now))
    }
}
