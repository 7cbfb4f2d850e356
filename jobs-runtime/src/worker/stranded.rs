//! Jobs that no live worker can read: told once a minute, and ended where a deadline says so.
//!
//! It looks at routes, never at rows: what is stranded may be a million jobs. Only the deadline, which
//! is opt-in, walks them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::Strand;
use jobs_core::{Route, RouteVerdict, StoreError, jittered};

use super::shared::{Shared, pause};
use crate::log;
use crate::manifest::{Manifest, live};

/// How often it looks.
const EVERY: Duration = Duration::from_mins(1);
/// How long it watches before it ends anything: a deploy has no capable worker for a moment.
const WATCHED: Duration = Duration::from_mins(10);
/// How many jobs one statement ends.
const BATCH: u32 = 1_000;
/// How many routes a line names.
const NAMED: usize = 10;

pub(super) async fn stranded_loop<S>(shared: Arc<Shared<S>>) {
    // Since when each has been stranded, on the clock that runs in suspend.
    let mut since: HashMap<Route, Duration> = HashMap::new();
    while !pause(&shared, jittered(EVERY, shared.draw())).await {
        if shared.intake_closed.is_cancelled() {
            return;
        }
        match stranded(&shared).await {
            Ok(routes) => {
                let now = shared.elapsed();
                since.retain(|route, _| routes.contains(route));
                for route in &routes {
                    since.entry(route.clone()).or_insert(now);
                }
                shared.meters.stranded(routes.len());
                tell(&shared, &routes);
                end(&shared, &since, now).await;
            }
            Err(error) => {
                let error = jobs_core::chain(&error);
                tracing::debug!(error, "can't look for stranded jobs");
            }
        }
    }
}

/// The routes with jobs that are due and that no live worker reads, in order.
async fn stranded<S>(shared: &Shared<S>) -> Result<Vec<Route>, StoreError> {
    let ready = shared.store().routes(&shared.settings.queues).await?;
    let refused = shared.store().refused_routes().await?;
    let is_foreign = |route: &Route| match route.judge(|kind| shared.handlers.reader(kind)) {
        RouteVerdict::Foreign(_) => true,
        RouteVerdict::Reads | RouteVerdict::Malformed => false,
    };
    let ready = ready.into_iter().map(|(_, route)| route);
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

fn tell<S>(shared: &Shared<S>, routes: &[Route]) {
    if routes.is_empty() {
        return;
    }
    log::STRANDED.write(shared.elapsed(), || {
        let named: Vec<&str> = routes.iter().take(NAMED).map(Route::as_str).collect();
        let more = routes.len().saturating_sub(NAMED);
        tracing::warn!(
            routes = named.join(", "),
            more,
            "jobs wait that no live worker can read; `jobs stranded` counts them"
        );
    });
}

/// Ends what has been stranded for long enough, where the worker was told to.
async fn end<S>(shared: &Shared<S>, since: &HashMap<Route, Duration>, now: Duration) {
    let Some(deadline) = shared.settings.stranded_deadline else { return };
    let watched = deadline.min(WATCHED);
    let is_over = |since: &Duration| now.saturating_sub(*since) >= watched;
    let routes = since.iter().filter(|(_, since)| is_over(since));
    let routes: Vec<Route> = routes.map(|(route, _)| route.clone()).collect();
    while !routes.is_empty() && !shared.intake_closed.is_cancelled() {
        let strand =
            Strand { by: shared.author(), routes: &routes, waited: deadline, limit: BATCH };
        match shared.store().strand(&strand).await {
            Ok(0) => return,
            Ok(jobs) => tracing::warn!(jobs, "ended stranded jobs; a redrive brings them back"),
            Err(error) => {
                let error = jobs_core::chain(&error);
                tracing::warn!(error, "can't end stranded jobs; trying again");
                return;
            }
        }
    }
}
