//! What a worker measures, through the `metrics` facade. docs/metrics.md explains each name.
//!
//! 1. What is measured for every run has its handle made once, when the worker is wired: a measurement
//!    is then an atomic addition, and nothing at all where no recorder was installed before that.
//! 2. Labels come from small sets: kinds of this build, outcomes, reasons. Nothing that a row holds
//!    ever becomes a label.
//!
//! Deliberately absent: labels of errors, versions or builds, whose number has no bound.

use std::collections::HashMap;
use std::time::Duration;

use jobs_core::store::Drained;
use jobs_core::{Ending, Refusal, State};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::registry::Handlers;

/// The outcomes of a settlement.
const OUTCOMES: [&str; 10] = [
    "succeeded",
    "failed",
    "snoozed",
    "unreadable",
    "retired",
    "malformed_version",
    "refused",
    "interrupted",
    "expired",
    "unstarted",
];

/// The meters of one worker.
#[derive(Debug)]
pub(crate) struct Meters {
    kinds: HashMap<String, KindMeters>,
    /// Of kinds that this build does not handle.
    others: KindMeters,
    outcomes: HashMap<&'static str, Counter>,
    dead: Counter,
    lost: Counter,
    claim_batch: Histogram,
    settle_batch: Histogram,
    lease_margin: Histogram,
    drained: DrainMeters,
    wrong_vouches: Counter,
    stranded: Gauge,
}

/// The meters of a drain.
#[derive(Debug)]
struct DrainMeters {
    settled: Counter,
    interrupted: Counter,
    released: Counter,
    abandoned: Counter,
    took: Histogram,
}

impl DrainMeters {
    fn new() -> Self {
        let drained = |outcome| counter!("jobs_drained_total", "outcome" => outcome);
        Self {
            settled: drained("settled"),
            interrupted: drained("interrupted"),
            released: drained("released"),
            abandoned: drained("abandoned"),
            took: histogram!("jobs_drain_seconds"),
        }
    }
}

/// The meters of one kind.
#[derive(Debug)]
struct KindMeters {
    claims: Counter,
    tolerated: Counter,
    wait: Histogram,
    run: Histogram,
}

impl KindMeters {
    fn of(kind: &str) -> Self {
        let kind = kind.to_owned();
        Self {
            claims: counter!("jobs_claims_total", "kind" => kind.clone()),
            tolerated: counter!("jobs_tolerant_reads_total", "kind" => kind.clone()),
            wait: histogram!("jobs_wait_seconds", "kind" => kind.clone()),
            run: histogram!("jobs_run_seconds", "kind" => kind),
        }
    }
}

impl Meters {
    pub(crate) fn of<S>(handlers: &Handlers<S>) -> Self {
        let kinds = handlers.all().iter().map(|handled| handled.kind.to_string());
        let outcome = |outcome| (outcome, counter!("jobs_settlements_total", "outcome" => outcome));
        Self {
            kinds: kinds.map(|kind| (kind.clone(), KindMeters::of(&kind))).collect(),
            others: KindMeters::of("other"),
            outcomes: OUTCOMES.into_iter().map(outcome).collect(),
            dead: counter!("jobs_dead_total"),
            lost: counter!("jobs_settlements_lost_total"),
            claim_batch: histogram!("jobs_claim_batch_size"),
            settle_batch: histogram!("jobs_settle_batch_size"),
            lease_margin: histogram!("jobs_lease_margin_seconds"),
            drained: DrainMeters::new(),
            wrong_vouches: counter!("jobs_wrong_vouches_total"),
            stranded: gauge!("jobs_stranded_routes"),
        }
    }

    fn kind(&self, kind: &str) -> &KindMeters {
        self.kinds.get(kind).unwrap_or(&self.others)
    }

    /// A claim was answered with jobs of these kinds.
    pub(crate) fn claimed<'a>(&self, kinds: impl ExactSizeIterator<Item = &'a str>) {
        self.claim_batch.record(number(kinds.len()));
        kinds.for_each(|kind| self.kind(kind).claims.increment(1));
    }

    /// A run starts, so long after its job fell due.
    pub(crate) fn started(&self, kind: &str, waited: Duration) {
        self.kind(kind).wait.record(waited);
    }

    /// A run has ended, so long after it started.
    pub(crate) fn ended(&self, kind: &str, took: Duration) {
        self.kind(kind).run.record(took);
    }

    /// A run reads what a newer build wrote, which vouched for this one's version.
    pub(crate) fn tolerated(&self, kind: &str) {
        self.kind(kind).tolerated.increment(1);
    }

    /// What a newer build vouched for is not readable here after all.
    pub(crate) fn vouched_wrongly(&self) {
        self.wrong_vouches.increment(1);
    }

    /// So many routes have jobs that are due and that no live worker reads.
    pub(crate) fn stranded(&self, routes: usize) {
        self.stranded.set(number(routes));
    }

    /// So many runs were settled together.
    pub(crate) fn settling(&self, runs: usize) {
        self.settle_batch.record(number(runs));
    }

    /// The settlement of a run was applied.
    pub(crate) fn settled(&self, ending: &Ending, state: State) {
        if let Some(counter) = outcome(ending).and_then(|outcome| self.outcomes.get(outcome)) {
            counter.increment(1);
        }
        if state == State::Dead {
            self.dead.increment(1);
        }
        match ending {
            Ending::Refused { refusal, .. } => refused(*refusal),
            Ending::Interrupted(interruption) => {
                counter!("jobs_interruptions_total", "reason" => interruption.class()).increment(1);
            }
            Ending::Done
            | Ending::Failed(_)
            | Ending::Snoozed(_)
            | Ending::Unreadable(_)
            | Ending::Retired
            | Ending::MalformedVersion(_)
            | Ending::Expired
            | Ending::Unstarted
            | Ending::Crashed(_) => {}
        }
    }

    /// The settlement of a run came too late.
    pub(crate) fn lost(&self) {
        self.lost.increment(1);
    }

    /// So much was done since the request to stop, of which `told` was measured before. While the drain
    /// goes on, so that who asks in the middle of it sees how far it is.
    pub(crate) fn draining(&self, now: Drained, told: &mut Drained) {
        let meters = &self.drained;
        meters.settled.increment(now.settled - told.settled);
        meters.interrupted.increment(now.interrupted - told.interrupted);
        meters.released.increment(now.released - told.released);
        meters.abandoned.increment(now.abandoned - told.abandoned);
        *told = now;
    }

    /// A drain has ended.
    pub(crate) fn drained(&self, took: Duration) {
        self.drained.took.record(took);
    }

    /// A renewal was accepted with so much of the lease left.
    pub(crate) fn renewed(&self, left: Duration) {
        self.lease_margin.record(left);
    }
}

fn refused(refusal: Refusal) {
    counter!("jobs_refusals_total", "reason" => refusal.as_str()).increment(1);
}

/// A worker does not settle crashes: the sweep does, in the store.
const fn outcome(ending: &Ending) -> Option<&'static str> {
    Some(match ending {
        Ending::Done => "succeeded",
        Ending::Failed(_) => "failed",
        Ending::Snoozed(_) => "snoozed",
        Ending::Unreadable(_) => "unreadable",
        Ending::Retired => "retired",
        Ending::MalformedVersion(_) => "malformed_version",
        Ending::Refused { .. } => "refused",
        Ending::Interrupted(_) => "interrupted",
        Ending::Expired => "expired",
        Ending::Unstarted => "unstarted",
        Ending::Crashed(_) => return None,
    })
}

/// Batches are small: every size of one is exact.
fn number(size: usize) -> f64 {
    f64::from(u32::try_from(size).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
