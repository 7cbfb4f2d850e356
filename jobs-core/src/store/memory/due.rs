//! Waiting jobs: how they come in and become ready.

use super::super::{Enqueued, Promoted};
use super::claim::size;
use super::tables::{Tables, due_at, route};
use crate::clock::Timestamp;
use crate::envelope::NewJob;
use crate::id::{ClaimNumber, JobId};
use crate::record::{Counters, JobRecord};
use crate::route::Route;
use crate::state::State;

impl Tables {
    pub(super) fn enqueue(&mut self, now: Timestamp, jobs: &[NewJob]) -> Vec<Enqueued> {
        jobs.iter().map(|job| self.add(now, job)).collect()
    }

    fn add(&mut self, now: Timestamp, new: &NewJob) -> Enqueued {
        let key = new.unique_key.as_ref().map(AsRef::as_ref);
        if let Some(twin) = self.twin(None, new.kind.as_str(), key) {
            return Enqueued::AlreadyThere(twin);
        }
        let id = self.next_job();
        self.jobs.insert(id, record(id, now, new));
        Enqueued::Added(id)
    }

    pub(super) fn promote(&mut self, now: Timestamp, limit: u32) -> Promoted {
        let mut scheduled: Vec<_> =
            self.in_state(State::Scheduled).map(|job| (job.due_at, job.id)).collect();
        scheduled.sort_unstable();
        let due = scheduled.iter().take_while(|(due_at, _)| *due_at <= now).take(size(limit));
        let promoted = due.count();
        for (_, id) in &scheduled[..promoted] {
            self.make_ready(*id, now);
        }
        let next = scheduled.get(promoted);
        Promoted {
            count: u32::try_from(promoted).unwrap_or(u32::MAX),
            next_in: next.map(|(due_at, _)| due_at.since(now)),
        }
    }

    pub(super) fn refused_routes(&self) -> Vec<Route> {
        let mut routes: Vec<_> = self.refused().map(route).collect();
        routes.sort_unstable();
        routes.dedup();
        routes
    }

    pub(super) fn recall(&mut self, now: Timestamp, routes: &[Route], limit: u32) -> u32 {
        let on_routes = self.refused().filter(|job| routes.contains(&route(job)));
        let recalled: Vec<_> = on_routes.map(|job| job.id).take(size(limit)).collect();
        for id in &recalled {
            self.make_ready(*id, now);
        }
        u32::try_from(recalled.len()).unwrap_or(u32::MAX)
    }

    /// Makes a scheduled job ready, due now at the latest.
    pub(super) fn make_ready(&mut self, id: JobId, now: Timestamp) {
        if let Some(job) = self.jobs.get_mut(&id) {
            assert_eq!(job.state, State::Scheduled, "only a scheduled job becomes ready by itself");
            job.state = State::Ready;
            job.due_at = job.due_at.min(now);
        }
    }

    fn refused(&self) -> impl Iterator<Item = &JobRecord> {
        self.in_state(State::Scheduled).filter(|job| job.refused.is_some())
    }

    pub(super) fn in_state(&self, state: State) -> impl Iterator<Item = &JobRecord> {
        self.jobs.values().filter(move |job| job.state == state)
    }
}

fn record(id: JobId, now: Timestamp, new: &NewJob) -> JobRecord {
    let due_at = due_at(new.due, now, now);
    JobRecord {
        id,
        state: if due_at <= now { State::Ready } else { State::Scheduled },
        queue: new.queue.to_string(),
        kind: new.kind.to_string(),
        version: new.version.to_string(),
        min_reader: Some(new.min_reader.to_string()),
        payload: new.payload.clone(),
        headers: new.headers.clone(),
        unique_key: new.unique_key.as_ref().map(ToString::to_string),
        priority: new.priority,
        claim: ClaimNumber(0),
        worker: None,
        counters: Counters::default(),
        budget: new.budget,
        checkpoint: None,
        refused: None,
        error_class: None,
        error: None,
        build: new.build.as_ref().map(ToString::to_string),
        enqueued_at: now,
        due_at,
        claimed_at: None,
        finished_at: None,
        progress: None,
        result: None,
    }
}
