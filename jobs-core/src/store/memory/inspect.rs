//! What people and tools look at.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::super::{BuildRecord, Count, Filter, Inspect, Paused, Result, Waiting, WorkerRecord};
use super::MemoryStore;
use super::claim::size;
use super::tables::Tables;
use crate::id::JobId;
use crate::record::{Event, JobRecord};

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
            let wanted = tables.jobs.values().filter(|job| wants(filter, job));
            wanted.take(size(limit)).cloned().collect()
        };
        Ok(self.call(jobs).await)
    }

    async fn counts(&self) -> Result<Vec<Count>> {
        Ok(self.call(|tables, _| tables.counts()).await)
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        Ok(self.call(|tables, _| tables.waiting()).await)
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

fn wants(filter: &Filter, job: &JobRecord) -> bool {
    filter.state.is_none_or(|state| job.state == state)
        && filter.queue.as_ref().is_none_or(|queue| job.queue == *queue)
        && filter.kind.as_ref().is_none_or(|kind| job.kind == *kind)
        && filter.after.is_none_or(|after| job.id > after)
}

impl Tables {
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
            let held = u64::try_from(self.runs_of(*id).count()).unwrap_or(u64::MAX);
            WorkerRecord { held, ..worker.record.clone() }
        };
        self.workers.iter().rev().map(record).collect()
    }
}
