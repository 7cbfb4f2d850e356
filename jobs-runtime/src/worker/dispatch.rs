//! One job from its claim to how it ended: judge, decode, call, and catch whatever comes out.
//!
//! 1. A job is run only if [`judge`](mod@crate::judge) says so; the claim's route only narrowed the choice.
//! 2. Every end becomes an [`Ending`]: no panic leaves here, and no handler is forgotten.
//! 3. A slot is freed when the handler's future is gone, dropped included.
//! 4. What waited for a thread until its lease was lost or a drain asked its handler to return is not begun.

mod undo;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use jobs_core::{ClaimedJob, Clock, Ending, Failure, Interruption, OnStop, QueueName, Retry};
use tracing::Instrument;

use super::flush::flush;
use super::ledger::Entry;
use super::settle::Ended;
use super::shared::Shared;
use crate::context::Parts;
use crate::handler::{JobError, Outcome};
use crate::judge::{Judged, Unreadable, Wanted, is_asked, panic_text, returned, stopped};
use crate::log;
use crate::run::{Reason, RunInfo, RunSignals};
use crate::trace::{self, TraceContext};

type HandlerResult = Result<Outcome, JobError>;

/// Runs one claimed job to its end and hands the end to the settler.
pub(super) async fn dispatch<S>(shared: &Arc<Shared<S>>, job: &ClaimedJob, entry: &Entry)
where
    S: Clone + Send + Sync + 'static,
{
    // Also if this is dropped half-way: a slot must not be lost with it.
    let queue = shared.settings.shares.is_some().then_some(&job.queue);
    let slot = Slot { shared, entry, queue };
    // It may have waited for a thread for long.
    let asked = entry.signals.reason();
    if !entry.signals.begin() {
        // The close of its worker has given it back meanwhile.
        return;
    }
    let ending = match shared.build().judged(job) {
        // Another may run it by now.
        _ if asked == Some(Reason::Lease) => Ending::Interrupted(Interruption::GivenUp),
        _ if asked == Some(Reason::Drain) => Ending::Unstarted,
        Err(ending) => ending,
        Ok(judged) => run(shared, job, &judged, entry).await,
    };
    drop(slot);
    flush(shared, entry).await;
    let ended = Ended::of_run(job, ending, entry);
    // The settler outlives every dispatch; without it the process is going down, and the claim is
    // given back by the close or the sweep.
    drop(shared.ended.send(ended));
}

/// Frees the slot of a run when it is dropped.
struct Slot<'a, S> {
    shared: &'a Shared<S>,
    entry: &'a Entry,
    /// Where slots are shared among queues.
    queue: Option<&'a QueueName>,
}

impl<S> Drop for Slot<'_, S> {
    fn drop(&mut self) {
        if let Some(queue) = self.queue {
            self.shared.running.end(queue);
        }
        self.shared.ledger.ended(self.entry);
    }
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
    let prepared = match judged.prepare(job, Wanted::Run) {
        Ok(prepared) => prepared,
        Err(unreadable) => {
            if judged.vouches(&unreadable) {
                tell_wrong_vouch(shared, job, &unreadable);
            }
            return shared.build().unreadable(job, judged, unreadable);
        }
    };
    if judged.is_tolerant() {
        shared.meters.tolerated(&judged.handled.kind);
    }
    let timeout = judged.handled.policy.timeout;
    if matches!(judged.handled.policy.on_stop, OnStop::Finish | OnStop::AtMostOnce) {
        entry.signals.let_finish();
    }
    let info = Arc::new(RunInfo::of(job, judged.handled.of.clone(), timeout));
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
        handler: Box::pin(trace::within(trace, async {
            shared.handlers.wrapped(&shared.state, prepared, parts).await
        }))
        .instrument(span.clone()),
        clock: shared.jobs.clock().as_ref(),
        signals: &entry.signals,
    };
    let meters = shared.meters.of_kind(info.kind());
    meters.started(shared.jobs.clock().now().since(job.due_at));
    let started_at = shared.elapsed();
    let ended = ended_how(handler, timeout, entry).await;
    meters.ended(shared.elapsed().saturating_sub(started_at));
    entry.signals.end_spawned().await;
    let ending = span.in_scope(|| ending(ended, entry, timeout));
    match judged.handled.policy.on_stop {
        OnStop::Undo => {
            // Boxed, as all that is rare: a run is as large as the largest that it may wait for.
            let undone = undo::undone(shared, job, entry, ending).instrument(span);
            Box::pin(undone).await
        }
        _ => ending,
    }
}

/// Says that a newer build vouched for what this one can't read.
fn tell_wrong_vouch<S>(shared: &Shared<S>, job: &ClaimedJob, unreadable: &Unreadable) {
    shared.meters.vouched_wrongly();
    log::WRONG_VOUCH.write(shared.elapsed(), || {
        tracing::error!(
            job = job.fence.job.0,
            kind = job.kind,
            version = job.version,
            error = unreadable.text,
            "a {} does not decode although its writer vouched for this build's version",
            unreadable.what()
        );
    });
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
    match dropped(handler) {
        Ok(()) => ended,
        Err(text) => EndedHow::Panicked(text),
    }
}

/// Drops a future of the application's, whose destructors may panic; answers the text of that.
fn dropped<F>(future: F) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(move || drop(future))).map_err(panic_text)
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
        EndedHow::Returned(result) => returned(&result, reason),
    }
}

fn failed(class: &str, text: String, retry: Retry) -> Ending {
    Ending::Failed(Failure { class: class.to_owned(), text, retry })
}
