//! The registrations of one worker, one after another.
//!
//! 1. Whoever lost its lease registers anew, under another id.
//! 2. What is left of the one before is closed as soon as all it held is settled.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Leaving, NewWorker};
use jobs_core::{Fence, StoreError, WorkerId};

use super::LAST_CALLS;
use super::lease::Tenure;
use super::shared::{Shared, pause};
use crate::log;
use crate::manifest::Manifest;
use crate::run::Reason;

/// Asks the store for a lease.
pub(super) async fn register<S>(shared: &Shared<S>) -> Result<(), StoreError> {
    let drain_ms = u64::try_from(shared.settings.drain.as_millis()).ok();
    let worker = NewWorker {
        name: shared.settings.name.clone(),
        build: shared.jobs.build().clone(),
        manifest: Manifest { drain_ms, ..Manifest::of(&shared.handlers) }.to_json(),
        lease: shared.settings.lease,
    };
    let sent_at = shared.elapsed();
    let id = shared.store().register(&worker).await?;
    shared.tenancy.registered(id, sent_at);
    tracing::info!(
        worker = id.0,
        build = %worker.build,
        lease = ?worker.lease.length(),
        concurrency = shared.settings.concurrency,
        "registered"
    );
    Ok(())
}

/// Registers anew whenever the lease is lost.
pub(super) async fn tenure_loop<S>(shared: Arc<Shared<S>>) {
    let mut tenure = shared.tenancy.watch();
    let mut earlier: Vec<Earlier> = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = shared.over.cancelled() => return,
            () = tokio::time::sleep(EARLIER_PAUSE), if !earlier.is_empty() => {}
            lost = tenure.wait_for(|tenure| *tenure == Tenure::Lost) => {
                if lost.is_err() {
                    return;
                }
            }
        }
        if shared.tenancy.tenure() != Tenure::Lost {
            if let Some(first) = earlier.first()
                && close_earlier(&shared, first).await
            {
                earlier.remove(0);
            }
            continue;
        }
        shared.ledger.abort_all(Reason::Lease);
        if shared.intake_closed.is_cancelled() {
            return;
        }
        let lost = shared.tenancy.to_close();
        let runs = shared.ledger.fences();
        match register(&shared).await {
            Ok(()) => earlier.extend(lost.map(|worker| Earlier { worker, runs })),
            Err(error) => {
                shared.tell_failed(&log::REGISTER, &error);
                let wait = jobs_core::jittered(shared.settings.poll_interval, shared.draw());
                if pause(&shared, wait).await {
                    return;
                }
            }
        }
    }
}

/// An earlier registration of this process, and what it held when the lease was lost.
struct Earlier {
    worker: WorkerId,
    runs: Vec<Fence>,
}

/// How often is looked whether all that an earlier registration held is settled.
const EARLIER_PAUSE: Duration = Duration::from_millis(100);

/// Closes what is left of an earlier registration, once all it held has ended and is settled: people
/// would else see two workers for one process, and one of them die. Answers whether that is over.
async fn close_earlier<S>(shared: &Shared<S>, earlier: &Earlier) -> bool {
    if earlier.runs.iter().any(|run| shared.ledger.holds(*run)) {
        return false;
    }
    let leaving = Leaving { known: Some(Vec::new()), ..Leaving::default() };
    let closed = async {
        let mut heartbeat = shared.store().heartbeat().await?;
        heartbeat.close(earlier.worker, &shared.author(), &leaving).await
    };
    match tokio::time::timeout(LAST_CALLS, closed).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            let error = jobs_core::chain(&error);
            tracing::debug!(error, "can't close an earlier registration; its lease will end");
        }
        Err(_) => tracing::debug!("an earlier registration is not closed; its lease will end"),
    }
    true
}
