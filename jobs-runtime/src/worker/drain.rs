//! Drives the drain: hears the request to stop, and does what the machine says.
//!
//! It runs on the heartbeat's thread, so that handlers which block every other thread can't hold it
//! up: the worker leaves in time, and says in the store which runs it had to abandon.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jobs_core::drain::{Action, Drain, Event, Split};
use jobs_core::store::{Drained, Leaving, Phase};
use jobs_core::{JobId, StoreError, WorkerId};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::exit;
use super::shared::Shared;
use super::{DrainReport, EXIT_UNFINISHED};
use crate::run::Reason;
use crate::signals::Signals;

/// How long a try to close the worker may take, however little time is left.
const SHORTEST_TRY: Duration = Duration::from_millis(100);
/// How soon a close that failed is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// Where the request to stop comes from.
#[derive(Debug)]
pub(super) enum Stop {
    /// SIGTERM and SIGINT. The process is then gone before the grace period ends.
    Signals(Signals),
    /// The application.
    Asked(UnboundedReceiver<()>),
}

impl Stop {
    /// Waits for the next request.
    async fn next(&mut self) {
        match self {
            Self::Signals(signals) => signals.next().await,
            Self::Asked(asked) => match asked.recv().await {
                Some(()) => {}
                None => std::future::pending().await,
            },
        }
    }
}

/// Waits for the stop and drives the drain to its end.
pub(super) async fn drain<S>(shared: &Shared<S>, mut stop: Stop) -> DrainReport {
    let split = Split::of(shared.settings.drain);
    let mut drain = Drain::new(split);
    let mut stopped: Option<Stopped> = None;
    let mut wake_at = Duration::MAX;
    let mut is_intake_open = true;
    let mut told = Drained::default();
    loop {
        let pause = wake_at.saturating_sub(shared.elapsed());
        let event = tokio::select! {
            biased;
            () = stop.next() => Event::Stop,
            () = shared.broken.cancelled(), if stopped.is_none() => Event::Stop,
            () = shared.outdated.cancelled(), if stopped.is_none() => Event::Stop,
            () = shared.intake_ended.cancelled(), if is_intake_open => {
                is_intake_open = false;
                Event::IntakeClosed
            }
            () = shared.ledger.changed(), if stopped.is_some() => Event::Tick,
            () = tokio::time::sleep(pause) => Event::Tick,
        };
        let now = shared.elapsed();
        if event == Event::Stop && stopped.is_none() {
            stopped = Some(Stopped { at: now, before: shared.tally.so_far() });
            if let Stop::Signals(_) = stop {
                exit::arm(shared.jobs.clock().clone(), now + split.exit, EXIT_UNFINISHED);
            }
        }
        if let Some(stopped) = stopped {
            shared.meters.draining(stopped.since(shared, 0), &mut told);
        }
        let mut actions = drain.step(now, Event::Held(shared.ledger.held()));
        actions.extend(drain.step(now, event));
        for action in actions {
            match action {
                Action::Enter(phase) => enter(shared, phase),
                Action::CloseIntake => shared.intake_closed.cancel(),
                Action::AskHandlers => shared.ledger.ask_all(Reason::Drain),
                Action::AbortHandlers => shared.ledger.abort_all(Reason::Drain),
                Action::WakeAt(at) => wake_at = at,
                Action::CloseWorker | Action::Exit => {
                    let nothing = Stopped { at: now, before: Drained::default() };
                    let stopped = stopped.unwrap_or(nothing);
                    let abandoned = close(shared, stopped, split.exit).await;
                    return report(shared, stopped, abandoned, &mut told);
                }
            }
        }
    }
}

/// When the worker was asked to stop, and what it had done until then.
#[derive(Debug, Clone, Copy)]
struct Stopped {
    at: Duration,
    before: Drained,
}

impl Stopped {
    /// What was done since.
    fn since<S>(self, shared: &Shared<S>, abandoned: usize) -> Drained {
        let now = shared.tally.so_far();
        Drained {
            settled: now.settled - self.before.settled,
            interrupted: now.interrupted - self.before.interrupted,
            released: now.released - self.before.released,
            abandoned: u64::try_from(abandoned).unwrap_or(u64::MAX),
            took: shared.elapsed().saturating_sub(self.at),
        }
    }
}

fn enter<S>(shared: &Shared<S>, phase: Phase) {
    let held = shared.ledger.held();
    tracing::info!(phase = phase.as_str(), held, "drain");
    shared.notifier.entered(phase, held);
    shared.tenancy.enter(phase);
}

/// Gives the lease back, and with it whatever the store still says is held here and has ended.
/// Tries until the time is up; then the lease ends by itself. Answers how many runs were abandoned.
async fn close<S>(shared: &Shared<S>, stopped: Stopped, exit: Duration) -> usize {
    let ends_at = stopped.at + exit;
    // What never began is nothing to abandon: the close gives it back as such.
    shared.ledger.withdraw();
    loop {
        let abandoned = shared.ledger.running_fences();
        let count = abandoned.len();
        let Some(worker) = shared.tenancy.to_close() else {
            shared.tenancy.closed();
            return count;
        };
        let left = ends_at.saturating_sub(shared.elapsed());
        let drained = stopped.since(shared, count);
        let known = Some(shared.ledger.fences());
        let leaving = Leaving { abandoned, gone_in: left, known, drained };
        let limit = left.max(SHORTEST_TRY);
        let error = match timeout(limit, leave(shared, worker, &leaving)).await {
            Ok(Ok(())) => {
                shared.tenancy.closed();
                return count;
            }
            Ok(Err(error)) => jobs_core::chain(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        if shared.elapsed() >= ends_at {
            tracing::warn!(error, worker = worker.0, "can't close the worker; its lease will end");
            return count;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn leave<S>(
    shared: &Shared<S>,
    worker: WorkerId,
    leaving: &Leaving,
) -> Result<(), StoreError> {
    let mut heartbeat = shared.store().heartbeat().await?;
    let gave_back = heartbeat.close(worker, &shared.author(), leaving).await?;
    // By job: one that this worker ran under two claims is known twice and given back once.
    let known: HashSet<JobId> = leaving.known.iter().flatten().map(|run| run.job).collect();
    let known = gave_back.iter().filter(|job| known.contains(job)).count();
    let add = |counter: &AtomicU64, runs: usize| {
        counter.fetch_add(u64::try_from(runs).unwrap_or(u64::MAX), Ordering::Relaxed);
    };
    add(&shared.tally.interrupted, known);
    add(&shared.tally.released, gave_back.len() - known);
    for run in &leaving.abandoned {
        tracing::warn!(job = run.job.0, "abandoned a run whose handler does not end");
    }
    Ok(())
}

fn report<S>(
    shared: &Shared<S>,
    stopped: Stopped,
    abandoned: usize,
    told: &mut Drained,
) -> DrainReport {
    let in_drain = stopped.since(shared, abandoned);
    shared.meters.draining(in_drain, told);
    shared.meters.drained(in_drain.took);
    let Drained { settled, interrupted, released, .. } = shared.tally.so_far();
    tracing::info!(
        settled,
        interrupted,
        released,
        abandoned,
        settled_in_drain = in_drain.settled,
        took = ?in_drain.took,
        "worker done"
    );
    DrainReport { settled, interrupted, released, abandoned, took: in_drain.took, in_drain }
}

#[cfg(test)]
mod tests;
