//! Jobs that no live worker can read: measured and told once a minute, and ended where a deadline says
//! so.
//!
//! It looks at routes, and counts rows of the stranded ones alone, up to a limit: what is stranded may
//! be a million jobs. Only the deadline, which is opt-in, walks them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::Strand;
use jobs_core::{Route, RouteVerdict, StoreError, jittered};

use super::shared::{Shared, pause};
use crate::log;
use crate::manifest::{Manifest, live};
use crate::telemetry::StrandedMeters;

/// How often it looks.
const EVERY: Duration = Duration::from_mins(1);
/// How long it watches before it ends anything: a deploy has no capable worker for a moment.
const WATCHED: Duration = Duration::from_mins(10);
/// How many jobs one statement ends.
const BATCH: u32 = 1_000;
/// How many routes a line names.
const NAMED: usize = 10;
/// How many jobs of a route are counted: every worker looks, and a backlog that nobody reads may be long.
const MOST: u32 = 1_000;

/// Jobs of one route that no live worker reads.
struct Stranded {
    route: Route,
    /// How many are due; the count stops at [`MOST`].
    jobs: u64,
    /// For how long this worker has seen that.
    seen_for: Duration,
}

/// Looks, tells and ends until the intake is closed or the worker is over.
pub(super) async fn stranded_loop<S>(shared: Arc<Shared<S>>) {
    // Since when each has been stranded, on the clock that runs in suspend.
    let mut since: HashMap<Route, Duration> = HashMap::new();
    let mut meters = StrandedMeters::default();
    while !pause(&shared, jittered(EVERY, shared.draw())).await {
        if shared.intake_closed.is_cancelled() {
            return;
        }
        match look(&shared, &mut since).await {
            Ok(stranded) => {
                meters.measured(stranded.iter().map(|it| (&it.route, it.jobs, it.seen_for)));
                tell(&shared, &stranded);
                end(&shared, &stranded).await;
            }
            Err(error) => {
                let error = jobs_core::chain(&error);
                tracing::debug!(error, "can't look for stranded jobs");
            }
        }
    }
}

/// What is stranded now, in order of route; keeps in mind since when.
async fn look<S>(
    shared: &Shared<S>,
    since: &mut HashMap<Route, Duration>,
) -> Result<Vec<Stranded>, StoreError> {
    let routes = stranded(shared).await?;
    let now = shared.elapsed();
    since.retain(|route, _| routes.contains(route));
    if routes.is_empty() {
        return Ok(Vec::new());
    }
    let jobs = shared.jobs.inspect().count_due(&routes, MOST).await?;
    let seen = routes.into_iter().zip(jobs).map(|(route, jobs)| {
        let first = *since.entry(route.clone()).or_insert(now);
        Stranded { route, jobs, seen_for: now.saturating_sub(first) }
    });
    Ok(seen.collect())
}

/// The routes with jobs that are due and that no live worker reads, in order.
async fn stranded<S>(shared: &Shared<S>) -> Result<Vec<Route>, StoreError> {
    let ready = shared.store().routes(&shared.settings.queues).await?;
    let refused = shared.store().refused_routes().await?;
    let is_foreign = |route: &Route| match route.judge(|kind| shared.handlers.reader(kind)) {
        RouteVerdict::Foreign(_) => true,
        RouteVerdict::Reads | RouteVerdict::Malformed => false,
    };
    let ready = ready.into_iter().map(|listed| listed.route);
    let mut routes: Vec<Route> = ready.chain(refused).filter(is_foreign).collect();
    if routes.is_empty() {
        return Ok(routes);
    }
    routes.sort_unstable();
    routes.dedup();
    let live = live(&shared.jobs.inspect().workers().await?);
    let is_read = |route: &Route| live.iter().any(|manifest| reads(manifest, route));
    routes.retain(|route| !is_read(route));
    Ok(routes)
}

fn reads(manifest: &Manifest, route: &Route) -> bool {
    match manifest.route(route) {
        RouteVerdict::Foreign(_) => false,
        RouteVerdict::Reads | RouteVerdict::Malformed => true,
    }
}

fn tell<S>(shared: &Shared<S>, stranded: &[Stranded]) {
    if stranded.is_empty() {
        return;
    }
    log::STRANDED.write(shared.elapsed(), || {
        let named = stranded.iter().take(NAMED);
        let named: Vec<_> =
            named.map(|it| format!("{} ({})", it.route, counted(it.jobs))).collect();
        let more = stranded.len().saturating_sub(NAMED);
        tracing::warn!(
            routes = named.join(", "),
            more,
            "jobs wait that no live worker can read; `jobs stranded` tells of them"
        );
    });
}

fn counted(jobs: u64) -> String {
    let or_more = if jobs < u64::from(MOST) { "" } else { "+" };
    format!("{jobs}{or_more} jobs")
}

/// Ends what has been stranded for long enough, where the worker was told to.
async fn end<S>(shared: &Shared<S>, stranded: &[Stranded]) {
    let Some(deadline) = shared.settings.stranded_deadline else { return };
    let routes = stranded.iter().filter(|it| it.seen_for >= WATCHED);
    let routes: Vec<Route> = routes.map(|it| it.route.clone()).collect();
    while !routes.is_empty() && !shared.intake_closed.is_cancelled() {
        let strand =
            Strand { by: shared.author(), routes: &routes, waited: deadline, limit: BATCH };
        match shared.store().strand(&strand).await {
            Ok(0) => return,
            Err(error) if shared.is_outage(&error, "end stranded jobs") => return,
            Ok(jobs) => tracing::warn!(jobs, "ended stranded jobs; a redrive brings them back"),
            Err(error) => {
                let error = jobs_core::chain(&error);
                tracing::warn!(error, "can't end stranded jobs; trying again");
                return;
            }
        }
    }
}
