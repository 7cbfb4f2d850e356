//! What a worker measures, through the `metrics` facade. docs/metrics.md explains each name.
//!
//! 1. What is measured for every run has its handle made once, when the worker is wired: a measurement
//!    is then an atomic addition, and nothing at all where no recorder was installed before that.
//! 2. Labels come from small sets: kinds of this build, outcomes, reasons. Nothing that a row holds
//!    becomes a label, but for the kinds and versions that no live worker reads: the first hundred of
//!    them that a process sees, since their names are the news.
//!
//! Deliberately absent: labels of errors or builds, whose number has no bound.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jobs_core::store::Drained;
use jobs_core::{Ending, Refusal, Route, State};
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
    not_progressing: Counter,
    claim_batch: Histogram,
    settle_batch: Histogram,
    lease_margin: Histogram,
    drained: DrainMeters,
    wrong_vouches: Counter,
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
pub(crate) struct KindMeters {
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

    /// A run starts, so long after its job fell due.
    pub(crate) fn started(&self, waited: Duration) {
        self.wait.record(waited);
    }

    /// A run has ended, so long after it started.
    pub(crate) fn ended(&self, took: Duration) {
        self.run.record(took);
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
            not_progressing: counter!("jobs_not_progressing_total"),
            claim_batch: histogram!("jobs_claim_batch_size"),
            settle_batch: histogram!("jobs_settle_batch_size"),
            lease_margin: histogram!("jobs_lease_margin_seconds"),
            drained: DrainMeters::new(),
            wrong_vouches: counter!("jobs_wrong_vouches_total"),
        }
    }

    /// The meters of the runs of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> &KindMeters {
        self.kinds.get(kind).unwrap_or(&self.others)
    }

    /// A claim was answered with jobs of these kinds.
    pub(crate) fn claimed(&self, kinds: &[&str]) {
        self.claim_batch.record(number(kinds.len()));
        for alike in kinds.chunk_by(|a, b| a == b) {
            let count = u64::try_from(alike.len()).unwrap_or(u64::MAX);
            self.of_kind(alike[0]).claims.increment(count);
        }
    }

    /// A run reads what a newer build wrote, which vouched for this one's version.
    pub(crate) fn tolerated(&self, kind: &str) {
        self.of_kind(kind).tolerated.increment(1);
    }

    /// What a newer build vouched for is not readable here after all.
    pub(crate) fn vouched_wrongly(&self) {
        self.wrong_vouches.increment(1);
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

    /// A job was interrupted again and again without getting on.
    pub(crate) fn not_progressing(&self) {
        self.not_progressing.increment(1);
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

/// What a worker tells of jobs that no live worker reads, by kind and oldest reader.
#[derive(Debug, Default)]
pub(crate) struct StrandedMeters {
    labelled: BTreeMap<(String, String), StrandedGauges>,
}

#[derive(Debug)]
struct StrandedGauges {
    jobs: Gauge,
    seen_for: Gauge,
}

/// How many kinds and versions get labels of their own; all others share one.
const LABELLED: usize = 100;

impl StrandedMeters {
    /// Sets what is stranded now: how many jobs of a route, and for how long that was seen. What was
    /// and is not any more becomes zero.
    pub(crate) fn measured<'a>(
        &mut self,
        stranded: impl Iterator<Item = (&'a Route, u64, Duration)>,
    ) {
        let mut now: BTreeMap<(String, String), (u64, Duration)> = BTreeMap::new();
        for (route, jobs, seen_for) in stranded {
            let Some((kind, reader)) = route.parts() else { continue };
            let mut labels = (kind.to_owned(), reader.to_string());
            if !self.labelled.contains_key(&labels) && self.labelled.len() >= LABELLED {
                labels = ("other".to_owned(), String::new());
            }
            self.labelled.entry(labels.clone()).or_insert_with_key(StrandedGauges::of);
            let sum = now.entry(labels).or_default();
            *sum = (sum.0.saturating_add(jobs), sum.1.max(seen_for));
        }
        for (labels, gauges) in &self.labelled {
            let (jobs, seen_for) = now.get(labels).copied().unwrap_or_default();
            gauges.jobs.set(f64::from(u32::try_from(jobs).unwrap_or(u32::MAX)));
            gauges.seen_for.set(seen_for);
        }
    }
}

impl StrandedGauges {
    fn of((kind, version): &(String, String)) -> Self {
        let (kind, version) = (kind.clone(), version.clone());
        let labels = [("kind", kind), ("version", version)];
        Self {
            jobs: gauge!("jobs_stranded", &labels),
            seen_for: gauge!("jobs_stranded_seconds", &labels),
        }
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
