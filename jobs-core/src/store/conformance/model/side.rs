//! One of the two stores, spoken to in shared numbers.

use std::time::Duration;

use async_lock::Mutex;

use super::super::super::{
    Author, Cancelled, CheckpointSave, Claim, Claimed, Enqueued, Head, Heartbeat, Held, Leaving,
    NewWorker, Phase, Redriven, Retention, Sweep, Swept, Transaction,
};
use super::super::scene::{ALL, NO_JITTER, build, new_worker};
use super::super::{Subject, Tampering};
use super::step::{Answer, End, From, Inner, Order, Step, Taking};
use crate::clock::{Timestamp, micros};
use crate::id::{Fence, JobId, WorkerId};
use crate::lease::Lease;
use crate::record::{ClaimedJob, Place, ProgressNote};
use crate::transition::Settlement;

/// Between three and four of the model's steps of time.
pub(super) const LEASE: Duration = Duration::from_secs(19);
/// Spans that end shortly before a step of time.
const RETENTION: Retention = Retention {
    succeeded: Duration::from_secs(14),
    cancelled: Duration::from_secs(24),
    dead: Duration::from_secs(34),
};
/// Passed instead of an instant.
pub(super) const NEVER: Timestamp = Timestamp::from_micros(0);

pub(super) struct Side<'a> {
    pub(super) subject: &'a dyn Subject,
    /// The store's own ids; the shared number of a job is its place here, from 1.
    jobs: Vec<JobId>,
    workers: Vec<WorkerId>,
    heartbeat: Mutex<Option<Box<dyn Heartbeat>>>,
    /// How far time was moved on, where that moves what is stored back instead of a clock.
    moved_back: Option<Duration>,
}

impl<'a> Side<'a> {
    pub(super) fn new(subject: &'a dyn Subject) -> Self {
        Self {
            subject,
            jobs: Vec::new(),
            workers: Vec::new(),
            heartbeat: Mutex::new(None),
            moved_back: None,
        }
    }

    pub(super) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// The store's id of a shared number; a number of nobody becomes an id of nobody.
    fn own_job(&self, job: JobId) -> JobId {
        own(&self.jobs, job.0).unwrap_or(JobId(i64::MAX - job.0))
    }

    pub(super) fn own_worker(&self, worker: WorkerId) -> WorkerId {
        own(&self.workers, worker.0).unwrap_or(WorkerId(i64::MAX - worker.0))
    }

    fn own_fence(&self, fence: Fence) -> Fence {
        Fence { job: self.own_job(fence.job), ..fence }
    }

    fn own_fences(&self, fences: &[Fence]) -> Vec<Fence> {
        fences.iter().map(|fence| self.own_fence(*fence)).collect()
    }

    fn own_jobs(&self, jobs: &[JobId]) -> Vec<JobId> {
        jobs.iter().map(|job| self.own_job(*job)).collect()
    }

    fn own_save(&self, save: &CheckpointSave) -> CheckpointSave {
        CheckpointSave { fence: self.own_fence(save.fence), ..save.clone() }
    }

    /// The shared number of a store's id; an id that nobody was told of stays recognisable.
    pub(super) fn shared_job(&self, job: JobId) -> JobId {
        JobId(shared(&self.jobs, job).unwrap_or(-job.0))
    }

    pub(super) fn shared_worker(&self, worker: WorkerId) -> WorkerId {
        WorkerId(shared(&self.workers, worker).unwrap_or(-worker.0))
    }

    fn author(&self, worker: WorkerId) -> Author {
        Author { worker: Some(self.own_worker(worker)), build: build() }
    }

    /// Finds out how time is moved on here, by moving it.
    pub(super) async fn begin(&mut self) {
        const FAR: Duration = Duration::from_mins(10);
        let now = async || self.subject.store().schedules().await.unwrap().now;
        let before = now().await;
        self.subject.advance(FAR).await;
        let is_moved = now().await >= before.after(FAR);
        self.moved_back = (!is_moved).then_some(Duration::ZERO);
    }

    /// What has no answer that the driver must look at.
    pub(super) async fn advance(&mut self, span: Duration) {
        self.subject.advance(span).await;
        self.moved_back = self.moved_back.map(|moved| moved + span);
    }

    /// The store's own instant of a shared one.
    pub(super) fn own_instant(&self, at: Timestamp) -> Timestamp {
        let moved = self.moved_back.unwrap_or_default();
        Timestamp::from_micros(at.as_micros() - micros(moved))
    }

    /// The shared instant of one that the store keeps.
    pub(super) fn shared_instant(&self, at: Timestamp) -> Timestamp {
        at.after(self.moved_back.unwrap_or_default())
    }

    pub(super) async fn perform(&mut self, step: &Step) -> Answer {
        let subject = self.subject;
        let store = subject.store();
        match step {
            Step::Enqueue(jobs) => self.enqueued(store.enqueue(jobs).await.unwrap()),
            Step::Register
            | Step::Renew(_)
            | Step::Held(_)
            | Step::Sweep(_)
            | Step::Close(_)
            | Step::TakeDuty(..)
            | Step::GiveBackDuty(..) => self.perform_lease(step).await,
            Step::Routes(queues) => {
                let listed = store.routes(queues).await.unwrap();
                let mut routes: Vec<_> =
                    listed.into_iter().map(|listed| (listed.queue, listed.route)).collect();
                routes.sort();
                Answer::Routes(routes)
            }
            Step::Claim(taking) => self.claim(taking).await,
            Step::Settle(by, settlements) => {
                let own = |one: &Settlement| Settlement {
                    fence: self.own_fence(one.fence),
                    ..one.clone()
                };
                let own: Vec<_> = settlements.iter().map(own).collect();
                Answer::Settled(store.settle(&self.author(*by), &own).await.unwrap())
            }
            Step::Checkpoint(saves) => {
                let own: Vec<_> = saves.iter().map(|save| self.own_save(save)).collect();
                Answer::Saved(store.checkpoint(&own).await.unwrap())
            }
            Step::NoteProgress(notes) => {
                let own = |note: &ProgressNote| ProgressNote {
                    fence: self.own_fence(note.fence),
                    ..note.clone()
                };
                let own: Vec<_> = notes.iter().map(own).collect();
                Answer::Noted(store.note_progress(&own).await.unwrap())
            }
            Step::Check(fences) => {
                Answer::Standings(store.check(&self.own_fences(fences)).await.unwrap())
            }
            Step::Reread(fences) => {
                Answer::Rows(store.reread(&self.own_fences(fences)).await.unwrap())
            }
            Step::Promote => {
                let promoted = store.promote(ALL).await.unwrap();
                let is_more = promoted.next_in.is_some();
                Answer::Promoted { count: promoted.count, is_more }
            }
            Step::RefusedRoutes => {
                let mut routes = store.refused_routes().await.unwrap();
                routes.sort_unstable();
                Answer::Refused(routes)
            }
            Step::Recall(routes) => Answer::Count(store.recall(routes, ALL).await.unwrap()),
            Step::Expire => Answer::Count(store.expire(ALL).await.unwrap()),
            Step::Prune => Answer::Count(store.prune(RETENTION, ALL).await.unwrap()),
            Step::Advance(span) => {
                self.advance(*span).await;
                Answer::Nothing
            }
            Step::Transaction(inner, end) => self.transaction(inner, *end).await,
            Step::Schedules(act) => self.schedule(act).await,
            Step::Cancel(_)
            | Step::Redrive(..)
            | Step::RunNow(_)
            | Step::Reschedule(..)
            | Step::Pause(_)
            | Step::Resume(_)
            | Step::Unhold(_) => self.operate(step).await,
        }
    }

    async fn perform_lease(&mut self, step: &Step) -> Answer {
        let store = self.subject.store();
        match step {
            Step::Register => {
                let lease = Lease::new(LEASE).expect("the model's lease is in range");
                let worker = NewWorker { lease, ..new_worker("one") };
                self.workers.push(store.register(&worker).await.unwrap());
                Answer::Worker(WorkerId(number(self.workers.len())))
            }
            Step::Renew(worker) => {
                let worker = self.own_worker(*worker);
                let mut heartbeat = self.heartbeat.lock().await;
                if heartbeat.is_none() {
                    *heartbeat = Some(store.heartbeat().await.unwrap());
                }
                let heartbeat = heartbeat.as_mut().expect("a heartbeat was just opened");
                Answer::Renewed(heartbeat.renew(worker, Phase::Working, LEASE).await.unwrap())
            }
            Step::Held(worker) => {
                let mut heartbeat = store.heartbeat().await.unwrap();
                let held = heartbeat.held(self.own_worker(*worker)).await.unwrap();
                Answer::Held(held.into_iter().map(|held| self.shared_held(held)).collect())
            }
            Step::Sweep(by) => {
                let by = self.author(*by);
                let sweep = Sweep { by, grace: Duration::ZERO, limit: ALL, draw: NO_JITTER };
                self.swept(store.sweep(&sweep).await.unwrap())
            }
            Step::Close(worker) => {
                let mut heartbeat = store.heartbeat().await.unwrap();
                let (own, by) = (self.own_worker(*worker), self.author(*worker));
                let closed = heartbeat.close(own, &by, &Leaving::default()).await;
                let mut jobs: Vec<_> =
                    closed.unwrap().into_iter().map(|job| self.shared_job(job)).collect();
                jobs.sort_unstable();
                Answer::GivenBack(jobs)
            }
            Step::TakeDuty(duty, worker) => {
                let worker = self.own_worker(*worker);
                Answer::HasDuty(store.take_duty(*duty, worker).await.unwrap())
            }
            Step::GiveBackDuty(duty, worker) => {
                store.give_back_duty(*duty, self.own_worker(*worker)).await.unwrap();
                Answer::Nothing
            }
            other => unreachable!("not about a lease: {other:?}"),
        }
    }

    async fn operate(&self, step: &Step) -> Answer {
        let operate = self.subject.operate();
        match step {
            Step::Cancel(jobs) => {
                let cancelled: Vec<Cancelled> = operate.cancel(&self.own_jobs(jobs)).await.unwrap();
                Answer::Cancelled(cancelled)
            }
            Step::Redrive(jobs, redrive) => {
                let redriven = operate.redrive(&self.own_jobs(jobs), *redrive).await.unwrap();
                Answer::Redriven(
                    redriven.into_iter().map(|one| self.shared_redriven(one)).collect(),
                )
            }
            Step::Reschedule(jobs, change) => {
                let changed = operate.reschedule(&self.own_jobs(jobs), *change).await;
                Answer::RunNow(changed.unwrap())
            }
            Step::RunNow(jobs) => {
                Answer::RunNow(operate.run_now(&self.own_jobs(jobs)).await.unwrap())
            }
            Step::Pause(queue) => {
                operate.pause(queue, "ann", "as she likes").await.unwrap();
                Answer::Nothing
            }
            Step::Resume(queue) => {
                operate.resume(queue).await.unwrap();
                Answer::Nothing
            }
            Step::Unhold(job) => {
                self.subject.tamper(self.own_job(*job), &Tampering::RunUnheld).await;
                Answer::Nothing
            }
            other => unreachable!("not an operator's: {other:?}"),
        }
    }

    fn shared_held(&self, held: Held) -> Held {
        Held { fence: self.shared_fence(held.fence), ..held }
    }

    fn shared_fence(&self, fence: Fence) -> Fence {
        Fence { job: self.shared_job(fence.job), ..fence }
    }

    fn shared_redriven(&self, redriven: Redriven) -> Redriven {
        match redriven {
            Redriven::TwinWaits(twin) => Redriven::TwinWaits(self.shared_job(twin)),
            Redriven::Ready | Redriven::EndedLater | Redriven::Not(_) | Redriven::Missing => {
                redriven
            }
        }
    }

    /// Numbers the jobs that are new.
    fn enqueued(&mut self, enqueued: Vec<Enqueued>) -> Answer {
        Answer::Enqueued(enqueued.into_iter().map(|one| self.numbered(one)).collect())
    }

    pub(super) fn numbered(&mut self, enqueued: Enqueued) -> Enqueued {
        match enqueued {
            Enqueued::Added(job) => {
                self.jobs.push(job);
                Enqueued::Added(JobId(number(self.jobs.len())))
            }
            Enqueued::AlreadyThere(job) => Enqueued::AlreadyThere(self.shared_job(job)),
        }
    }

    fn swept(&self, swept: Swept) -> Answer {
        let mut workers: Vec<_> =
            swept.workers.into_iter().map(|worker| self.shared_worker(worker)).collect();
        workers.sort_unstable();
        let shared = |(job, state)| (self.shared_job(job), state);
        let mut jobs: Vec<_> = swept.jobs.into_iter().map(shared).collect();
        jobs.sort_unstable();
        Answer::Swept(Swept { workers, jobs })
    }

    async fn claim(&self, taking: &Taking) -> Answer {
        let mut heads = Vec::with_capacity(taking.heads.len());
        for From { queue, route, at, limit } in taking.heads.clone() {
            let from = match at {
                Some(job) => self.place(job).await,
                None => None,
            };
            heads.push(Head { queue, route, from: from.unwrap_or(Place::FIRST), limit });
        }
        let worker = self.own_worker(taking.worker);
        let claim = Claim { worker, heads: &heads, limit: taking.limit };
        let store = self.subject.store();
        // Of one head either will do; the other claims and the checks make plain ones.
        let claimed =
            if heads.len() == 1 { store.claim_idle(claim).await } else { store.claim(claim).await };
        let jobs = match claimed.unwrap() {
            Claimed::Jobs(jobs) => jobs,
            Claimed::WorkerEnded => return Answer::Claimed(None),
        };
        assert!(jobs.is_sorted_by_key(|job| job.place), "a claim is in order of place: {jobs:?}");
        let mut taken = Vec::with_capacity(jobs.len());
        for job in jobs {
            let id = self.shared_job(job.fence.job);
            taken.push(ClaimedJob {
                fence: self.shared_fence(job.fence),
                place: Place { at_us: 0, job: id },
                enqueued_at: NEVER,
                due_at: NEVER,
                ..job
            });
        }
        if taking.order == Order::Any {
            taken.sort_by_key(|job| job.fence);
        }
        Answer::Claimed(Some(taken))
    }

    /// Where a job stands or stood, by the instants that the store has now.
    async fn place(&self, job: JobId) -> Option<Place> {
        let record = self.subject.inspect().job(self.own_job(job)).await.unwrap()?;
        Some(record.priority.place(record.due_at, record.id))
    }

    async fn transaction(&mut self, inner: &[Inner], end: End) -> Answer {
        let numbered = self.jobs.len();
        let mut tx = self.subject.transactions().begin().await.unwrap();
        let mut answers = Vec::with_capacity(inner.len());
        for one in inner {
            answers.push(self.within(&mut *tx, one).await);
        }
        match end {
            End::Commit => tx.commit().await.unwrap(),
            End::Rollback => tx.rollback().await.unwrap(),
            End::Drop => drop(tx),
        }
        if end != End::Commit {
            self.jobs.truncate(numbered);
        }
        Answer::Transaction(answers)
    }

    async fn within(&mut self, tx: &mut dyn Transaction, inner: &Inner) -> Answer {
        match inner {
            Inner::Enqueue(jobs) => self.enqueued(tx.enqueue(jobs).await.unwrap()),
            Inner::Checkpoint(save) => {
                Answer::Standings(vec![tx.checkpoint(&self.own_save(save)).await.unwrap()])
            }
            Inner::Done(fence, notes) => {
                Answer::Standings(vec![tx.done(self.own_fence(*fence), notes).await.unwrap()])
            }
        }
    }
}

fn own<T: Copy>(ids: &[T], number: i64) -> Option<T> {
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    ids.get(at).copied()
}

fn shared<T: PartialEq + Copy>(ids: &[T], id: T) -> Option<i64> {
    ids.iter().position(|own| *own == id).map(|at| number(at + 1))
}

fn number(length: usize) -> i64 {
    i64::try_from(length).expect("a run has fewer jobs and workers than that")
}
