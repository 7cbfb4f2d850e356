//! What a worker, a producer, an operator or the world may do next. To what and with what, is drawn in
//! [`draws`](super::draws).

use std::time::Duration;

use super::super::super::{Duty, Redrive, Renewed, Reschedule, Row, Saved, Settled, Standing};
use super::super::scene::{ALL, NO_JITTER, queue};
use super::draws::{QUEUES, WAITS};
use super::driver::{Driver, Worker};
use super::step::{Answer, End, From, Inner, Order, Step, Taking};
use crate::id::{Fence, JobId, WorkerId};
use crate::outcome::Ending;
use crate::record::{Budget, Priority, ProgressNote};
use crate::retry::Ladder;
use crate::state::State;
use crate::transition::{Due, Run, transition};

const STEP: Duration = Duration::from_secs(5);

impl Driver<'_> {
    pub(super) async fn begin(&mut self) {
        self.settle_time().await;
        self.register().await;
        self.register().await;
    }

    /// Does one thing, each as often as it is worth.
    pub(super) async fn act(&mut self) {
        match self.below(100) {
            0..13 => self.enqueue().await,
            13..16 => self.schedule().await,
            16..34 => self.claim().await,
            34..54 => self.settle().await,
            54..59 => self.checkpoint().await,
            59..64 => self.transaction().await,
            64..70 => self.pass(1 + self.below(3)).await,
            70..75 => drop(self.both(Step::Promote).await),
            75..78 => self.sweep().await,
            78..80 => self.die().await,
            80 => self.sleep_through_a_lease().await,
            81 => self.close().await,
            82 => self.register().await,
            83..86 => self.operate().await,
            86..88 => self.run_now().await,
            88..90 => self.pause_or_resume().await,
            90..92 => self.recall().await,
            92..95 => self.write_in_vain().await,
            95 => self.audit().await,
            96 => self.take_or_give_back_a_duty().await,
            97 if self.one_in(2) => drop(self.both(Step::Prune).await),
            97 => drop(self.both(Step::Expire).await),
            98 if self.one_in(2) => self.unhold().await,
            98 => self.crash_in_a_row().await,
            99.. => self.look_at_former_runs().await,
        }
    }

    async fn register(&mut self) {
        if self.live.len() < 3
            && let Answer::Worker(id) = self.both(Step::Register).await
        {
            self.live.push(Worker { id, runs: Vec::new() });
        }
    }

    async fn enqueue(&mut self) {
        let jobs = self.new_jobs();
        self.both(Step::Enqueue(jobs)).await;
    }

    /// A claim, sometimes of only a part, under an ended worker, or with an answer that is lost.
    async fn claim(&mut self) {
        let queues = QUEUES.map(queue).to_vec();
        let Answer::Routes(routes) = self.both(Step::Routes(queues)).await else { return };
        let worker = if self.one_in(12) { self.pick(&self.gone) } else { self.some_worker() };
        let Some(worker) = worker else { return };
        let whole = |(queue, route)| From { queue, route, at: None, limit: ALL };
        let mut heads: Vec<_> = routes.into_iter().map(whole).collect();
        heads.retain(|_| !self.one_in(4));
        let is_drawn = self.is_drawn(&heads).await;
        let latest = self.latest.filter(|job| !self.drawn.contains(job));
        let mut limit = ALL;
        if !is_drawn && self.one_in(2) {
            limit = u32::try_from(1 + self.below(4)).unwrap_or(ALL);
            for head in &mut heads {
                head.limit = if self.one_in(3) { 1 } else { ALL };
                head.at = latest.filter(|_| self.one_in(6));
            }
        }
        let order = if is_drawn { Order::Any } else { Order::ByPlace };
        let taking = Taking { worker, heads, limit, order };
        let claimed = self.both(Step::Claim(taking)).await;
        if let Answer::Claimed(Some(runs)) = claimed
            && !self.one_in(8)
        {
            self.keep(worker, runs);
        }
    }

    /// Settles a few runs; sometimes the answer is lost, and the worker asks the rows and repeats.
    async fn settle(&mut self) {
        let most = if self.one_in(3) { 3 } else { 1 };
        let Some((worker, runs)) = self.part_with_runs(most) else { return };
        let settlements: Vec<_> = runs.iter().map(|run| self.settlement(run)).collect();
        for one in &settlements {
            if one.due != Due::Unchanged {
                self.drawn.remove(&one.fence.job);
            }
        }
        self.both(Step::Settle(worker, settlements.clone())).await;
        if self.one_in(4) {
            let fences = runs.iter().map(|run| run.fence).collect();
            self.both(Step::Reread(fences)).await;
            let too_late = Answer::Settled(vec![Settled::LeaseLost; settlements.len()]);
            self.both_answer(Step::Settle(worker, settlements), &too_late).await;
        }
    }

    async fn checkpoint(&mut self) {
        let Some(run) = self.some_run() else { return };
        let save = self.save(run.fence);
        self.both(Step::Checkpoint(vec![save])).await;
        let text = format!("{} of 3", self.below(3));
        self.both(Step::NoteProgress(vec![ProgressNote { fence: run.fence, text }])).await;
        self.both(Step::Check(vec![run.fence])).await;
        self.learn_counters(run.fence).await;
    }

    /// A worker goes by the counters that the row has after a checkpoint.
    async fn learn_counters(&mut self, fence: Fence) {
        let Answer::Rows(rows) = self.both(Step::Reread(vec![fence])).await else { return };
        let runs = self.live.iter_mut().flat_map(|worker| worker.runs.iter_mut());
        for run in runs.filter(|run| run.fence == fence) {
            if let [Row::Running(counters)] = rows[..] {
                run.counters = counters;
            }
        }
    }

    async fn transaction(&mut self) {
        let Some(run) = self.some_run() else { return };
        let mut inner = Vec::new();
        if self.one_in(2) {
            inner.push(Inner::Enqueue(self.new_jobs()));
        }
        if self.one_in(2) {
            inner.push(Inner::Checkpoint(self.save(run.fence)));
        }
        if self.one_in(2) {
            inner.push(Inner::Done(run.fence, self.notes()));
        }
        if self.one_in(4)
            && let Some(former) = self.pick(&self.former)
        {
            inner.push(Inner::Done(former.fence, self.notes()));
        }
        let end = match self.below(4) {
            0 => End::Rollback,
            1 => End::Drop,
            2.. => End::Commit,
        };
        self.both(Step::Transaction(inner, end)).await;
        self.learn_counters(run.fence).await;
    }

    /// Time passes, and all workers renew their leases.
    async fn pass(&mut self, steps: usize) {
        for _ in 0..steps {
            self.both(Step::Advance(STEP)).await;
            self.renew_but(None).await;
        }
    }

    async fn renew_but(&mut self, dying: Option<WorkerId>) {
        let live: Vec<_> = self.live.iter().map(|worker| worker.id).collect();
        for worker in live.into_iter().filter(|worker| Some(*worker) != dying) {
            self.both(Step::Renew(worker)).await;
        }
    }

    async fn sweep(&mut self) {
        if let Some(by) = self.some_worker() {
            self.both(Step::Sweep(by)).await;
        }
    }

    /// A worker renews no more, is seen twice to be silent, and is taken back.
    async fn die(&mut self) {
        if let Some(dying) = self.some_worker() {
            self.fall_silent(dying).await;
        }
    }

    async fn fall_silent(&mut self, dying: WorkerId) {
        for _ in 0..2 {
            self.both(Step::Sweep(dying)).await;
            for _ in 0..2 {
                self.both(Step::Advance(STEP)).await;
                self.renew_but(Some(dying)).await;
            }
        }
        self.both(Step::Sweep(dying)).await;
        self.both_answer(Step::Renew(dying), &Answer::Renewed(Renewed::Ended)).await;
        self.lose(dying);
        self.register().await;
    }

    /// Nobody renews for longer than a lease, but all do before anyone sweeps.
    async fn sleep_through_a_lease(&mut self) {
        self.sweep().await;
        self.both(Step::Advance(STEP * 4)).await;
        self.renew_but(None).await;
        self.sweep().await;
    }

    async fn close(&mut self) {
        if let Some(worker) = self.some_worker() {
            self.both(Step::Close(worker)).await;
            self.both(Step::Close(worker)).await;
            self.lose(worker);
        }
        self.register().await;
    }

    async fn operate(&mut self) {
        let jobs = self.some_jobs();
        let redrive = Redrive {
            keeps_counters: self.one_in(2),
            forgets_checkpoint: self.one_in(3),
            ended_before: None,
            makes_new_key: self.one_in(3),
        };
        match self.below(2) {
            0 => self.both(Step::Cancel(jobs)).await,
            1.. => self.both(Step::Redrive(jobs, redrive)).await,
        };
    }

    async fn run_now(&mut self) {
        let jobs = self.some_jobs();
        if self.one_in(2) {
            self.both(Step::RunNow(jobs)).await;
            return;
        }
        let due = self.pick(&WAITS).filter(|_| self.one_in(2)).map(Due::In);
        let priority = self.one_in(2).then(|| Priority::clamped(3));
        self.both(Step::Reschedule(jobs, Reschedule { due, priority })).await;
    }

    async fn pause_or_resume(&mut self) {
        let queue = self.some_queue();
        match self.below(3) {
            0 => self.both(Step::Pause(queue)).await,
            1.. => self.both(Step::Resume(queue)).await,
        };
    }

    async fn recall(&mut self) {
        let Answer::Refused(mut routes) = self.both(Step::RefusedRoutes).await else { return };
        routes.truncate(1 + self.below(2));
        self.both(Step::Recall(routes)).await;
    }

    /// A worker that does not know better writes about a run that is over.
    async fn write_in_vain(&mut self) {
        let Some(run) = self.pick(&self.former) else { return };
        let Some(worker) = self.pick(&self.gone).or_else(|| self.some_worker()) else { return };
        let settle = Step::Settle(worker, vec![self.settlement(&run)]);
        let save = Step::Checkpoint(vec![self.save(run.fence)]);
        if self.revived.contains(&run.fence.job) {
            self.both(settle).await;
            self.both(save).await;
        } else {
            self.both_answer(settle, &Answer::Settled(vec![Settled::LeaseLost])).await;
            let lost = Answer::Saved(vec![Saved::Answered(Standing::Lost)]);
            self.both_answer(save, &lost).await;
            let note = ProgressNote { fence: run.fence, text: "in vain".to_owned() };
            let note = Step::NoteProgress(vec![note]);
            self.both_answer(note, &Answer::Noted(vec![false])).await;
        }
    }

    /// A worker asks what it holds, and gives back what it never heard of.
    async fn audit(&mut self) {
        let Some(id) = self.some_worker() else { return };
        let Answer::Held(held) = self.both(Step::Held(id)).await else { return };
        let Some(worker) = self.live.iter().find(|worker| worker.id == id) else { return };
        let is_known = |fence| worker.runs.iter().any(|run| run.fence == fence);
        let fences = held.into_iter().map(|held| held.fence).filter(|fence| !is_known(*fence));
        for fence in fences.collect::<Vec<_>>() {
            let Answer::Rows(rows) = self.both(Step::Reread(vec![fence])).await else { return };
            let [Row::Running(counters)] = rows[..] else { continue };
            let run = Run { fence, counters, budget: Budget::default(), refused: None };
            let given_back = transition(&run, &Ending::Unstarted, &Ladder::default(), NO_JITTER);
            self.both(Step::Settle(id, vec![given_back])).await;
        }
    }

    /// A row runs and nobody holds it, again and again.
    async fn unhold(&mut self) {
        let mut jobs = self.in_state(State::Ready).await;
        jobs.extend(self.in_state(State::Running).await);
        let Some((_, job)) = self.pick(&jobs) else { return };
        let crashes = self.below(6);
        self.unhold_again(job, crashes).await;
    }

    /// A row runs and nobody holds it, and so again after so many sweeps.
    async fn unhold_again(&mut self, job: JobId, crashes: usize) {
        self.revived.insert(job);
        self.both(Step::Unhold(job)).await;
        for _ in 0..crashes {
            self.sweep().await;
            if self.waits(job).await {
                self.both(Step::Unhold(job)).await;
            }
        }
    }

    async fn waits(&self, job: JobId) -> bool {
        let mut waiting = self.in_state(State::Ready).await;
        waiting.extend(self.in_state(State::Scheduled).await);
        waiting.iter().any(|(_, waiting)| *waiting == job)
    }

    /// A job crashes until it is a suspect, and then takes a worker with it that runs suspects only.
    async fn crash_in_a_row(&mut self) {
        let ready = self.in_state(State::Ready).await;
        let Some((_, job)) = self.pick(&ready) else { return };
        self.unhold_again(job, 3).await;
        self.sweep().await;
        self.both(Step::RunNow(vec![job])).await;
        let queues = QUEUES.map(queue).to_vec();
        let Answer::Routes(routes) = self.both(Step::Routes(queues)).await else { return };
        let whole = |(queue, route)| From { queue, route, at: None, limit: ALL };
        let heads: Vec<_> =
            routes.into_iter().filter(|(_, route)| route.is_suspect()).map(whole).collect();
        let Answer::Worker(worker) = self.both(Step::Register).await else { return };
        self.live.push(Worker { id: worker, runs: Vec::new() });
        let taking = Taking { worker, heads, limit: ALL, order: Order::Any };
        if let Answer::Claimed(Some(runs)) = self.both(Step::Claim(taking)).await {
            self.keep(worker, runs);
        }
        self.fall_silent(worker).await;
    }

    /// A worker asks for a duty, or gives one back that it may not have.
    async fn take_or_give_back_a_duty(&mut self) {
        let worker = if self.one_in(6) { self.pick(&self.gone) } else { self.some_worker() };
        let (Some(worker), Some(duty)) = (worker, self.pick(&Duty::ALL)) else { return };
        if self.one_in(3) {
            self.both(Step::GiveBackDuty(duty, worker)).await;
        } else {
            self.both(Step::TakeDuty(duty, worker)).await;
        }
    }

    async fn look_at_former_runs(&mut self) {
        let fences: Vec<_> = self.former.iter().map(|run| run.fence).rev().take(10).collect();
        self.both(Step::Check(fences.clone())).await;
        self.both(Step::Reread(fences)).await;
    }
}
