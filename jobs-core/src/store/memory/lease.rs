//! Leases: how they begin, are renewed, and end.

use std::time::Duration;

use super::super::{
    Author, Duty, Held, Leaving, NewWorker, Phase, Renewed, Sweep, Swept, WORKERS_KEPT,
    WorkerRecord,
};
use super::Moment;
use super::claim::size;
use super::tables::{Tables, Worker, fence};
use crate::clock::Timestamp;
use crate::id::{Fence, JobId, WorkerId};
use crate::outcome::{Company, Ending, Interruption};
use crate::record::JobRecord;
use crate::state::State;

impl Tables {
    pub(super) fn register(&mut self, at: Moment, worker: &NewWorker) -> WorkerId {
        let id = self.next_worker();
        let record = WorkerRecord {
            id,
            name: worker.name.to_string(),
            build: worker.build.to_string(),
            manifest: worker.manifest.clone(),
            phase: Phase::Working,
            started_at: at.now,
            ended_at: None,
            is_taken_back: false,
            drained: None,
            reclaimed: 0,
            held: 0,
        };
        let worker = Worker { record, lease: worker.lease, renewed: at.elapsed, gone_at: None };
        self.workers.insert(id, worker);
        id
    }

    pub(super) fn renew(&mut self, elapsed: Duration, worker: WorkerId, phase: Phase) -> Renewed {
        match self.workers.get_mut(&worker) {
            Some(worker) if worker.record.ended_at.is_none() && worker.gone_at.is_none() => {
                worker.renewed = elapsed;
                worker.record.phase = phase;
                Renewed::Renewed
            }
            Some(_) | None => Renewed::Ended,
        }
    }

    pub(super) fn held(&self, worker: WorkerId) -> Vec<Held> {
        let held = |job: &JobRecord| Held {
            fence: fence(job),
            is_cancel_requested: self.cancels.contains(&fence(job)),
        };
        self.runs_of(worker).map(held).collect()
    }

    pub(super) fn sweep(&mut self, at: Moment, sweep: &Sweep) -> Swept {
        let is_expired = |worker: &&mut Worker| {
            let expires = worker.renewed.saturating_add(worker.lease.length());
            let end = worker.gone_at.unwrap_or(expires);
            worker.record.ended_at.is_none() && end.saturating_add(sweep.grace) <= at.elapsed
        };
        let mut workers = Vec::new();
        for worker in self.workers.values_mut().filter(is_expired) {
            worker.record.ended_at = Some(at.now);
            worker.record.is_taken_back = true;
            workers.push(worker.record.id);
        }
        for id in &workers {
            let held = count(self.runs_of(*id).count());
            if let Some(worker) = self.workers.get_mut(id) {
                worker.record.reclaimed = held;
            }
        }
        let is_left = |job: &&JobRecord| !job.worker.is_some_and(|worker| self.is_open(worker));
        let left: Vec<_> = self
            .in_state(State::Running)
            .filter(is_left)
            .map(|job| job.id)
            .take(size(sweep.limit))
            .collect();
        let take = |id| {
            let ending = if self.abandoned.remove(&fence(&self.jobs[&id])) {
                Ending::Interrupted(Interruption::GivenUp)
            } else {
                Ending::Crashed(self.company(id))
            };
            let lost = self.jobs[&id].worker.and_then(|worker| self.workers.get(&worker));
            let by = sweep.author(lost.map(|lost| (lost.record.id, &*lost.record.build)));
            let noticed = |settlement| sweep.noticed(settlement);
            (id, self.take_back(at.now, &by, id, (&ending, sweep.draw), noticed))
        };
        Swept { workers, jobs: left.into_iter().map(take).collect() }
    }

    pub(super) fn close(
        &mut self,
        at: Moment,
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
        draw: u64,
    ) -> Vec<JobId> {
        if !self.may_claim(worker) {
            return Vec::new();
        }
        let (abandoned, held): (Vec<_>, Vec<_>) =
            self.runs_of(worker).map(fence).partition(|run| leaving.abandoned.contains(run));
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.record.drained = Some(leaving.report(&held));
            worker.record.phase = Phase::Done;
            if abandoned.is_empty() {
                worker.record.ended_at = Some(at.now);
            } else {
                worker.gone_at = Some(at.elapsed.saturating_add(leaving.gone_in));
            }
        }
        self.abandoned.extend(abandoned);
        let give_back = |run: Fence| {
            let end = (&leaving.ending(run), draw);
            self.take_back(at.now, by, run.job, end, std::convert::identity);
            run.job
        };
        held.into_iter().map(give_back).collect()
    }

    /// Who else ran on the worker of a lost run when its lease was ended.
    fn company(&self, job: JobId) -> Company {
        let worker = self.jobs[&job].worker.and_then(|worker| self.workers.get(&worker));
        match worker.map(|worker| worker.record.reclaimed) {
            Some(1) => Company::Alone,
            Some(_) | None => Company::Others,
        }
    }

    pub(super) fn take_duty(&mut self, duty: Duty, worker: WorkerId) -> bool {
        let holder = self.duties.get(&duty).copied();
        let is_free = holder.is_none_or(|holder| holder == worker || !self.may_claim(holder));
        let takes = is_free && self.may_claim(worker);
        if takes {
            self.duties.insert(duty, worker);
        }
        takes
    }

    pub(super) fn give_back_duty(&mut self, duty: Duty, worker: WorkerId) {
        if self.duties.get(&duty) == Some(&worker) {
            self.duties.remove(&duty);
        }
    }

    /// Forgets workers that ended long ago and hold nothing, and builds that were seen long ago.
    pub(super) fn forget_workers(&mut self, now: Timestamp, limit: usize) {
        let is_old =
            |worker: &Worker| worker.record.ended_at.is_some_and(|at| at.after(WORKERS_KEPT) < now);
        let has_duty = |id| self.duties.values().any(|holder| *holder == id);
        let is_idle = |id| self.runs_of(id).next().is_none() && !has_duty(id);
        let old = self.workers.values().filter(|worker| is_old(worker));
        let old = old.map(|worker| worker.record.id).filter(|id| is_idle(*id));
        let old: Vec<_> = old.take(limit).collect();
        for id in old {
            self.workers.remove(&id);
            for schedule in self.schedules.values_mut() {
                schedule.declared.remove(&Some(id));
            }
        }
        let old = self.builds.iter().filter(|(_, seen_at)| seen_at.after(WORKERS_KEPT) < now);
        let mut old: Vec<_> = old.map(|(build, seen_at)| (*seen_at, build.clone())).collect();
        old.sort_unstable();
        for (_, build) in old.iter().take(limit) {
            self.builds.remove(build);
        }
    }

    pub(super) fn runs_of(&self, worker: WorkerId) -> impl Iterator<Item = &JobRecord> {
        self.in_state(State::Running).filter(move |job| job.worker == Some(worker))
    }
}

fn count(runs: usize) -> u64 {
    u64::try_from(runs).unwrap_or(u64::MAX)
}
