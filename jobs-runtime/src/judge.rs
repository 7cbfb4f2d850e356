//! One stored job and this build: whether it may run it, from which texts, and what follows from how
//! its handler ended.
//!
//! 1. A job is run only if [`judge`] says so, for its payload and for its checkpoint.
//! 2. What does not decode is dead, except where only a newer writer said that this build can read it.
//! 3. Workers and what applications test with ([`testing`](crate::testing)) ask here, so that they can't
//!    come to different answers.
//!
//! Deliberately absent: anything that waits. Nothing here knows a store or a runtime.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jobs_core::{
    BuildId, ClaimedJob, DecodeError, Ending, Failure, Interruption, OldCheckpoint, Reader,
    Refusal, Retry, Stamp, Verdict, chain, judge,
};

use crate::context::Interrupted;
use crate::handler::{Cause, JobError, Outcome};
use crate::registry::{Handled, Handlers, PrepareError, Prepared, StoredText};
use crate::run::Reason;

/// What a build is to a stored job.
pub(crate) struct Build<'a, S> {
    pub(crate) handlers: &'a Handlers<S>,
    pub(crate) label: &'a BuildId,
}

/// A job that this build may read, and how.
pub(crate) struct Judged<'a, S> {
    pub(crate) handled: &'a Handled<S>,
    payload: Reading,
    /// `None`: the run begins anew.
    checkpoint: Option<Reading>,
}

/// How a stored text is read.
#[derive(Clone, Copy)]
struct Reading {
    major: u32,
    /// Only its newer writer says that this build can.
    is_vouched: bool,
}

impl Reading {
    const fn plain(major: u32) -> Self {
        Self { major, is_vouched: false }
    }

    const fn vouched(major: u32) -> Self {
        Self { major, is_vouched: true }
    }
}

/// What a stored job is decoded for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Run,
    Undo,
}

/// A stored text that did not become a value.
pub(crate) struct Unreadable {
    of: Stored,
    class: &'static str,
    pub(crate) text: String,
}

/// What is stored as a versioned text.
#[derive(Clone, Copy)]
enum Stored {
    Payload,
    Checkpoint,
}

impl Unreadable {
    /// What did not decode.
    pub(crate) const fn what(&self) -> &'static str {
        match self.of {
            Stored::Payload => "payload",
            Stored::Checkpoint => "checkpoint",
        }
    }
}

impl<'a, S> Build<'a, S> {
    /// How this build may run a job, or how the job's claim ends instead.
    pub(crate) fn judged(&self, job: &ClaimedJob) -> Result<Judged<'a, S>, Ending> {
        if job.is_expired {
            return Err(Ending::Expired);
        }
        let stamp = Stamp::parse(&job.version, job.min_reader.as_deref())
            .map_err(|error| Ending::MalformedVersion(error.to_string()))?;
        let (reader, handled) = self.handlers.known(&job.kind);
        let payload = match judge(stamp, reader) {
            Verdict::Run => Reading::plain(stamp.version().major),
            Verdict::Upcast { from } => Reading::plain(from),
            Verdict::TolerantRead { from } => Reading::vouched(from),
            Verdict::Retired => return Err(Ending::Retired),
            Verdict::Refuse(refusal) => return Err(self.refused(job, refusal)),
        };
        let handled = handled.ok_or_else(|| self.refused(job, Refusal::UnknownKind))?;
        let checkpoint = self.checkpoint(job, handled)?;
        Ok(Judged { handled, payload, checkpoint })
    }

    /// How the saved checkpoint is read. What is too old is refused like anything else that this build
    /// can't read, unless the job chose to begin anew; what is newer always is.
    fn checkpoint(
        &self,
        job: &ClaimedJob,
        handled: &Handled<S>,
    ) -> Result<Option<Reading>, Ending> {
        let Some(saved) = &job.checkpoint else {
            return Ok(None);
        };
        let stamp = Stamp::parse(&saved.version, saved.min_reader.as_deref())
            .map_err(|error| Ending::MalformedVersion(format!("the checkpoint's {error}")))?;
        if handled.checkpoint_lines.is_empty() {
            return Err(self.refused(job, Refusal::Checkpoint));
        }
        let restarts = handled.policy.on_old_checkpoint == OldCheckpoint::Restart;
        match judge(stamp, Reader::Reads(&handled.checkpoint_lines)) {
            Verdict::Run => Ok(Some(Reading::plain(stamp.version().major))),
            Verdict::Upcast { from } => Ok(Some(Reading::plain(from))),
            Verdict::TolerantRead { from } => Ok(Some(Reading::vouched(from))),
            Verdict::Refuse(Refusal::Older) if restarts => {
                let (id, kind, version) = (job.fence.job.0, &*handled.kind, &*saved.version);
                tracing::info!(job = id, kind, version, "begins anew: its checkpoint is too old");
                Ok(None)
            }
            Verdict::Refuse(_) | Verdict::Retired => Err(self.refused(job, Refusal::Checkpoint)),
        }
    }

    fn refused(&self, job: &ClaimedJob, refusal: Refusal) -> Ending {
        let reads = match self.handlers.handled(&job.kind) {
            None => "this build has no handler for the kind".to_owned(),
            Some(handled) => {
                let lines = match refusal {
                    Refusal::Checkpoint => &handled.checkpoint_lines,
                    Refusal::UnknownKind | Refusal::Newer | Refusal::Older => &handled.lines,
                };
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                if lines.is_empty() {
                    "this build saves none".to_owned()
                } else {
                    format!("this build reads {}", lines.join(" and "))
                }
            }
        };
        let checkpoint = job.checkpoint.as_ref().filter(|_| refusal == Refusal::Checkpoint);
        let (what, version) = match checkpoint {
            Some(checkpoint) => ("checkpoint", &checkpoint.version),
            None => (job.kind.as_str(), &job.version),
        };
        let text = format!("{what} {version}: {reads}");
        Ending::Refused { refusal, build: self.label.to_string(), text }
    }

    /// What does not decode is dead, except that a newer writer who vouched for this build was wrong:
    /// then a newer build may still read it.
    pub(crate) fn unreadable(
        &self,
        job: &ClaimedJob,
        judged: &Judged<'_, S>,
        unreadable: Unreadable,
    ) -> Ending {
        let is_vouched = judged.vouches(&unreadable);
        let Unreadable { of, class, text } = unreadable;
        if !is_vouched {
            return failed_to_decode(class, text);
        }
        let refusal = match of {
            Stored::Payload => Refusal::Newer,
            Stored::Checkpoint => Refusal::Checkpoint,
        };
        self.refused(job, refusal)
    }
}

impl<S> Judged<'_, S> {
    /// Whether the payload or the checkpoint is read only because its newer writer says that this build
    /// can.
    pub(crate) fn is_tolerant(&self) -> bool {
        self.payload.is_vouched || self.checkpoint.is_some_and(|reading| reading.is_vouched)
    }

    /// Whether a newer writer says that this build can read what it can't.
    pub(crate) fn vouches(&self, unreadable: &Unreadable) -> bool {
        match unreadable.of {
            Stored::Payload => self.payload.is_vouched,
            Stored::Checkpoint => self.checkpoint.is_some_and(|reading| reading.is_vouched),
        }
    }

    /// Decodes a job for its run or its undo. Conversions are the application's code, and may panic.
    pub(crate) fn prepare(
        &self,
        job: &ClaimedJob,
        wanted: Wanted,
    ) -> Result<Prepared<S>, Unreadable> {
        let payload = StoredText { major: self.payload.major, text: &job.payload };
        let checkpoint = job.checkpoint.as_ref().zip(self.checkpoint);
        let checkpoint = checkpoint
            .map(|(saved, reading)| StoredText { major: reading.major, text: saved.text.as_str() });
        let erased = &self.handled.erased;
        let decoded = catch_unwind(AssertUnwindSafe(|| match wanted {
            Wanted::Run => erased.prepare(payload, checkpoint),
            Wanted::Undo => erased.prepare_undo(payload, checkpoint),
        }));
        let unreadable = |of, class, text| Unreadable { of, class, text };
        match decoded {
            Ok(Ok(prepared)) => Ok(prepared),
            Ok(Err(PrepareError::Payload(error))) => {
                Err(unreadable(Stored::Payload, class(&error, "malformed_payload"), chain(&error)))
            }
            Ok(Err(PrepareError::Checkpoint(error))) => Err(unreadable(
                Stored::Checkpoint,
                class(&error, "malformed_checkpoint"),
                chain(&error),
            )),
            Ok(Err(PrepareError::CheckpointPanicked(panic))) => {
                Err(unreadable(Stored::Checkpoint, "upcast_failed", panic_text(panic)))
            }
            Err(panic) => Err(unreadable(Stored::Payload, "upcast_failed", panic_text(panic))),
        }
    }
}

fn class(error: &DecodeError, malformed: &'static str) -> &'static str {
    match error {
        DecodeError::Upcast(_) => "upcast_failed",
        _ => malformed,
    }
}

fn failed_to_decode(class: &str, text: String) -> Ending {
    Ending::Unreadable(Failure { class: class.to_owned(), text, retry: Retry::Never })
}

/// How a run ended whose handler returned. An error after it was asked to stop is an interruption,
/// unless it is permanent.
pub(crate) fn returned(result: &Result<Outcome, JobError>, reason: Option<Reason>) -> Ending {
    let error = match result {
        Ok(Outcome::Done) => return Ending::Done,
        Ok(Outcome::Snooze(wait)) => return Ending::Snoozed(*wait),
        Err(error) => error,
    };
    match error.cause() {
        Cause::Interrupted(Interrupted::LeaseLost) => Ending::Interrupted(Interruption::GivenUp),
        Cause::Interrupted(Interrupted::Stopping | Interrupted::Cancelled) => {
            stopped("the handler returned when it was asked to")
        }
        Cause::Infrastructure(text) => Ending::Interrupted(Interruption::Infrastructure(text)),
        Cause::Failed { class, text, retry } => match retry {
            Retry::Ladder | Retry::After(_) if is_asked(reason) => stopped(&text),
            Retry::Ladder | Retry::After(_) | Retry::Never => {
                Ending::Failed(Failure { class, text, retry })
            }
        },
    }
}

/// Whether the handler was asked to return for another reason than its time.
pub(crate) fn is_asked(reason: Option<Reason>) -> bool {
    matches!(reason, Some(Reason::Drain | Reason::Cancel | Reason::Lease))
}

pub(crate) fn stopped(text: &str) -> Ending {
    Ending::Interrupted(Interruption::Stopped(text.to_owned()))
}

/// The text of a panic. The payload's own destructor may panic too; then its text is lost, not the
/// worker.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "non-string panic".to_owned(),
    };
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(panic))) {
        // Dropping this one could panic for ever; it is a leak of one value.
        std::mem::forget(second);
    }
    text
}
