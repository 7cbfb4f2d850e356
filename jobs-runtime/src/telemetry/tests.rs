use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use jobs_core::{Failure, Interruption, Retry};
use metrics::{
    CounterFn, GaugeFn, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use super::*;
use crate::Registry;

const DOCUMENT: &str = include_str!("../../../docs/metrics.md");
/// What is measured of the whole store, when `/metrics` is asked: see `worker/health/recorder.rs`.
const OF_THE_STORE: [&str; 4] =
    ["jobs_count", "jobs_queue_ready", "jobs_queue_running", "jobs_queue_head_age_seconds"];

/// A recorder that keeps how often each name was measured, with its labels.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, f64>>>);

struct Meter(Kept, String);

impl Meter {
    fn add(&self, value: f64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for Meter {
    fn increment(&self, value: u64) {
        self.add(f64::from(u32::try_from(value).unwrap()));
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Meter {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.0.0.lock().unwrap().insert(self.1.clone(), value);
    }
}

impl HistogramFn for Meter {
    fn record(&self, _: f64) {
        self.add(1.0);
    }
}

impl Kept {
    fn meter(&self, key: &Key) -> Arc<Meter> {
        let labels = key.labels().map(|label| format!("{}={}", label.key(), label.value()));
        let name = [vec![key.name().to_owned()], labels.collect()].concat().join(" ");
        self.0.lock().unwrap().entry(name.clone()).or_default();
        Arc::new(Meter(self.clone(), name))
    }

    fn measured(&self) -> BTreeMap<String, f64> {
        self.0.lock().unwrap().clone()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.meter(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.meter(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.meter(key))
    }
}

fn failure() -> Failure {
    Failure { class: "error".to_owned(), text: "no".to_owned(), retry: Retry::Never }
}

fn refused(refusal: Refusal) -> Ending {
    Ending::Refused { refusal, build: "shop 1.0".to_owned(), text: "no".to_owned() }
}

/// Every ending that a worker settles, with the state that follows, and what counts it.
fn endings() -> Vec<(Ending, State, &'static str, Option<&'static str>)> {
    let dead = State::Dead;
    vec![
        (Ending::Done, State::Succeeded, "succeeded", None),
        (Ending::Failed(failure()), State::Scheduled, "failed", None),
        (Ending::Snoozed(Duration::ZERO), State::Scheduled, "snoozed", None),
        (Ending::Unreadable(failure()), dead, "unreadable", None),
        (Ending::Retired, dead, "retired", None),
        (Ending::MalformedVersion("x".to_owned()), dead, "malformed_version", None),
        (Ending::Expired, State::Cancelled, "expired", None),
        (Ending::Unstarted, State::Ready, "unstarted", None),
        (refused(Refusal::UnknownKind), State::Scheduled, "refused", Some("unknown_kind")),
        (refused(Refusal::Newer), State::Scheduled, "refused", Some("newer")),
        (refused(Refusal::Older), State::Scheduled, "refused", Some("older")),
        (refused(Refusal::Checkpoint), State::Scheduled, "refused", Some("checkpoint")),
        (
            Ending::Interrupted(Interruption::Stopped("drain".to_owned())),
            State::Ready,
            "interrupted",
            Some("stopped"),
        ),
        (
            Ending::Interrupted(Interruption::Infrastructure("away".to_owned())),
            State::Scheduled,
            "interrupted",
            Some("infrastructure"),
        ),
        (Ending::Interrupted(Interruption::GivenUp), State::Ready, "interrupted", Some("given_up")),
    ]
}

/// Measures everything once.
fn measured() -> BTreeMap<String, f64> {
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || {
        let handlers = Registry::<()>::new().build().expect("an empty registry is in order");
        let meters = Meters::of(&handlers);
        meters.claimed(["a", "b"].into_iter());
        meters.started("a", Duration::ZERO);
        meters.ended("a", Duration::ZERO);
        meters.tolerated("a");
        meters.vouched_wrongly();
        meters.stranded(3);
        meters.settling(2);
        meters.lost();
        meters.renewed(Duration::ZERO);
        for (ending, state, ..) in endings() {
            meters.settled(&ending, state);
        }
    });
    kept.measured()
}

#[test]
fn every_ending_is_counted_by_outcome_and_reason() {
    let measured = measured();
    let count = |name: &str| measured.get(name).copied().unwrap_or_else(|| panic!("no {name}"));
    for (_, _, outcome, reason) in endings() {
        assert!(count(&format!("jobs_settlements_total outcome={outcome}")) >= 1.0);
        let of_reasons = match (outcome, reason) {
            ("refused", Some(reason)) => format!("jobs_refusals_total reason={reason}"),
            ("interrupted", Some(reason)) => format!("jobs_interruptions_total reason={reason}"),
            (_, _) => continue,
        };
        assert_eq!(count(&of_reasons).to_bits(), 1.0_f64.to_bits(), "{of_reasons}");
    }
    for (name, wanted) in [
        ("jobs_claims_total kind=other", 2.0),
        ("jobs_claim_batch_size", 1.0),
        ("jobs_wait_seconds kind=other", 1.0),
        ("jobs_run_seconds kind=other", 1.0),
        ("jobs_tolerant_reads_total kind=other", 1.0),
        ("jobs_wrong_vouches_total", 1.0),
        ("jobs_stranded_routes", 3.0),
        ("jobs_settle_batch_size", 1.0),
        ("jobs_settlements_lost_total", 1.0),
        ("jobs_dead_total", 3.0),
        ("jobs_lease_margin_seconds", 1.0),
    ] {
        assert_eq!(count(name).to_bits(), f64::to_bits(wanted), "{name}: {}", count(name));
    }
}

#[test]
fn the_document_names_what_is_measured_and_nothing_else() {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `jobs_"));
    let documented: BTreeSet<String> =
        rows.filter_map(|row| Some(format!("jobs_{}", row.split('`').next()?))).collect();
    let names = measured().into_keys().filter_map(|key| Some(key.split(' ').next()?.to_owned()));
    let of_the_store = OF_THE_STORE.iter().map(|name| (*name).to_owned());
    assert_eq!(documented, names.chain(of_the_store).collect());
    let labels = measured().into_keys().filter_map(|key| {
        let (_, label) = key.split_once(" outcome=").or_else(|| key.split_once(" reason="))?;
        Some(label.to_owned())
    });
    for label in labels {
        assert!(DOCUMENT.contains(&format!("`{label}`")), "{label} is not documented");
    }
}
