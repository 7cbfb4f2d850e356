//! The recorder behind `/metrics`, one for the process, unless the application has its own.

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use jobs_core::Timestamp;
use jobs_core::store::Depth;
use metrics::gauge;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Counts of jobs stop here.
pub(super) const MOST: u32 = 100_000;

/// From a millisecond to ten minutes.
const SECONDS: [f64; 13] =
    [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 600.0];
const SIZES: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 25.0, 100.0, 500.0, 1000.0];

static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
/// The queues that have been measured: one that is empty now is told as empty.
static QUEUES: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// Installs the recorder, the first time. Before the meters are made.
pub(crate) fn install() {
    HANDLE.get_or_init(|| match builder() {
        Ok(builder) => {
            let recorder = builder.build_recorder();
            let handle = recorder.handle();
            // Another recorder that is there already stays.
            metrics::set_global_recorder(recorder).is_ok().then_some(handle)
        }
        Err(error) => {
            tracing::error!(%error, "the metrics' recorder can't be made");
            None
        }
    });
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_size".to_owned()), &SIZES)
}

/// What was measured so far, as Prometheus reads it.
pub(super) fn rendered() -> Option<String> {
    let handle = HANDLE.get()?.as_ref()?;
    handle.run_upkeep();
    Some(handle.render())
}

/// Notes how full the queues are.
pub(super) fn record(depth: &Depth, now: Timestamp) {
    for (state, jobs) in &depth.states {
        gauge!("jobs_count", "state" => state.as_str()).set(number(*jobs));
    }
    let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    let queues = queues.get_or_insert_with(HashSet::new);
    queues.extend(depth.queues.iter().map(|depth| depth.queue.clone()));
    for queue in queues.iter() {
        let depth = depth.queues.iter().find(|depth| depth.queue == *queue);
        let head_due_at = depth.and_then(|depth| depth.head_due_at);
        let age = head_due_at.map(|at| now.since(at)).unwrap_or_default();
        let ready = depth.map_or(0, |depth| depth.ready);
        let running = depth.map_or(0, |depth| depth.running);
        gauge!("jobs_queue_ready", "queue" => queue.clone()).set(number(ready));
        gauge!("jobs_queue_running", "queue" => queue.clone()).set(number(running));
        gauge!("jobs_queue_head_age_seconds", "queue" => queue.clone()).set(age);
    }
}

/// Counts stop at [`MOST`].
fn number(jobs: u64) -> f64 {
    f64::from(u32::try_from(jobs).unwrap_or(u32::MAX))
}
