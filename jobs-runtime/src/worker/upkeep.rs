//! What every worker does for all: promote what is due, take back what ended workers hold, end what nobody
//! started in time, prune what is old, and recall what this build reads of what others refused.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Promoted, Sweep};
use jobs_core::{Route, RouteVerdict, StoreError, jittered};

use super::lease::Tenure;
use super::shared::{Shared, pause};
use crate::log;

/// How many jobs one statement promotes, takes back, ends, recalls or prunes.
const BATCH: u32 = 1_000;
/// How often scheduled jobs are looked for when none is known and nothing wakes the worker.
const PROMOTE_AT_LEAST: Duration = Duration::from_secs(5);
/// How long after a wake-up: the claim that it is mostly for goes first.
const PROMOTE_AFTER: Duration = Duration::from_millis(10);
/// How soon a due job that another transaction has locked is looked for again.
const PROMOTE_LOCKED: Duration = Duration::from_millis(100);
/// How often old jobs are looked for.
const PRUNE_EVERY: Duration = Duration::from_mins(1);
/// What slows the store down for less than this is nobody's business.
const SLOW_FOR: Duration = Duration::from_mins(1);

/// Makes scheduled jobs ready when they fall due. Sleeps to the next due time.
pub(super) async fn promote_loop<S>(shared: Arc<Shared<S>>) {
    loop {
        let promoted = match shared.store().promote(BATCH).await {
            Ok(promoted) => {
                shared.answered();
                promoted
            }
            Err(error) => {
                shared.tell_failed(&log::PROMOTE, &error);
                Promoted { count: 0, next_in: Some(Duration::from_secs(1)) }
            }
        };
        if promoted.count > 0 {
            shared.ready.notify_one();
        }
        let next_in = match promoted {
            // What is due but was not promoted is locked by another transaction.
            Promoted { count: 0, next_in: Some(Duration::ZERO) } => {
                jittered(PROMOTE_LOCKED, shared.draw())
            }
            Promoted { next_in, .. } => next_in.unwrap_or(PROMOTE_AT_LEAST),
        };
        let sleep = next_in.min(PROMOTE_AT_LEAST);
        let woken = async {
            shared.scheduled.notified().await;
            tokio::time::sleep(PROMOTE_AFTER).await;
        };
        tokio::select! {
            biased;
            () = shared.over.cancelled() => return,
            () = shared.intake_closed.cancelled() => return,
            () = tokio::time::sleep(sleep) => {}
            () = woken => {}
        }
    }
}

/// Takes back what ended workers hold. The first sweep takes only leases that ended over a lease
/// ago, so that after an outage workers that live renew first.
pub(super) async fn sweep_loop<S>(shared: Arc<Shared<S>>) {
    let lease = shared.tenancy.lease();
    let mut grace = lease.length();
    loop {
        if shared.tenancy.may_sweep(shared.elapsed()) && shared.worker().is_some() {
            match sweep(&shared, grace).await {
                Ok(()) => grace = Duration::ZERO,
                Err(error) => shared.tell_failed(&log::SWEEP, &error),
            }
        }
        if pause(&shared, jittered(lease.sweep(), shared.draw())).await {
            return;
        }
    }
}

async fn sweep<S>(shared: &Shared<S>, grace: Duration) -> Result<(), StoreError> {
    loop {
        let sweep = Sweep { by: shared.author(), grace, limit: BATCH, draw: shared.draw() };
        let swept = shared.store().sweep(&sweep).await?;
        for worker in &swept.workers {
            tracing::warn!(worker = worker.0, "took back a worker whose lease has ended");
        }
        if !swept.jobs.is_empty() {
            tracing::warn!(jobs = swept.jobs.len(), "took back jobs of ended workers");
            shared.ready.notify_one();
            shared.scheduled.notify_one();
        }
        if swept.jobs.len() < BATCH as usize {
            return Ok(());
        }
    }
}

/// Ends what nobody started in time, deletes finished jobs when their retention has passed, and passes
/// on what the store warns of.
pub(super) async fn prune_loop<S>(shared: Arc<Shared<S>>) {
    loop {
        // Each by itself, so that one which fails keeps the others from nothing.
        expire(&shared).await;
        prune(&shared).await;
        warn(&shared).await;
        if pause(&shared, jittered(PRUNE_EVERY, shared.draw())).await {
            return;
        }
    }
}

async fn expire<S>(shared: &Shared<S>) {
    while !shared.over.is_cancelled() {
        match shared.store().expire(BATCH).await {
            Ok(expired) if expired >= BATCH => tokio::task::yield_now().await,
            Ok(_) => return,
            Err(error) => return shared.tell_failed(&log::EXPIRE, &error),
        }
    }
}

async fn prune<S>(shared: &Shared<S>) {
    while !shared.over.is_cancelled() {
        match shared.store().prune(shared.settings.retention, BATCH).await {
            Ok(pruned) if pruned >= BATCH => tokio::task::yield_now().await,
            Ok(_) => return,
            Err(error) => return shared.tell_failed(&log::PRUNE, &error),
        }
    }
}

/// Says what slows the store down from outside.
async fn warn<S>(shared: &Shared<S>) {
    match shared.store().warnings(SLOW_FOR).await {
        Ok(warnings) if warnings.is_empty() => {}
        // One line, so that none keeps another back.
        Ok(warnings) => {
            let warnings = warnings.join("; ");
            log::WARNINGS.write(shared.elapsed(), || tracing::warn!("{warnings}"));
        }
        Err(error) => {
            let error = jobs_core::chain(&error);
            tracing::debug!(error, "can't ask the store what slows it down");
        }
    }
}

/// Makes refused jobs that this build may read ready at once, whenever the worker has registered.
pub(super) async fn recall_loop<S>(shared: Arc<Shared<S>>) {
    let mut tenure = shared.tenancy.watch();
    let mut recalled = None;
    loop {
        let news = tenure.wait_for(|tenure| match tenure {
            Tenure::Held(worker) => recalled != Some(*worker),
            Tenure::Lost => false,
            Tenure::Closed => true,
        });
        tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => return,
            news = news => match news.as_deref() {
                Ok(Tenure::Held(worker)) => recalled = Some(*worker),
                Ok(Tenure::Lost | Tenure::Closed) | Err(_) => return,
            },
        }
        if let Err(error) = recall(&shared).await {
            let error = jobs_core::chain(&error);
            tracing::warn!(error, "can't recall refused jobs; they fall due by themselves");
        }
    }
}

async fn recall<S>(shared: &Shared<S>) -> Result<(), StoreError> {
    let refused = shared.store().refused_routes().await?;
    let is_readable = |route: &Route| match route.judge(|kind| shared.handlers.reader(kind)) {
        RouteVerdict::Reads | RouteVerdict::Malformed => true,
        RouteVerdict::Foreign(_) => false,
    };
    let readable: Vec<Route> = refused.into_iter().filter(is_readable).collect();
    while !readable.is_empty() && !shared.intake_closed.is_cancelled() {
        let recalled = shared.store().recall(&readable, BATCH).await?;
        if recalled > 0 {
            shared.ready.notify_one();
        }
        if recalled < BATCH {
            break;
        }
    }
    Ok(())
}
