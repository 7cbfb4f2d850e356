//! One job from its claim to how it ended: judge, decode, call, and catch whatever comes out.
//!
//! 1. A job is run only if [`judge`] says so; the claim's route only narrowed the choice.
//! 2. Every end becomes an [`Ending`]: no panic leaves here, and no handler is forgotten.
//! 3. A slot is freed when the handler's future is gone, dropped included.

mod undo;

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jobs_core::{
    ClaimedJob, Clock, DecodeError, Ending, Failure, Fence, Interruption, OldCheckpoint, OnStop,
    QueueName, Reader, Refusal, Retry, Stamp, Verdict, chain, judge,
};
use tracing::Instrument;

use super::flush::flush;
use super::ledger::Entry;
use super::settle::Ended;
use super::shared::Shared;
use crate::context::{Interrupted, Parts};
use crate::handler::{Cause, JobError, Outcome};
use crate::log;
use crate::registry::{Handled, Next, PrepareError, Prepared, StoredText};
use crate::run::{Reason, RunInfo, RunSignals};
use crate::trace::{self, TraceContext};

type HandlerResult = Result<Outcome, JobError>;

/// Runs one claimed job to its end and hands the end to the settler.
pub(super) async fn dispatch<S>(shared: Arc<Shared<S>>, job: ClaimedJob, entry: Entry)
where
    S: Clone + Send + Sync + 'static,
{
    // Also if this is dropped half-way: a slot must not be lost with it.
    let slot = Slot { shared: &shared, fence: job.fence, queue: &job.queue };
    let ending = match judged(&shared, &job) {
        Err(ending) => ending,
        Ok(judged) => run(&shared, &job, &judged, &entry).await,
    };
    drop(slot);
    flush(&shared, &entry).await;
    let ended = Ended::of_run(&job, ending, &entry.signals);
    // The settler outlives every dispatch; without it the process is going down, and the claim is
    // given back by the close or the sweep.
    drop(shared.ended.send(ended));
}

/// Frees the slot of a run when it is dropped.
struct Slot<'a, S> {
    shared: &'a Shared<S>,
    fence: Fence,
    queue: &'a QueueName,
}

impl<S> Drop for Slot<'_, S> {
    fn drop(&mut self) {
        self.shared.running.end(self.queue);
        self.shared.ledger.ended(self.fence);
    }
}

/// A job that this build may read, and how.
struct Judged<'a, S> {
    handled: &'a Handled<S>,
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

fn judged<'a, S>(shared: &'a Shared<S>, job: &ClaimedJob) -> Result<Judged<'a, S>, Ending> {
    if job.is_expired {
        return Err(Ending::Expired);
    }
    let stamp = Stamp::parse(&job.version, job.min_reader.as_deref())
        .map_err(|error| Ending::MalformedVersion(error.to_string()))?;
    let payload = match judge(stamp, shared.handlers.reader(&job.kind)) {
        Verdict::Run => Reading::plain(stamp.version().major),
        Verdict::Upcast { from } => Reading::plain(from),
        Verdict::TolerantRead { from } => {
            shared.meters.tolerated(&job.kind);
            Reading::vouched(from)
        }
        Verdict::Retired => return Err(Ending::Retired),
        Verdict::Refuse(refusal) => return Err(refused(shared, job, refusal)),
    };
    let handled = shared.handlers.handled(&job.kind);
    let handled = handled.ok_or_else(|| refused(shared, job, Refusal::UnknownKind))?;
    let checkpoint = checkpoint(shared, job, handled)?;
    Ok(Judged { handled, payload, checkpoint })
}

/// How the saved checkpoint is read. What is too old is refused like anything else that this build
/// can't read, unless the job chose to begin anew; what is newer always is.
fn checkpoint<S>(
    shared: &Shared<S>,
    job: &ClaimedJob,
    handled: &Handled<S>,
) -> Result<Option<Reading>, Ending> {
    let Some(saved) = &job.checkpoint else {
        return Ok(None);
    };
    let stamp = Stamp::parse(&saved.version, saved.min_reader.as_deref())
        .map_err(|error| Ending::MalformedVersion(format!("the checkpoint's {error}")))?;
    if handled.checkpoint_lines.is_empty() {
        return Err(refused(shared, job, Refusal::Checkpoint));
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
        Verdict::Refuse(_) | Verdict::Retired => Err(refused(shared, job, Refusal::Checkpoint)),
    }
}

fn refused<S>(shared: &Shared<S>, job: &ClaimedJob, refusal: Refusal) -> Ending {
    let reads = match shared.handlers.handled(&job.kind) {
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
    let build = shared.jobs.build().to_string();
    Ending::Refused { refusal, build, text: format!("{what} {version}: {reads}") }
}

async fn run<S>(
    shared: &Arc<Shared<S>>,
    job: &ClaimedJob,
    judged: &Judged<'_, S>,
    entry: &Entry,
) -> Ending
where
    S: Clone + Send + Sync + 'static,
{
    let prepared = match prepare(job, judged, Wanted::Run) {
        Ok(prepared) => prepared,
        Err(error) => return unreadable(shared, job, judged, error),
    };
    let timeout = judged.handled.policy.timeout;
    if matches!(judged.handled.policy.on_stop, OnStop::Finish | OnStop::AtMostOnce) {
        entry.signals.let_finish();
    }
    let info = Arc::new(info(job, judged.handled, timeout));
    let parts = Parts {
        jobs: shared.jobs.clone(),
        info: info.clone(),
        signals: entry.signals.clone(),
        board: shared.board.clone(),
    };
    let came_with = trace::of(info.headers());
    let trace = came_with.map(|trace| trace.span(shared.draw()));
    let span = run_span(&info, job, came_with, trace);
    let handler = Watched {
        // Inside the future, so that a panic of the state's `clone` is caught too.
        handler: Box::pin(trace::within(trace, async { wrapped(shared, prepared, parts).await }))
            .instrument(span.clone()),
        clock: shared.jobs.clock().as_ref(),
        signals: &entry.signals,
    };
    let waited = shared.jobs.clock().now().since(job.due_at);
    shared.meters.started(info.kind(), waited);
    let started_at = shared.elapsed();
    let ended = ended_how(handler, timeout, entry).await;
    shared.meters.ended(info.kind(), shared.elapsed().saturating_sub(started_at));
    entry.signals.end_spawned().await;
    let ending = span.in_scope(|| ending(ended, entry, timeout));
    match judged.handled.policy.on_stop {
        OnStop::Undo => undo::undone(shared, job, entry, ending).instrument(span).await,
        _ => ending,
    }
}

/// The span of a run, in the trace that its job came with.
fn run_span(
    info: &RunInfo,
    job: &ClaimedJob,
    came_with: Option<TraceContext>,
    own: Option<TraceContext>,
) -> tracing::Span {
    let span = tracing::info_span!(
        "job",
        id = job.fence.job.0,
        kind = %info.kind(),
        claim = job.fence.claim.0,
        trace_id = tracing::field::Empty,
        parent_id = tracing::field::Empty,
        span_id = tracing::field::Empty,
    );
    if let Some((came_with, own)) = came_with.zip(own) {
        span.record("trace_id", format!("{:032x}", own.trace_id));
        span.record("parent_id", format!("{:016x}", came_with.parent_id));
        span.record("span_id", format!("{:016x}", own.parent_id));
    }
    span
}

async fn limit(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// What a stored job is decoded for.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Run,
    Undo,
}

fn prepare<S>(
    job: &ClaimedJob,
    judged: &Judged<'_, S>,
    wanted: Wanted,
) -> Result<Prepared<S>, Unreadable> {
    let payload = StoredText { major: judged.payload.major, text: &job.payload };
    let checkpoint = job.checkpoint.as_ref().zip(judged.checkpoint);
    let checkpoint = checkpoint
        .map(|(saved, reading)| StoredText { major: reading.major, text: saved.text.as_str() });
    let erased = &judged.handled.erased;
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

fn class(error: &DecodeError, malformed: &'static str) -> &'static str {
    match error {
        DecodeError::Upcast(_) => "upcast_failed",
        _ => malformed,
    }
}

/// A stored text that did not become a value.
struct Unreadable {
    of: Stored,
    class: &'static str,
    text: String,
}

/// What is stored as a versioned text.
#[derive(Clone, Copy)]
enum Stored {
    Payload,
    Checkpoint,
}

/// What does not decode is dead, except that a newer writer who vouched for this build was wrong:
/// then a newer build may still read it.
fn unreadable<S>(
    shared: &Shared<S>,
    job: &ClaimedJob,
    judged: &Judged<'_, S>,
    unreadable: Unreadable,
) -> Ending {
    let Unreadable { of, class, text } = unreadable;
    let (is_vouched, refusal, what) = match of {
        Stored::Payload => (judged.payload.is_vouched, Refusal::Newer, "payload"),
        Stored::Checkpoint => {
            let is_vouched = judged.checkpoint.is_some_and(|reading| reading.is_vouched);
            (is_vouched, Refusal::Checkpoint, "checkpoint")
        }
    };
    if !is_vouched {
        return Ending::Unreadable(Failure { class: class.to_owned(), text, retry: Retry::Never });
    }
    shared.meters.vouched_wrongly();
    log::WRONG_VOUCH.write(shared.elapsed(), || {
        tracing::error!(
            job = job.fence.job.0,
            kind = job.kind,
            version = job.version,
            error = text,
            "a {what} does not decode although its writer vouched for this build's version"
        );
    });
    refused(shared, job, refusal)
}

fn info<S>(job: &ClaimedJob, handled: &Handled<S>, timeout: Option<Duration>) -> RunInfo {
    // Headers are for people and middleware; malformed ones must not fail the job.
    let headers = job.headers.as_deref().and_then(|text| serde_json::from_str(text).ok());
    RunInfo {
        fence: job.fence,
        of: handled.of.clone(),
        queue: job.queue.clone(),
        key_number: job.key_number,
        failures: job.counters.failures,
        interruptions: job.counters.interruptions,
        headers: headers.unwrap_or_default(),
        enqueued_at: job.enqueued_at,
        deadline: timeout.map(crate::clock::instant_in),
    }
}

/// The handler inside its middleware.
fn wrapped<S>(
    shared: &Shared<S>,
    prepared: Prepared<S>,
    parts: Parts,
) -> BoxFuture<'static, HandlerResult>
where
    S: Clone + Send + Sync + 'static,
{
    let info = parts.info.clone();
    let state = shared.state.clone();
    let around = shared.handlers.around();
    let innermost: BoxFuture<'static, HandlerResult> = if around.is_empty() {
        return async move { prepared(state, parts).await }.boxed();
    } else {
        let state = state.clone();
        async move { prepared(state, parts).await }.boxed()
    };
    around.iter().rev().fold(innermost, |rest, around| {
        let (around, state, info) = (around.clone(), state.clone(), info.clone());
        async move { around(state, info, Next::new(rest)).await }.boxed()
    })
}

/// Notes whenever the handler is being polled, so that the watchdog can name one that blocks.
struct Watched<'a, F> {
    handler: F,
    clock: &'a dyn Clock,
    signals: &'a RunSignals,
}

impl<F: Future + Unpin> Future for Watched<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.signals.note_poll(self.clock.elapsed());
        let polled = Pin::new(&mut self.handler).poll(cx);
        self.signals.note_poll(Duration::ZERO);
        polled
    }
}

enum EndedHow {
    Returned(HandlerResult),
    Panicked(String),
    /// The time was up; why the handler had been asked to return before that, if it had.
    TimedOut(Option<Reason>),
    Aborted,
}

/// Polls the handler until it returns, panics, times out or is aborted; its future is gone when
/// this returns.
async fn ended_how<F>(handler: F, timeout: Option<Duration>, entry: &Entry) -> EndedHow
where
    F: Future<Output = HandlerResult> + Send,
{
    let mut handler = Box::pin(AssertUnwindSafe(handler).catch_unwind());
    let ended = tokio::select! {
        biased;
        result = &mut handler => match result {
            Ok(result) => EndedHow::Returned(result),
            Err(panic) => EndedHow::Panicked(panic_text(panic)),
        },
        () = async { entry.signals.aborted().cancelled().await } => EndedHow::Aborted,
        () = limit(timeout) => EndedHow::TimedOut(entry.signals.reason()),
    };
    if let EndedHow::TimedOut(_) = ended {
        entry.signals.ask(Reason::Timeout);
    }
    entry.signals.note_poll(Duration::ZERO);
    match catch_unwind(AssertUnwindSafe(move || drop(handler))) {
        Ok(()) => ended,
        Err(panic) => EndedHow::Panicked(panic_text(panic)),
    }
}

fn ending(ended: EndedHow, entry: &Entry, timeout: Option<Duration>) -> Ending {
    let reason = entry.signals.reason();
    match ended {
        EndedHow::Panicked(text) => failed("panic", text, Retry::Ladder),
        EndedHow::Aborted => match reason {
            Some(Reason::Lease) => Ending::Interrupted(Interruption::GivenUp),
            Some(Reason::Drain | Reason::Cancel | Reason::Timeout) | None => {
                stopped("the handler did not return in time and was aborted")
            }
        },
        EndedHow::TimedOut(asked) if is_asked(asked) => {
            stopped("the run timed out after it was asked to stop")
        }
        EndedHow::TimedOut(_) => {
            let text = format!("the run took longer than {:?}", timeout.unwrap_or_default());
            failed("timeout", text, Retry::Ladder)
        }
        EndedHow::Returned(Ok(Outcome::Done)) => Ending::Done,
        EndedHow::Returned(Ok(Outcome::Snooze(wait))) => Ending::Snoozed(wait),
        EndedHow::Returned(Err(error)) => error_ending(error, reason),
    }
}

/// Whether the handler was asked to return for another reason than its time.
fn is_asked(reason: Option<Reason>) -> bool {
    matches!(reason, Some(Reason::Drain | Reason::Cancel | Reason::Lease))
}

/// An error after the handler was asked to stop is an interruption, unless it is permanent.
fn error_ending(error: JobError, reason: Option<Reason>) -> Ending {
    match error.into_cause() {
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

fn stopped(text: &str) -> Ending {
    Ending::Interrupted(Interruption::Stopped(text.to_owned()))
}

fn failed(class: &str, text: String, retry: Retry) -> Ending {
    Ending::Failed(Failure { class: class.to_owned(), text, retry })
}

/// The text of a panic. The payload's own destructor may panic too; then its text is lost, not the
/// worker.
fn panic_text(panic: Box<dyn Any + Send>) -> String {
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
