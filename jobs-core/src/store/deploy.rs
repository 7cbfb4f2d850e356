//! What drains did, of a worker and of a build: how a deploy moved work on.

use std::collections::BTreeMap;
use std::time::Duration;

use super::WorkerRecord;
use crate::clock::Timestamp;

/// What a worker did from the request to stop until it left, as it is stored with the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Drained {
    /// Runs whose outcome was settled: successes, failures, snoozes.
    pub settled: u64,
    /// Runs that were given back as interrupted.
    pub interrupted: u64,
    /// Claims that were given back unrun.
    pub released: u64,
    /// Runs whose handlers had not ended when the worker left.
    pub abandoned: u64,
    /// From the request to stop to the end.
    pub took: Duration,
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerEnd {
    /// Its lease is open.
    Open,
    /// It left by its own word; what it abandoned comes back when its process is gone.
    Drained,
    /// It fell silent, and a sweep ended its lease: killed, hung, or cut off for too long.
    TakenBack,
}

impl WorkerRecord {
    /// How it ended.
    pub const fn end(&self) -> WorkerEnd {
        if self.drained.is_some() {
            WorkerEnd::Drained
        } else if self.is_taken_back {
            WorkerEnd::TakenBack
        } else if self.ended_at.is_some() {
            WorkerEnd::Drained
        } else {
            WorkerEnd::Open
        }
    }
}

/// What became of the workers of one build, over all that the store still knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deploy {
    /// The build.
    pub build: String,
    /// When its first worker registered.
    pub started_at: Timestamp,
    /// How many workers registered; a process that lost its lease registers again.
    pub workers: u64,
    /// How many of them are open.
    pub open: u64,
    /// How many of them drained.
    pub drained: u64,
    /// How many of them were taken back.
    pub taken_back: u64,
    /// Runs that were settled in a drain.
    pub settled: u64,
    /// Runs that a drain gave back as interrupted.
    pub interrupted: u64,
    /// Claims that a drain gave back unrun.
    pub released: u64,
    /// Runs that a drain abandoned.
    pub abandoned: u64,
    /// Runs that came back only when their worker's lease had expired.
    pub reclaimed: u64,
    /// The longest drain; zero when none was.
    pub longest_drain: Duration,
}

impl Deploy {
    /// Adds the workers up by build; the build whose first worker is the newest comes first.
    pub fn of(workers: &[WorkerRecord]) -> Vec<Self> {
        let mut deploys: BTreeMap<&str, Self> = BTreeMap::new();
        for worker in workers {
            let fresh = || Self::empty(&worker.build, worker.started_at);
            deploys.entry(&worker.build).or_insert_with(fresh).add(worker);
        }
        let mut deploys: Vec<_> = deploys.into_values().collect();
        deploys.sort_by(|a, b| (b.started_at, &a.build).cmp(&(a.started_at, &b.build)));
        deploys
    }

    /// The share, from 0 to 1, of the runs that workers left behind or finished in their drains
    /// which came back only by an expired lease. `None` when there was no such run.
    ///
    /// A deploy that moves work on has none; each is a job that stood still for a lease.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share for people; counts stay far below 2^52"
    )]
    pub fn share_by_expiry(&self) -> Option<f64> {
        let Self { settled, interrupted, released, abandoned, reclaimed, .. } = self;
        let others = [*interrupted, *released, *abandoned, *reclaimed];
        let all = others.into_iter().fold(*settled, u64::saturating_add);
        (all > 0).then(|| *reclaimed as f64 / all as f64)
    }

    fn empty(build: &str, started_at: Timestamp) -> Self {
        Self {
            build: build.to_owned(),
            started_at,
            workers: 0,
            open: 0,
            drained: 0,
            taken_back: 0,
            settled: 0,
            interrupted: 0,
            released: 0,
            abandoned: 0,
            reclaimed: 0,
            longest_drain: Duration::ZERO,
        }
    }

    fn add(&mut self, worker: &WorkerRecord) {
        self.started_at = self.started_at.min(worker.started_at);
        self.workers += 1;
        match worker.end() {
            WorkerEnd::Open => self.open += 1,
            WorkerEnd::Drained => self.drained += 1,
            WorkerEnd::TakenBack => {
                self.taken_back += 1;
                add(&mut self.reclaimed, worker.reclaimed);
            }
        }
        let drained = worker.drained.unwrap_or_default();
        add(&mut self.settled, drained.settled);
        add(&mut self.interrupted, drained.interrupted);
        add(&mut self.released, drained.released);
        add(&mut self.abandoned, drained.abandoned);
        self.longest_drain = self.longest_drain.max(drained.took);
    }
}

/// Adds a count that stands on a row, where anything may stand.
fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests;
