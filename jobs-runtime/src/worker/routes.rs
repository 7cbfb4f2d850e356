//! Which routes to claim from and where: what this worker knows of the ready index.
//!
//! 1. A route that this build reads is claimed from where its last claim ended, so that a claim
//!    never walks the dead entries at the head; it returns to the head when a claim comes back
//!    short, on a wake-up, and a few times a second.
//! 2. Of a route that it can't read it tries one job per cool-down, so that the job says why it
//!    waits and a rollout stays cheap. Where other jobs come first, the try is made with the claims from
//!    the head alone: a claim from many heads costs several times that from one.
//! 3. Suspects that it reads stand apart from all others. One that it can't read will not run here,
//!    so it is tried like any foreign job.

use std::collections::HashMap;
use std::time::Duration;

use jobs_core::store::Head;
use jobs_core::{ClaimedJob, Place, QueueName, Route, RouteVerdict, jittered};

use super::suspects::Plan;

/// How long a route that this build can't read is left alone after one job of it was tried, moved
/// by up to a tenth.
pub(crate) const COOL_DOWN: Duration = Duration::from_secs(10);
/// How often claims return to the head of their routes at the latest.
pub(crate) const RETURN: Duration = Duration::from_millis(250);

#[derive(Debug)]
struct Known {
    queue: QueueName,
    route: Route,
    verdict: RouteVerdict,
    after: Option<Place>,
    /// Whether a claim has asked for a job of it since the listing.
    is_asked: bool,
}

impl Known {
    /// Whether a job of it may start here, and may end this worker.
    fn is_suspect(&self) -> bool {
        self.verdict == RouteVerdict::Reads && self.route.is_suspect()
    }
}

/// What a worker knows of the ready index.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    known: Vec<Known>,
    /// When the next job of a foreign route may be tried.
    probe_at: HashMap<(QueueName, Route), Duration>,
    returned_at: Duration,
}

impl Routes {
    /// Takes in the routes that have ready jobs now, and returns to the head of each.
    pub(crate) fn refresh(
        &mut self,
        listed: Vec<(QueueName, Route)>,
        now: Duration,
        judge: impl Fn(&Route) -> RouteVerdict,
    ) {
        self.known = listed
            .into_iter()
            .map(|(queue, route)| {
                let verdict = judge(&route);
                Known { queue, route, verdict, after: None, is_asked: false }
            })
            .collect();
        self.probe_at.retain(|_, at| *at > now);
        self.returned_at = now;
    }

    /// Whether it is time to return to the head.
    pub(crate) fn is_return_due(&self, now: Duration) -> bool {
        now >= self.returned_at + RETURN
    }

    /// Whether suspects are ready that this build reads.
    pub(crate) fn has_suspects(&self) -> bool {
        self.known.iter().any(Known::is_suspect)
    }

    /// Where to claim from now, for at most `limit` jobs.
    pub(crate) fn heads(&self, now: Duration, limit: u32, plan: Plan) -> Vec<Head> {
        let is_wanted = |known: &&Known| match plan {
            Plan::Apart => !known.is_suspect(),
            Plan::Alone => known.is_suspect(),
            Plan::Beside => true,
            Plan::Clear => false,
        };
        let heads = self.known.iter().filter(is_wanted).filter_map(|known| {
            let limit = match known.verdict {
                RouteVerdict::Reads | RouteVerdict::Malformed => limit,
                RouteVerdict::Foreign(_) if known.is_asked || self.is_cooling(known, now) => {
                    return None;
                }
                RouteVerdict::Foreign(_) => 1,
            };
            let Known { queue, route, after, .. } = known;
            Some(Head { queue: queue.clone(), route: route.clone(), after: *after, limit })
        });
        heads.collect()
    }

    fn is_cooling(&self, known: &Known, now: Duration) -> bool {
        let key = (known.queue.clone(), known.route.clone());
        self.probe_at.get(&key).is_some_and(|at| *at > now)
    }

    /// Takes in what a claim from these heads gave; answers whether it came back short of what they could
    /// give, so that the index should be listed again.
    pub(crate) fn note(
        &mut self,
        heads: &[Head],
        jobs: &[ClaimedJob],
        limit: u32,
        now: Duration,
        draw: u64,
    ) -> bool {
        // They come in the order of what is known.
        let mut heads = heads.iter().peekable();
        for known in &mut self.known {
            let is_of = |head: &&Head| head.route == known.route && head.queue == known.queue;
            known.is_asked |= heads.next_if(is_of).is_some();
        }
        // Mostly all are of one route, which is then made once.
        for alike in jobs.chunk_by(have_one_route) {
            let (route, queue) = (alike[0].route(), &alike[0].queue);
            let known =
                self.known.iter_mut().find(|known| known.route == route && known.queue == *queue);
            let Some(known) = known else {
                continue;
            };
            match known.verdict {
                RouteVerdict::Reads | RouteVerdict::Malformed => {
                    let last = alike.iter().map(|job| job.place).max();
                    known.after = known.after.max(last);
                }
                RouteVerdict::Foreign(_) => {
                    let key = (known.queue.clone(), known.route.clone());
                    self.probe_at.insert(key, now + jittered(COOL_DOWN, draw));
                }
            }
        }
        u32::try_from(jobs.len()).unwrap_or(u32::MAX) < limit
    }

    /// When the next foreign route may be tried.
    pub(crate) fn next_probe_at(&self) -> Option<Duration> {
        let waiting = |known: &&Known| matches!(known.verdict, RouteVerdict::Foreign(_));
        let probes = self.known.iter().filter(waiting).filter_map(|known| {
            self.probe_at.get(&(known.queue.clone(), known.route.clone())).copied()
        });
        probes.min()
    }
}

/// Whether two jobs are plainly of the same route of the same queue.
fn have_one_route(a: &ClaimedJob, b: &ClaimedJob) -> bool {
    (&a.queue, &a.kind, &a.version, &a.min_reader, a.counters.crashes)
        == (&b.queue, &b.kind, &b.version, &b.min_reader, b.counters.crashes)
}

#[cfg(test)]
mod tests;
