//! What people and tools change, and retention.

use std::time::Duration;

use async_trait::async_trait;

use super::super::{
    CANCELLED, Cancelled, MAX_PAUSE_BYTES, Operate, Paused, REDRIVEN, REDRIVEN_TEXT, RESCHEDULED,
    RUN_NOW, RUN_NOW_TEXT, Redrive, Redriven, Reschedule, Result, Retention,
};
use super::MemoryStore;
use super::claim::size;
use super::tables::{Tables, due_at, event, fence, turn};
use crate::clock::Timestamp;
use crate::id::JobId;
use crate::name::QueueName;
use crate::outcome::storable;
use crate::record::{Counters, EventKind, JobRecord};
use crate::state::State;
use crate::transition::Due;

#[async_trait]
impl Operate for MemoryStore {
    async fn cancel(&self, jobs: &[JobId]) -> Result<Vec<Cancelled>> {
        let cancel = |tables: &mut Tables, at: super::Moment| {
            jobs.iter().map(|id| tables.cancel(at.now, *id)).collect()
        };
        Ok(self.waking(cancel).await)
    }

    async fn redrive(&self, jobs: &[JobId], redrive: Redrive) -> Result<Vec<Redriven>> {
        let redrive = |tables: &mut Tables, at: super::Moment| {
            jobs.iter().map(|id| tables.redrive(at.now, *id, redrive)).collect()
        };
        Ok(self.waking(redrive).await)
    }

    async fn run_now(&self, jobs: &[JobId]) -> Result<Vec<bool>> {
        let run_now = |tables: &mut Tables, at: super::Moment| {
            jobs.iter().map(|id| tables.run_now(at.now, *id)).collect()
        };
        Ok(self.waking(run_now).await)
    }

    async fn reschedule(&self, jobs: &[JobId], change: Reschedule) -> Result<Vec<bool>> {
        let reschedule = |tables: &mut Tables, at: super::Moment| {
            jobs.iter().map(|id| tables.reschedule(at.now, *id, change)).collect()
        };
        Ok(self.waking(reschedule).await)
    }

    async fn pause(&self, queue: &QueueName, by: &str, reason: &str) -> Result<()> {
        self.call(|tables, at| tables.pause(at.now, queue, by, reason)).await;
        Ok(())
    }

    async fn resume(&self, queue: &QueueName) -> Result<()> {
        self.waking(|tables, _| tables.paused.remove(queue.as_str())).await;
        Ok(())
    }
}

impl Tables {
    fn cancel(&mut self, now: Timestamp, id: JobId) -> Cancelled {
        let Some(job) = self.jobs.get_mut(&id) else {
            return Cancelled::Missing;
        };
        let fence = fence(job);
        match job.state {
            State::Scheduled | State::Ready => {
                turn(job, State::Cancelled);
                job.finished_at = Some(now);
                let text = "cancelled while it waited".to_owned();
                self.record(now, fence, None, event(EventKind::Cancelled, CANCELLED, text));
                Cancelled::Cancelled
            }
            State::Running => {
                self.cancels.insert(fence);
                Cancelled::Requested
            }
            State::Succeeded | State::Dead | State::Cancelled => Cancelled::Finished(job.state),
        }
    }

    fn redrive(&mut self, now: Timestamp, id: JobId, redrive: Redrive) -> Redriven {
        let Some(job) = self.jobs.get(&id) else {
            return Redriven::Missing;
        };
        match job.state {
            State::Dead | State::Cancelled => {}
            State::Scheduled | State::Ready | State::Running | State::Succeeded => {
                return Redriven::Not(job.state);
            }
        }
        if redrive.ended_before.is_some_and(|before| job.finished_at >= Some(before)) {
            return Redriven::EndedLater;
        }
        if let Some(twin) = self
            .twin(Some(id), &job.kind, job.unique_key.as_deref())
            .or_else(|| self.running_twin(job))
        {
            return Redriven::TwinWaits(twin);
        }
        let fence = fence(job);
        if let Some(job) = self.jobs.get_mut(&id) {
            bring_back(job, now, redrive);
        }
        let text = REDRIVEN_TEXT.to_owned();
        self.record(now, fence, None, event(EventKind::Redriven, REDRIVEN, text));
        Redriven::Ready
    }

    fn run_now(&mut self, now: Timestamp, id: JobId) -> bool {
        let scheduled = self.jobs.get(&id).filter(|job| job.state == State::Scheduled);
        let Some(fence) = scheduled.map(fence) else { return false };
        self.make_ready(id, now);
        let text = RUN_NOW_TEXT.to_owned();
        self.record(now, fence, None, event(EventKind::Rescheduled, RUN_NOW, text));
        true
    }

    fn reschedule(&mut self, now: Timestamp, id: JobId, change: Reschedule) -> bool {
        let job = self.jobs.get_mut(&id).filter(|job| job.state.is_waiting());
        let Some(job) = job else { return false };
        let fence = fence(job);
        job.priority = change.priority.unwrap_or(job.priority);
        if let Some(due) = change.due.filter(|due| *due != Due::Unchanged) {
            job.due_at = due_at(due, job.due_at, now);
            let state = if job.due_at <= now { State::Ready } else { State::Scheduled };
            turn(job, state);
        }
        self.record(now, fence, None, event(EventKind::Rescheduled, RESCHEDULED, change.text()));
        true
    }

    fn pause(&mut self, now: Timestamp, queue: &QueueName, by: &str, reason: &str) {
        let queue = queue.to_string();
        self.paused.entry(queue.clone()).or_insert_with(|| Paused {
            queue,
            by: storable(by, MAX_PAUSE_BYTES),
            reason: storable(reason, MAX_PAUSE_BYTES),
            at: now,
        });
    }

    pub(super) fn prune(&mut self, now: Timestamp, retention: Retention, limit: u32) -> u32 {
        let ended = |job: &JobRecord| {
            let kept = kept(job.state, retention)?;
            job.finished_at.filter(|at| at.after(kept) < now).map(|at| (at, job.id))
        };
        let mut old: Vec<_> = self.jobs.values().filter_map(ended).collect();
        old.sort_unstable();
        old.truncate(size(limit));
        for (_, id) in &old {
            self.jobs.remove(id);
            self.events.remove(id);
        }
        if old.len() < size(limit) {
            self.forget_workers(now, size(limit));
        }
        u32::try_from(old.len()).unwrap_or(u32::MAX)
    }
}

fn bring_back(job: &mut JobRecord, now: Timestamp, redrive: Redrive) {
    turn(job, State::Ready);
    job.due_at = now;
    job.finished_at = None;
    job.expires_at = None;
    job.key_number = job.key_number.saturating_add(u32::from(redrive.makes_new_key));
    if !redrive.keeps_counters {
        job.counters = Counters::default();
    }
    if redrive.forgets_checkpoint {
        job.checkpoint = None;
    }
}

fn kept(state: State, retention: Retention) -> Option<Duration> {
    match state {
        State::Succeeded => Some(retention.succeeded),
        State::Cancelled => Some(retention.cancelled),
        State::Dead => Some(retention.dead),
        State::Scheduled | State::Ready | State::Running => None,
    }
}
