//! A rollout in virtual time: two builds, a load, workers that are replaced and killed.
//!
//! The store in memory is the one that every other is compared with, and jobs are judged and decoded
//! by the builds' own registries; handlers are not called, since what they do is no part of a deploy.
//! Every wait and every choice comes from the seed, so that a run can be had again.

mod world;

use std::time::Duration;

use jobs_core::{Job, NewJob};

use self::world::World;
use super::report::Report;
use crate::registry::Handlers;

/// A rollout from one build to another.
#[derive(Debug)]
pub struct Simulation<'a, S> {
    old: &'a Handlers<S>,
    new: &'a Handlers<S>,
    seed: u64,
    plan: Plan,
    run_takes: (Duration, Duration),
    load: Vec<(Duration, NewJob)>,
}

/// How workers come and go.
#[derive(Debug, Clone)]
pub struct Plan {
    workers: usize,
    concurrency: usize,
    every: Duration,
    is_rolled_back: bool,
    kills: usize,
}

impl Plan {
    /// So many workers are there, of the old build; then one after another is told to stop and
    /// replaced by one of the new build, so long after each other.
    ///
    /// # Panics
    /// When there is no worker at all.
    pub fn rolling(workers: usize, every: Duration) -> Self {
        assert!(workers > 0, "a rollout has at least one worker");
        Self { workers, concurrency: 10, every, is_rolled_back: false, kills: 0 }
    }

    /// How many jobs a worker runs at once. Default: 10.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), ..self }
    }

    /// When all are new, all are rolled back to the old build, and then forwards again.
    #[must_use]
    pub fn rolled_back(self) -> Self {
        Self { is_rolled_back: true, ..self }
    }

    /// So many times, at drawn moments, a worker is killed and one of the same build started.
    #[must_use]
    pub fn kills(self, kills: usize) -> Self {
        Self { kills, ..self }
    }

    /// How many workers are replaced.
    fn steps(&self) -> usize {
        self.workers * if self.is_rolled_back { 3 } else { 1 }
    }

    /// Whether the worker that a step starts is of the new build.
    fn is_forwards(&self, step: usize) -> bool {
        (step / self.workers).is_multiple_of(2)
    }
}

impl<'a, S: Clone + Send + Sync + 'static> Simulation<'a, S> {
    /// A rollout from the registry of one build to that of another, with three workers that are
    /// replaced ten seconds after each other.
    pub fn new(old: &'a Handlers<S>, new: &'a Handlers<S>) -> Self {
        let plan = Plan::rolling(3, Duration::from_secs(10));
        let run_takes = (Duration::from_millis(100), Duration::from_secs(2));
        Self { old, new, seed: 1, plan, run_takes, load: Vec::new() }
    }

    /// Another run of the same plan.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// How workers come and go.
    #[must_use]
    pub fn plan(self, plan: Plan) -> Self {
        Self { plan, ..self }
    }

    /// How long a run takes: a drawn time between these. Default: 0.1 s to 2 s.
    #[must_use]
    pub fn run_takes(self, least: Duration, most: Duration) -> Self {
        Self { run_takes: (least, most.max(least)), ..self }
    }

    /// Enqueues jobs, spread evenly over a span from the start. What is enqueued is what the type
    /// writes, so it is old or new by its type.
    ///
    /// # Panics
    /// When a job can't be encoded.
    #[must_use]
    pub fn load<J: Job>(mut self, over: Duration, jobs: impl IntoIterator<Item = J>) -> Self {
        let encoded = jobs.into_iter().map(|job| NewJob::of(&job, jobs_core::MAX_PAYLOAD_BYTES));
        let new: Vec<NewJob> = encoded.map(|new| new.expect("the job can be encoded")).collect();
        let count = u32::try_from(new.len()).unwrap_or(u32::MAX).max(1);
        let step = over / count;
        let at = |n: usize| step * u32::try_from(n).unwrap_or(u32::MAX);
        self.load.extend(new.into_iter().enumerate().map(|(n, job)| (at(n), job)));
        self
    }

    /// Runs it to its end: until every job has ended, or for ten minutes after the last thing that
    /// is planned.
    pub async fn run(mut self) -> Report {
        self.load.sort_by_key(|(at, _)| *at);
        World::open(self).await.until_over().await
    }
}
