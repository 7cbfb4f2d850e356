//! What people and tools look at.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::super::{
    Brief, BuildRecord, Count, Depth, Filter, Inspect, Paused, Result, Waiting, WorkerRecord,
};
use super::MemoryStore;
use super::claim::size;
use super::tables::{Tables, place, route};
use crate::id::JobId;
use crate::record::{Event, JobRecord};
use crate::route::Route;
use crate::state::State;

#[async_trait]
impl Inspect for MemoryStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>> {
        Ok(self.call(|tables, _| tables.jobs.get(&id).cloned()).await)
    }

    async fn events(&self, id: JobId) -> Result<Vec<Event>> {
        let events = |tables: &mut Tables, _| {
            tables.events.get(&id).into_iter().flatten().cloned().collect()
        };
        Ok(self.call(events).await)
    }

    async fn jobs(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>> {
        let jobs = |tables: &mut Tables, _| {
            let wanted = tables.jobs.values().filter(|job| tables.wants(filter, job));
            let behind = wanted.filter(|job| filter.after.is_none_or(|after| job.id > after));
            behind.take(size(limit)).cloned().collect()
        };
        Ok(self.call(jobs).await)
    }

    async fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>> {
        let jobs = |tables: &mut Tables, _| {
            let wanted = tables.jobs.values().rev().filter(|job| tables.wants(filter, job));
            let behind = wanted.filter(|job| filter.after.is_none_or(|after| job.id < after));
            behind.take(size(limit)).cloned().collect()
        };
        Ok(self.call(jobs).await)
    }

    async fn briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>> {
        Ok(self.jobs(filter, limit).await?.iter().map(Brief::of).collect())
    }

    async fn newest_briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>> {
        Ok(self.newest(filter, limit).await?.iter().map(Brief::of).collect())
    }

    async fn briefs_of(&self, jobs: &[JobId]) -> Result<Vec<Brief>> {
        let wanted: BTreeSet<JobId> = jobs.iter().copied().collect();
        let briefs = |tables: &mut Tables, _| {
            wanted.iter().filter_map(|id| tables.jobs.get(id)).map(Brief::of).collect()
        };
        Ok(self.call(briefs).await)
    }

    async fn depth(&self, most: u32) -> Result<Depth> {
        Ok(self.call(|tables, _| tables.depth(most)).await)
    }

    async fn counts(&self) -> Result<Vec<Count>> {
        Ok(self.call(|tables, _| tables.counts()).await)
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        Ok(self.call(|tables, _| tables.waiting()).await)
    }

    async fn count_due(&self, routes: &[Route], most: u32) -> Result<Vec<u64>> {
        let count = |tables: &mut Tables, _| {
            routes.iter().map(|route| tables.count_due(route, most)).collect()
        };
        Ok(self.call(count).await)
    }

    async fn builds(&self) -> Result<Vec<BuildRecord>> {
        Ok(self.call(|tables, _| tables.builds()).await)
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        Ok(self.call(|tables, _| tables.worker_records()).await)
    }

    async fn paused(&self) -> Result<Vec<Paused>> {
        Ok(self.call(|tables, _| tables.paused.values().cloned().collect()).await)
    }
}

/// Whether a filter lets a value through.
fn is<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
    wanted.is_none() || wanted == found
}

impl Tables {
    /// Whether a job is one of those that a filter asks for, wherever the page begins.
    fn wants(&self, filter: &Filter, job: &JobRecord) -> bool {
        let latest = || self.events.get(&job.id)?.back()?.build.as_ref();
        is(filter.state.as_ref(), Some(&job.state))
            && is(filter.queue.as_ref(), Some(&job.queue))
            && is(filter.kind.as_ref(), Some(&job.kind))
            && is(filter.class.as_ref(), job.error_class.as_ref())
            && is(filter.enqueued_by.as_ref(), job.build.as_ref())
            && (filter.failed_by.is_none() || filter.failed_by.as_ref() == latest())
            && filter.enqueued.contains(job.enqueued_at)
            && (filter.finished.is_open()
                || job.finished_at.is_some_and(|at| filter.finished.contains(at)))
    }

    fn depth(&self, most: u32) -> Depth {
        let count = |state| {
            let jobs = self.jobs.values().filter(|job| job.state == state);
            (state, number(jobs.take(size(most)).count()))
        };
        let states = State::ALL.map(count);
        let mut routes: BTreeMap<_, Vec<&JobRecord>> = BTreeMap::new();
        let mut running = BTreeMap::new();
        for job in self.jobs.values() {
            match job.state {
                State::Ready => routes.entry((&job.queue, route(job))).or_default().push(job),
                State::Running => *running.entry(job.queue.clone()).or_insert(0) += 1,
                State::Scheduled | State::Succeeded | State::Dead | State::Cancelled => {}
            }
        }
        let of_route = |((queue, _), jobs): ((&String, _), Vec<&JobRecord>)| {
            let first = jobs.iter().min_by_key(|job| place(job))?;
            Some((queue.clone(), number(jobs.len()), first.due_at))
        };
        Depth::gather(states.into(), routes.into_iter().filter_map(of_route), running, most)
    }

    fn counts(&self) -> Vec<Count> {
        let mut counts = BTreeMap::new();
        for job in self.jobs.values() {
            *counts.entry((&job.queue, &job.kind, &job.version, job.state)).or_insert(0) += 1;
        }
        let count = |((queue, kind, version, state), jobs): ((&String, &String, &String, _), _)| {
            let (queue, kind, version) = (queue.clone(), kind.clone(), version.clone());
            Count { queue, kind, version, state, jobs }
        };
        counts.into_iter().map(count).collect()
    }

    fn worker_records(&self) -> Vec<WorkerRecord> {
        let record = |(id, worker): (&_, &super::tables::Worker)| {
            let held = number(self.runs_of(*id).count());
            WorkerRecord { held, ..worker.record.clone() }
        };
        self.workers.iter().rev().map(record).collect()
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
