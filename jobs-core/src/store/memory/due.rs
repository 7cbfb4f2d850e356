//! Waiting jobs: how they come in and become ready.

use super::super::{EXPIRED, Enqueued, Promoted};
use super::claim::size;
use super::tables::{Tables, due_at, route, turn};
use crate::clock::Timestamp;
use crate::envelope::{NewJob, UniqueWhile};
use crate::id::{ClaimNumber, JobId};
use crate::record::{Counters, JobRecord};
use crate::route::Route;
use crate::state::State;

impl Tables {
    pub(super) fn enqueue(&mut self, now: Timestamp, jobs: &[NewJob]) -> Vec<Enqueued> {
        jobs.iter().map(|job| self.add(now, job)).collect()
    }

    fn add(&mut self, now: Timestamp, new: &NewJob) -> Enqueued {
        if let Some(twin) = self.binds(new) {
            self.renew_twin(now, twin, new);
            return Enqueued::AlreadyThere(twin);
        }
        let id = self.next_job();
        self.jobs.insert(id, record(id, now, new));
        Enqueued::Added(id)
    }

    /// The job that binds the key of a new one.
    fn binds(&self, new: &NewJob) -> Option<JobId> {
        let key = Some(new.unique_key.as_ref()?.as_str());
        let waits = self.twin(None, new.kind.as_str(), key);
        waits.or_else(|| {
            let binds = |job: &&JobRecord| {
                job.kind == new.kind.as_str()
                    && job.unique_key.as_deref() == key
                    && binds_beyond_waiting(job, new.unique_while)
            };
            let bound = self.jobs.values().filter(binds);
            // One that runs goes before one that is only kept.
            bound.min_by_key(|job| (job.state != State::Running, job.id)).map(|job| job.id)
        })
    }

    /// What a new job does to the waiting one that stands for it.
    fn renew_twin(&mut self, now: Timestamp, twin: JobId, new: &NewJob) {
        let job = self.jobs.get_mut(&twin).filter(|job| job.state.is_waiting());
        let Some(job) = job else { return };
        let fresh = record(twin, now, new);
        if new.on_conflict.replaces() {
            *job = JobRecord {
                version: fresh.version.clone(),
                min_reader: fresh.min_reader.clone(),
                payload: fresh.payload.clone(),
                headers: fresh.headers.clone(),
                build: fresh.build.clone(),
                counters: Counters::default(),
                checkpoint: None,
                refused: None,
                progress: None,
                ..job.clone()
            };
        }
        if new.on_conflict.reschedules() {
            turn(job, fresh.state);
            job.due_at = fresh.due_at;
            job.priority = fresh.priority;
            job.expires_at = fresh.expires_at;
        }
    }

    pub(super) fn expire(&mut self, now: Timestamp, limit: u32) -> u32 {
        let is_over = |job: &&JobRecord| job.expires_at.is_some_and(|at| at <= now);
        let waiting = self.jobs.values().filter(|job| job.state.is_waiting());
        let over = waiting.filter(is_over).map(|job| (job.expires_at, job.id));
        let mut over: Vec<_> = over.collect();
        over.sort_unstable();
        over.truncate(size(limit));
        for (_, id) in &over {
            self.end_dead(now, *id, EXPIRED, "no run was started in time");
        }
        u32::try_from(over.len()).unwrap_or(u32::MAX)
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
            turn(job, State::Ready);
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

/// Whether a job that does not wait binds its key for a new one that asks for so much.
fn binds_beyond_waiting(job: &JobRecord, new: UniqueWhile) -> bool {
    match (job.unique_while, new) {
        (UniqueWhile::Waiting, _) | (_, UniqueWhile::Waiting) => false,
        (UniqueWhile::Kept, UniqueWhile::Kept) => true,
        (UniqueWhile::Running | UniqueWhile::Kept, UniqueWhile::Running | UniqueWhile::Kept) => {
            job.state == State::Running
        }
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
        unique_while: UniqueWhile::from_name(new.stored_scope()),
        expires_at: new.expires_in.map(|wait| due_at.after(wait)),
        key_number: 0,
        progress: None,
        result: None,
    }
}
