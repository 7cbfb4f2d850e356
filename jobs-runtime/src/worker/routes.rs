//! Which routes to claim from and where: what this worker knows of the ready index.
//!
//! 1. A route that this build reads is claimed from where its last claim ended, so that a claim
//!    never walks the dead entries at the head. It returns to what a [look](super::look) saw before
//!    that place, and only then: what the claims since have taken is behind them.
//! 2. Of a route that it can't read it tries one job per cool-down, so that the job says why it
//!    waits and a rollout stays cheap. Where other jobs come first, the try is made with the claims from
//!    the head alone: a claim from many heads costs several times that from one.
//! 3. A wake-up says only that jobs came. They are mostly of a route that gave some lately, so that is
//!    guessed.
//! 4. Suspects that it reads stand apart from all others. One that it can't read will not run here,
//!    so it is tried like any foreign job.

use std::collections::HashMap;
use std::time::Duration;

use jobs_core::store::{Head, ReadyRoute};
use jobs_core::{ClaimedJob, Place, QueueName, Route, RouteVerdict, jittered};

use super::suspects::Plan;

/// How long a route that this build can't read is left alone after one job of it was tried, moved
/// by up to a tenth.
pub(crate) const COOL_DOWN: Duration = Duration::from_secs(10);
/// How long ago a route may have given its last job to be guessed.
const LATELY: Duration = Duration::from_secs(10);
/// How many routes are guessed at most: a claim from more costs as much as a look that knows.
const GUESSES: usize = 8;

#[derive(Debug)]
struct Known {
    queue: QueueName,
    route: Route,
    verdict: RouteVerdict,
    /// Where the next claim starts.
    from: Place,
    /// Where that was when the look was sent that is under way.
    looked_from: Place,
    /// Whether it may have ready jobs.
    is_ready: bool,
    /// Whether a claim has asked for a job of it since the last look.
    is_asked: bool,
    /// When a claim last got jobs of it.
    gave_at: Option<Duration>,
}

impl Known {
    fn new(queue: QueueName, route: Route, verdict: RouteVerdict, first: Place) -> Self {
        Self {
            queue,
            route,
            verdict,
            from: first,
            looked_from: first,
            is_ready: true,
            is_asked: false,
            gave_at: None,
        }
    }

    /// Whether a job of it may start here, beside all others.
    fn is_plain(&self) -> bool {
        self.verdict == RouteVerdict::Reads && !self.route.is_suspect()
    }

    fn is_guess(&self, now: Duration) -> bool {
        self.is_plain() && self.gave_at.is_some_and(|at| now < at + LATELY)
    }

    /// Whether a job of it may start here, and may end this worker.
    fn is_suspect(&self) -> bool {
        self.verdict == RouteVerdict::Reads && self.route.is_suspect()
    }
}

/// What a worker knows of the ready index.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// In order of queue and route.
    known: Vec<Known>,
    /// When the next job of a foreign route may be tried.
    probe_at: HashMap<(QueueName, Route), Duration>,
}

impl Routes {
    /// A look is sent.
    pub(crate) fn looking(&mut self) {
        for known in &mut self.known {
            known.looked_from = known.from;
        }
    }

    /// Takes in what a look saw, since [`looking`](Self::looking).
    pub(crate) fn refresh(
        &mut self,
        seen: Vec<ReadyRoute>,
        now: Duration,
        judge: impl Fn(&Route) -> RouteVerdict,
    ) {
        for known in &mut self.known {
            (known.is_ready, known.is_asked) = (false, false);
        }
        for ReadyRoute { queue, route, first } in seen {
            match self.find(&queue, &route) {
                Ok(at) => {
                    let known = &mut self.known[at];
                    known.is_ready = true;
                    known.from =
                        if first < known.looked_from { first } else { first.max(known.from) };
                }
                Err(at) => {
                    let verdict = judge(&route);
                    self.known.insert(at, Known::new(queue, route, verdict, first));
                }
            }
        }
        self.known.retain(|known| known.is_ready || known.is_guess(now));
        self.probe_at.retain(|_, at| *at > now);
    }

    /// Where a route is, or belongs, among what is known.
    fn find(&self, queue: &QueueName, route: &Route) -> Result<usize, usize> {
        self.known.binary_search_by(|known| (&known.queue, &known.route).cmp(&(queue, route)))
    }

    /// Jobs have come: takes it that they are of the routes that gave some lately, and answers whether
    /// there are any.
    pub(crate) fn guess(&mut self, now: Duration) -> bool {
        let guesses = self.known.iter().filter(|known| known.is_guess(now)).count();
        if !(1..=GUESSES).contains(&guesses) {
            return false;
        }
        for known in self.known.iter_mut().filter(|known| known.is_plain()) {
            known.is_ready = known.is_guess(now);
        }
        true
    }

    /// Whether suspects are ready that this build reads.
    pub(crate) fn has_suspects(&self) -> bool {
        self.known.iter().any(|known| known.is_ready && known.is_suspect())
    }

    /// Where to claim from now, for at most `limit` jobs.
    pub(crate) fn heads(&self, now: Duration, limit: u32, plan: Plan) -> Vec<Head> {
        let is_wanted = |known: &&Known| {
            let is_planned = match plan {
                Plan::Apart => !known.is_suspect(),
                Plan::Alone => known.is_suspect(),
                Plan::Beside => true,
                Plan::Clear => false,
            };
            known.is_ready && is_planned
        };
        let heads = self.known.iter().filter(is_wanted).filter_map(|known| {
            let limit = match known.verdict {
                RouteVerdict::Reads | RouteVerdict::Malformed => limit,
                RouteVerdict::Foreign(_) if known.is_asked || self.is_cooling(known, now) => {
                    return None;
                }
                RouteVerdict::Foreign(_) => 1,
            };
            let Known { queue, route, from, .. } = known;
            Some(Head { queue: queue.clone(), route: route.clone(), from: *from, limit })
        });
        heads.collect()
    }

    fn is_cooling(&self, known: &Known, now: Duration) -> bool {
        let key = (known.queue.clone(), known.route.clone());
        self.probe_at.get(&key).is_some_and(|at| *at > now)
    }

    /// Takes in what a claim from these heads gave.
    pub(crate) fn note(&mut self, heads: &[Head], jobs: &[ClaimedJob], now: Duration, draw: u64) {
        // They come in the order of what is known.
        let mut heads = heads.iter().peekable();
        for known in &mut self.known {
            let is_of = |head: &&Head| head.route == known.route && head.queue == known.queue;
            known.is_asked |= heads.next_if(is_of).is_some();
        }
        // Mostly all are of one route, which is then made once.
        for alike in jobs.chunk_by(have_one_route) {
            let (route, queue) = (alike[0].route(), &alike[0].queue);
            let Ok(at) = self.find(queue, &route) else {
                continue;
            };
            let known = &mut self.known[at];
            match known.verdict {
                RouteVerdict::Reads | RouteVerdict::Malformed => {
                    let last = alike.iter().map(|job| job.place).max();
                    known.from = last.map_or(known.from, |last| last.max(known.from));
                    known.gave_at = Some(now);
                }
                RouteVerdict::Foreign(_) => {
                    let key = (known.queue.clone(), known.route.clone());
                    self.probe_at.insert(key, now + jittered(COOL_DOWN, draw));
                }
            }
        }
    }

    /// When the next foreign route may be tried.
    pub(crate) fn next_probe_at(&self) -> Option<Duration> {
        let waiting =
            |known: &&Known| known.is_ready && matches!(known.verdict, RouteVerdict::Foreign(_));
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
