//! The claim loop: takes jobs for free slots, and no others.
//!
//! 1. A claim never asks for more than the slots that are free when it is sent.
//! 2. A claim that was answered after the stop, or under an earlier worker id, is given back unrun
//!    or not run at all.
//! 3. A claim is never cancelled: once sent, its answer is waited for.
//!
//! What it claims next, and what it waits for, the [intake](super::intake) says.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::{ClaimedJob, WorkerId, jittered};

use super::intake::{Intake, Turn};
use super::lease::Tenure;
use super::runners::Runners;
use super::settle::Ended;
use super::shared::{Shared, turn};
use crate::log;
use crate::run::Reason;

/// How long a full worker goes without a look at what waits, whatever its lease: it must hear of
/// suspects while they wait.
const FULL: Duration = Duration::from_secs(10);

/// Claims until the intake is closed; every claimed job is then accounted for in the ledger.
pub(super) async fn claim_loop<S>(shared: Arc<Shared<S>>)
where
    S: Clone + Send + Sync + 'static,
{
    let mut intake = Intake::new(shared.tenancy.lease());
    {
        // Dropped when the claiming ends, and also when it panics or is dropped half-way.
        let _ended = shared.intake_ended.clone().drop_guard();
        claim_until_closed(&shared, &mut intake).await;
    }
    intake.close(&shared).await;
}

async fn claim_until_closed<S>(shared: &Arc<Shared<S>>, intake: &mut Intake)
where
    S: Clone + Send + Sync + 'static,
{
    let mut tenure = shared.tenancy.watch();
    let runners = Runners::new(shared);
    loop {
        let worker = tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => return,
            held = tenure.wait_for(|tenure| *tenure != Tenure::Lost) => match held.as_deref() {
                Ok(Tenure::Held(worker)) => *worker,
                Ok(Tenure::Lost | Tenure::Closed) | Err(_) => return,
            },
        };
        let free = gathered(shared).await;
        if free == 0 && !has_waited(shared, shared.tenancy.lease().heartbeat().min(FULL)).await {
            continue;
        }
        let limit = u32::try_from(free).unwrap_or(u32::MAX);
        match intake.turn(shared, worker, limit).await {
            Ok(Turn::Took(jobs)) => start(shared, &runners, worker, jobs),
            Ok(Turn::Nothing) => intake.wait(shared).await,
            Ok(Turn::Clear) => drop(has_waited(shared, shared.settings.poll_interval).await),
            Err(error) => {
                if !shared.is_outage(&error, "claim") {
                    log::CLAIM.write(shared.elapsed(), || {
                        let error = jobs_core::chain(&error);
                        tracing::warn!(error, "can't claim; trying again");
                    });
                }
                let pause = jittered(shared.settings.poll_interval, shared.draw());
                drop(tokio::time::timeout(pause, shared.intake_closed.cancelled()).await);
            }
        }
    }
}

/// How many slots are free, once runs that are about to end have ended: a claim for many slots costs
/// little more than one for a single slot. Those that were just started have their first turn, and then
/// a turn of the runtime that frees nothing more ends the wait.
async fn gathered<S>(shared: &Shared<S>) -> usize {
    shared.starts.had_turns().await;
    let mut free = shared.ledger.free();
    while 0 < free && free < shared.settings.concurrency {
        turn().await;
        let before = std::mem::replace(&mut free, shared.ledger.free());
        if free <= before {
            break;
        }
    }
    free
}

/// Waits until a run ends, or the intake is closed, but not for longer than this; answers whether it
/// was as long.
async fn has_waited<S>(shared: &Shared<S>, longest: Duration) -> bool {
    tokio::select! {
        biased;
        () = shared.intake_closed.cancelled() => false,
        () = shared.ledger.changed() => false,
        () = tokio::time::sleep(longest) => true,
    }
}

/// Starts what was claimed, or gives it back where it came too late.
fn start<S>(shared: &Shared<S>, runners: &Runners<S>, worker: WorkerId, jobs: Vec<ClaimedJob>)
where
    S: Clone + Send + Sync + 'static,
{
    let is_ours = shared.worker() == Some(worker);
    let is_late = shared.intake_closed.is_cancelled() || !is_ours;
    let kind = |kind: &str| -> Arc<str> {
        let handled = shared.handlers.handled(kind);
        handled.map_or_else(|| kind.into(), |handled| handled.kind.clone())
    };
    let entries = jobs.chunk_by(|a, b| a.kind == b.kind).flat_map(|alike| {
        let kind = kind(&alike[0].kind);
        alike.iter().map(move |job| (job.fence, kind.clone()))
    });
    let entries = shared.ledger.begin(entries);
    if is_late {
        for (job, entry) in jobs.iter().zip(&entries) {
            shared.ledger.ended(entry);
            drop(shared.ended.send(Ended::unstarted(job)));
        }
    } else {
        shared.starts.add(jobs.len());
        if shared.settings.shares.is_some() {
            for job in &jobs {
                shared.running.begin(&job.queue);
            }
        }
        runners.start(jobs, entries);
    }
    shared.ledger.claim_answered();
    if shared.worker() != Some(worker) {
        // The lease was lost while they were begun; whoever aborted the others missed these.
        shared.ledger.abort_all(Reason::Lease);
    }
}
