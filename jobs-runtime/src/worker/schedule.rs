//! The schedules: says what this build declares, and moves them on while this worker has the duty.
//!
//! 1. A worker declares at every registration, whether it leads or not, so that what live builds
//!    declare is known to whoever leads.
//! 2. One leader at a time is thrift, not safety: the store takes one of two equal steps.
//! 3. A leader moves every schedule on that it can read, whoever declared it; one that fails does not
//!    keep the others waiting.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Advanced, Duty, ScheduleRecord};
use jobs_core::{StoreError, Timestamp, WorkerId, chain, jittered};

use super::lease::Tenure;
use super::shared::Shared;
use crate::log;
use crate::schedule::{Decision, decide, declaration};

/// How often a leader looks for what others have declared, and the others for a leader: with a lease of
/// 30 s, the tick after a leader was killed comes within the minute that counts as in time.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How many unreadable schedules a line names.
const NAMED: usize = 10;
/// How soon a look that failed is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// Declares and leads until the intake closes, then gives the duty back.
pub(super) async fn schedule_loop<S>(shared: Arc<Shared<S>>) {
    let mut tenure = shared.tenancy.watch();
    let mut declared = None;
    loop {
        let worker = tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => break,
            held = tenure.wait_for(|tenure| *tenure != Tenure::Lost) => match held.as_deref() {
                Ok(Tenure::Held(worker)) => *worker,
                Ok(Tenure::Lost | Tenure::Closed) | Err(_) => break,
            },
        };
        let sleep = match turn(&shared, worker, &mut declared).await {
            Ok(next) => next.unwrap_or(LOOK_EVERY).min(jittered(LOOK_EVERY, shared.draw())),
            Err(error) => {
                shared.tell_failed(&log::SCHEDULE, &error);
                jittered(AGAIN, shared.draw())
            }
        };
        tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => break,
            () = tokio::time::sleep(sleep) => {}
        }
    }
    if let Some(worker) = declared
        && let Err(error) = shared.store().give_back_duty(Duty::Schedule, worker).await
    {
        tracing::debug!(error = chain(&error), "the duty ends with the worker's lease instead");
    }
}

/// Declares what has to be, and leads one round where nobody else does; answers how long until the
/// next tick.
async fn turn<S>(
    shared: &Shared<S>,
    worker: WorkerId,
    declared: &mut Option<WorkerId>,
) -> Result<Option<Duration>, StoreError> {
    if *declared != Some(worker) {
        let build = shared.jobs.build();
        let schedules = shared.handlers.schedules().iter();
        let declarations: Result<Vec<_>, _> =
            schedules.map(|schedule| declaration(schedule, build)).collect();
        let declarations = declarations.expect("the registry has checked every schedule");
        if !declarations.is_empty() {
            shared.store().declare(Some(worker), &declarations).await?;
        }
        *declared = Some(worker);
    }
    if !shared.store().take_duty(Duty::Schedule, worker).await? {
        return Ok(None);
    }
    lead(shared).await
}

async fn lead<S>(shared: &Shared<S>) -> Result<Option<Duration>, StoreError> {
    let view = shared.store().schedules().await?;
    let mut next: Option<Timestamp> = None;
    let mut failed = None;
    let mut unreadable = Vec::new();
    for record in &view.schedules {
        let next_at = match decide(view.now, record) {
            Decision::Wait(next_at) => next_at,
            Decision::Unreadable(why) => {
                unreadable.push(format!("{}: {why}", record.name.as_str()));
                continue;
            }
            Decision::Step(step) => match shared.store().advance(&step).await {
                Ok(advanced) => {
                    tell_advanced(shared, record, &advanced);
                    step.next_at
                }
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            },
        };
        next = next.into_iter().chain(next_at).min();
        if shared.intake_closed.is_cancelled() {
            break;
        }
    }
    tell_unreadable(shared, &unreadable);
    match failed {
        Some(error) => Err(error),
        None => Ok(next.map(|at| at.since(view.now))),
    }
}

/// One line for all of them, so that none keeps another back.
fn tell_unreadable<S>(shared: &Shared<S>, schedules: &[String]) {
    if schedules.is_empty() {
        return;
    }
    log::UNREADABLE_SCHEDULE.write(shared.elapsed(), || {
        let more = schedules.len().saturating_sub(NAMED);
        let schedules = schedules[..schedules.len() - more].join("; ");
        tracing::warn!(schedules, more, "this build can't read these schedules; they do not tick");
    });
}

fn tell_advanced<S>(shared: &Shared<S>, record: &ScheduleRecord, advanced: &Advanced) {
    match advanced {
        Advanced::Moved(jobs) if jobs.is_empty() => {
            tracing::info!(schedule = record.name.as_str(), "took a declaration over");
        }
        Advanced::Moved(jobs) => {
            tracing::debug!(schedule = record.name.as_str(), jobs = jobs.len(), "ticked");
            shared.ready.notify_one();
        }
        Advanced::Outrun => {
            tracing::debug!(schedule = record.name.as_str(), "another worker was first");
        }
    }
}
