//! The tables of the memory store, and the few questions that every operation asks of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::super::{Author, Duty, Paused, WorkerRecord};
use super::schedule::Schedule;
use crate::clock::Timestamp;
use crate::envelope::UniqueWhile;
use crate::id::{ClaimNumber, Fence, JobId, WorkerId};
use crate::lease::Lease;
use crate::name::ScheduleName;
use crate::record::{Event, EventKind, JobRecord, MAX_EVENTS, NewEvent, Place};
use crate::route::Route;
use crate::state::State;
use crate::transition::Due;

/// All that the store keeps. A copy of it is a snapshot.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    pub(super) jobs: BTreeMap<JobId, JobRecord>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    /// Requests to cancel runs.
    pub(super) cancels: BTreeSet<Fence>,
    /// Runs that their worker abandoned when it left.
    pub(super) abandoned: BTreeSet<Fence>,
    pub(super) events: BTreeMap<JobId, VecDeque<Event>>,
    pub(super) paused: BTreeMap<String, Paused>,
    pub(super) schedules: BTreeMap<ScheduleName, Schedule>,
    /// What builds published, and when they were last seen.
    pub(super) builds: BTreeMap<(String, String), Timestamp>,
    /// Who has a duty, or had it last.
    pub(super) duties: BTreeMap<Duty, WorkerId>,
    /// Whether only a newer build may go on with it.
    pub(super) is_outgrown: bool,
    last_job: i64,
    last_worker: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) record: WorkerRecord,
    pub(super) lease: Lease,
    /// When its lease was last renewed.
    pub(super) renewed: Duration,
    /// When its process is gone, once it leaves with runs that have not ended.
    pub(super) gone_at: Option<Duration>,
}

impl Tables {
    pub(super) fn next_job(&mut self) -> JobId {
        self.last_job += 1;
        JobId(self.last_job)
    }

    pub(super) fn next_worker(&mut self) -> WorkerId {
        self.last_worker += 1;
        WorkerId(self.last_worker)
    }

    /// The job of a fence, where the fence holds.
    pub(super) fn running(&mut self, fence: Fence) -> Option<&mut JobRecord> {
        let job = self.jobs.get_mut(&fence.job)?;
        (job.state == State::Running && job.claim == fence.claim).then_some(job)
    }

    /// The other waiting job of a kind and a unique key.
    pub(super) fn twin(&self, of: Option<JobId>, kind: &str, key: Option<&str>) -> Option<JobId> {
        let key = key?;
        let is_twin = |job: &&JobRecord| {
            job.state.is_waiting()
                && Some(job.id) != of
                && job.kind == kind
                && job.unique_key.as_deref() == Some(key)
        };
        self.jobs.values().find(is_twin).map(|job| job.id)
    }

    /// The running job that keeps a job, which binds its key while it runs, from coming back.
    pub(super) fn running_twin(&self, of: &JobRecord) -> Option<JobId> {
        let binds = |job: &JobRecord| job.unique_while != UniqueWhile::Waiting;
        let is_twin = |job: &&JobRecord| {
            job.state == State::Running
                && job.id != of.id
                && job.kind == of.kind
                && job.unique_key.is_some()
                && job.unique_key == of.unique_key
                && binds(job)
        };
        self.jobs.values().find(is_twin).filter(|_| binds(of)).map(|job| job.id)
    }

    /// Whether claims may be made under a worker's lease.
    pub(super) fn may_claim(&self, worker: WorkerId) -> bool {
        let worker = self.workers.get(&worker);
        worker.is_some_and(|worker| worker.record.ended_at.is_none() && worker.gone_at.is_none())
    }

    /// Whether a worker's runs are its own.
    pub(super) fn is_open(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|worker| worker.record.ended_at.is_none())
    }

    /// Writes a line of a job's history; the oldest give way.
    pub(super) fn record(
        &mut self,
        at: Timestamp,
        fence: Fence,
        by: Option<&Author>,
        event: NewEvent,
    ) {
        let events = self.events.entry(fence.job).or_default();
        let NewEvent { kind, class, text } = event;
        let last = events.back().map_or(0, |last| last.number);
        // The largest number is the latest line's for ever.
        if last == i64::MAX {
            events.pop_back();
        }
        events.push_back(Event {
            number: last.saturating_add(1),
            at,
            claim: fence.claim,
            kind,
            class,
            text,
            worker: by.and_then(|by| by.worker),
            build: by.map(|by| by.build.as_str().to_owned()),
        });
        while i64::try_from(events.len()).is_ok_and(|kept| kept > MAX_EVENTS) {
            events.pop_front();
        }
    }
}

/// Changes the state of a job, along an edge of [`State::next`].
pub(super) fn turn(job: &mut JobRecord, to: State) {
    let from = job.state;
    assert!(from == to || from.next().contains(&to), "a {from} job can't become {to}");
    job.state = to;
}

pub(super) fn fence(job: &JobRecord) -> Fence {
    Fence { job: job.id, claim: job.claim }
}

pub(super) fn place(job: &JobRecord) -> Place {
    job.priority.place(job.due_at, job.id)
}

pub(super) fn route(job: &JobRecord) -> Route {
    let route = Route::derive(&job.kind, &job.version, job.min_reader.as_deref());
    route.after_crashes(job.counters.crashes)
}

/// The next claim number, held at the largest.
pub(super) fn advance(claim: ClaimNumber) -> ClaimNumber {
    ClaimNumber(claim.0.saturating_add(1))
}

pub(super) fn due_at(due: Due, before: Timestamp, now: Timestamp) -> Timestamp {
    match due {
        Due::Unchanged => before,
        Due::In(wait) => now.after(wait),
        Due::At(instant) => instant,
    }
}

pub(super) fn event(kind: EventKind, class: &str, text: String) -> NewEvent {
    NewEvent { kind, class: class.to_owned(), text }
}
