//! What is told of the answers to settlements: counted, logged, and out of the ledger.

use jobs_core::store::Settled;
use jobs_core::{Due, Ending, Failure, NOT_PROGRESSING, Run, Settlement, State};

use super::super::shared::{Shared, Tally};
use super::Ended;
use crate::log;

/// Takes in the answers of a batch; answers the runs whose rows others hold.
pub(super) fn told_all<'a, S>(
    shared: &Shared<S>,
    batch: Vec<Ended>,
    answers: impl IntoIterator<Item = (&'a Settlement, Settled)>,
) -> Vec<Ended> {
    let mut locked = Vec::new();
    let mut settled = Vec::with_capacity(batch.len());
    let mut is_scheduled = false;
    for (ended, (settlement, answer)) in batch.into_iter().zip(answers) {
        if answer == Settled::Locked {
            locked.push(ended);
            continue;
        }
        told(shared, &ended, answer, settlement.due);
        is_scheduled |= answer == Settled::Applied(State::Scheduled);
        settled.push(ended.run.fence);
    }
    shared.ledger.settled(settled.into_iter());
    shared.jobs.ends().ring();
    if is_scheduled {
        shared.scheduled.notify_one();
    }
    locked
}

/// The last word about a run: counted, logged, and out of the ledger.
pub(super) fn finished<S>(shared: &Shared<S>, ended: &Ended, answer: Settled) {
    // It is settled already; who wrote that knows when it is due again.
    told(shared, ended, answer, Due::Unchanged);
    shared.ledger.settled(std::iter::once(ended.run.fence));
    shared.jobs.ends().ring();
}

/// Counts and logs one answer, and when the job is due again.
fn told<S>(shared: &Shared<S>, ended: &Ended, answer: Settled, due: Due) {
    let (job, kind) = (ended.run.fence.job.0, &*ended.kind);
    let state = match answer {
        Settled::Applied(state) => state,
        Settled::LeaseLost => {
            shared.meters.lost();
            log::LOST.write(shared.elapsed(), |left_out| {
                tracing::warn!(
                    job,
                    kind,
                    left_out,
                    "the run had lost its claim; its outcome is dropped"
                );
            });
            return;
        }
        Settled::Locked => return,
    };
    shared.meters.settled(&ended.ending, state);
    match &ended.ending {
        Ending::Done => {
            Tally::count(&shared.tally.settled);
            tracing::debug!(job, kind, %state, "succeeded");
        }
        Ending::Failed(Failure { class, text, .. })
        | Ending::Unreadable(Failure { class, text, .. }) => {
            Tally::count(&shared.tally.settled);
            failed(shared, ended, (class, text), state, due);
        }
        Ending::Snoozed(wait) => {
            Tally::count(&shared.tally.settled);
            tracing::debug!(job, kind, %state, ?wait, "snoozed");
        }
        Ending::Expired | Ending::Retired | Ending::MalformedVersion(_) => {
            Tally::count(&shared.tally.settled);
            log::FAILED.write(shared.elapsed(), |left_out| {
                tracing::error!(job, kind, %state, ending = ?ended.ending, left_out, "dead letter");
            });
        }
        Ending::Refused { refusal, text, .. } => {
            Tally::count(&shared.tally.released);
            log::REFUSED.write(shared.elapsed(), |left_out| {
                tracing::info!(job, kind, %state, %refusal, text, left_out, "refused");
            });
        }
        Ending::Interrupted(interruption) => {
            Tally::count(&shared.tally.interrupted);
            let (class, text) = (interruption.class(), interruption.text());
            log::INTERRUPTED.write(shared.elapsed(), |left_out| {
                if state == State::Dead {
                    tracing::error!(job, kind, class, text, left_out, "dead letter");
                } else {
                    tracing::info!(job, kind, %state, class, text, left_out, "interrupted");
                }
            });
            let interruptions = ended.run.counters.interruptions.saturating_add(1);
            if interruptions >= NOT_PROGRESSING {
                shared.meters.not_progressing();
                tracing::warn!(
                    job,
                    kind,
                    interruptions,
                    "a job is interrupted and does not get on"
                );
            }
        }
        Ending::Unstarted => {
            Tally::count(&shared.tally.released);
            tracing::debug!(job, kind, %state, "released unstarted");
        }
        Ending::Crashed(_) => tracing::warn!(job, kind, %state, "crashed"),
    }
}

/// Logs a failure: a retry, with when that comes, or a dead letter.
fn failed<S>(
    shared: &Shared<S>,
    ended: &Ended,
    (class, error): (&str, &str),
    state: State,
    due: Due,
) {
    let (job, kind) = (ended.run.fence.job.0, &*ended.kind);
    let Run { counters, budget, .. } = &ended.run;
    let (nth, of) = (counters.failures.saturating_add(1), budget.max_failures);
    let then = match (state, due) {
        (State::Dead, _) => {
            return log::FAILED.write(shared.elapsed(), |left_out| {
                tracing::error!(
                    job,
                    kind,
                    class,
                    error,
                    left_out,
                    "dead letter after failure {nth} of {of}"
                );
            });
        }
        (State::Cancelled, _) => "it was cancelled".to_owned(),
        (_, Due::In(wait)) => format!("again in {:?}", log::rounded(wait)),
        (_, Due::At(_) | Due::Unchanged) => "it runs again".to_owned(),
    };
    log::FAILED.write(shared.elapsed(), |left_out| {
        tracing::warn!(job, kind, class, error, left_out, "failed {nth} of {of}; {then}");
    });
}
