//! All that a store says of itself, without instants and in shared numbers.

use super::super::super::{
    CANCELLED, Count, EXHAUSTED, EXPIRED, Filter, Paused, REDRIVEN, SUPERSEDED, ScheduleRecord,
    Tick, WorkerRecord,
};
use super::super::scene::ALL;
use super::side::{NEVER, Side};
use crate::record::{Event, JobRecord};

#[derive(Debug, PartialEq)]
pub(super) struct Snapshot {
    pub(super) jobs: Vec<(JobRecord, Vec<Event>)>,
    pub(super) counts: Vec<Count>,
    pub(super) workers: Vec<WorkerRecord>,
    pub(super) paused: Vec<Paused>,
    pub(super) schedules: Vec<(ScheduleRecord, Vec<Tick>)>,
}

impl Side<'_> {
    pub(super) async fn snapshot(&self) -> Snapshot {
        let inspect = self.subject.inspect();
        let mut jobs = Vec::new();
        for record in inspect.jobs(&Filter::default(), ALL).await.unwrap() {
            let events = inspect.events(record.id).await.unwrap();
            let events = events.into_iter().map(|event| self.shared_event(event)).collect();
            jobs.push((self.shared_record(record), events));
        }
        let mut counts = inspect.counts().await.unwrap();
        counts.sort_by_key(|count| {
            (count.queue.clone(), count.kind.clone(), count.version.clone(), count.state)
        });
        let workers = inspect.workers().await.unwrap();
        let workers = workers.into_iter().map(|worker| self.shared_worker_record(worker)).collect();
        let paused = inspect.paused().await.unwrap();
        let mut paused: Vec<_> =
            paused.into_iter().map(|paused| Paused { at: NEVER, ..paused }).collect();
        paused.sort_by(|a, b| a.queue.cmp(&b.queue));
        let mut schedules = Vec::new();
        for record in self.schedules().await {
            let ticks = self.ticks(&record.name).await;
            schedules.push((record, ticks));
        }
        Snapshot { jobs, counts, workers, paused, schedules }
    }

    fn shared_record(&self, record: JobRecord) -> JobRecord {
        let is_ours = record.error_class.as_deref().is_some_and(is_worded_by_the_store);
        JobRecord {
            id: self.shared_job(record.id),
            worker: record.worker.map(|worker| self.shared_worker(worker)),
            error: if is_ours { None } else { record.error.clone() },
            enqueued_at: NEVER,
            due_at: NEVER,
            claimed_at: record.claimed_at.map(|_| NEVER),
            finished_at: record.finished_at.map(|_| NEVER),
            expires_at: record.expires_at.map(|_| NEVER),
            ..record
        }
    }

    fn shared_event(&self, event: Event) -> Event {
        let text =
            if is_worded_by_the_store(&event.class) { String::new() } else { event.text.clone() };
        let worker = event.worker.map(|worker| self.shared_worker(worker));
        Event { at: NEVER, worker, text, ..event }
    }

    fn shared_worker_record(&self, worker: WorkerRecord) -> WorkerRecord {
        WorkerRecord {
            id: self.shared_worker(worker.id),
            started_at: NEVER,
            ended_at: worker.ended_at.map(|_| NEVER),
            ..worker
        }
    }
}

/// Classes whose texts are for people and differ from store to store.
fn is_worded_by_the_store(class: &str) -> bool {
    [CANCELLED, SUPERSEDED, REDRIVEN, EXHAUSTED, EXPIRED].contains(&class)
}
