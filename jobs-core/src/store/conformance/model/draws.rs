//! What a step is made of, as the seed draws it: which jobs, which worker, how a run ends.

use std::time::Duration;

use super::super::super::CheckpointSave;
use super::super::scene::{NO_JITTER, job, queue};
use super::driver::Driver;
use crate::envelope::{NewJob, OnConflict, UniqueWhile};
use crate::id::{Fence, WorkerId};
use crate::name::{QueueName, UniqueKey};
use crate::outcome::{Ending, Failure, Interruption, Retry};
use crate::record::{Budget, ClaimedJob, Notes, Priority};
use crate::retry::Ladder;
use crate::transition::{Due, Run, Settlement, transition};
use crate::version::{MinReader, Refusal, Version};

pub(super) const QUEUES: [&str; 2] = ["default", "mail"];
const KINDS: [&str; 3] = ["a", "b", "c"];
const KEYS: [&str; 2] = ["k", "l"];
/// Waits that end shortly before a step of time.
pub(super) const WAITS: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(4), Duration::from_secs(9), Duration::from_secs(14)];
/// An expiry that ends well between two steps of time, whatever wait comes before it.
const EXPIRY: Duration = Duration::from_secs(9);
const CONFLICTS: [OnConflict; 4] = [
    OnConflict::Keep,
    OnConflict::Replace,
    OnConflict::Reschedule,
    OnConflict::ReplaceAndReschedule,
];
const SCOPES: [UniqueWhile; 4] =
    [UniqueWhile::Waiting, UniqueWhile::Waiting, UniqueWhile::Running, UniqueWhile::Kept];

impl Driver<'_> {
    pub(super) fn new_job(&self) -> NewJob {
        let minor = u32::from(self.one_in(3));
        let kind = self.pick(&KINDS).unwrap_or_default();
        let key = self.one_in(2).then(|| self.pick(&KEYS)).flatten();
        let max_failures = if self.one_in(4) { 2 } else { 20 };
        let max_interruptions = self.one_in(5).then_some(2);
        NewJob {
            queue: self.some_queue(),
            version: Version::new(1, minor, 0),
            min_reader: MinReader { major: 1, minor },
            priority: Priority::clamped(if self.one_in(5) { 7 } else { 0 }),
            due: Due::In(self.pick(&WAITS).filter(|_| self.one_in(3)).unwrap_or_default()),
            unique_key: key.and_then(|key| UniqueKey::new(key).ok()),
            unique_while: self.pick(&SCOPES).unwrap_or_default(),
            on_conflict: self.pick(&CONFLICTS).unwrap_or_default(),
            expires_in: self.one_in(6).then_some(EXPIRY),
            budget: Budget { max_failures, max_interruptions },
            ..job(kind)
        }
    }

    pub(super) fn some_queue(&self) -> QueueName {
        queue(if self.one_in(4) { QUEUES[1] } else { QUEUES[0] })
    }

    pub(super) fn new_jobs(&self) -> Vec<NewJob> {
        let mut jobs: Vec<_> = (0..=self.below(3)).map(|_| self.new_job()).collect();
        if jobs.len() > 1 {
            // Which of a call's jobs comes first where one is rescheduled is a matter of microseconds.
            let kept = |job: &NewJob| {
                if job.on_conflict.replaces() { OnConflict::Replace } else { OnConflict::Keep }
            };
            for job in &mut jobs {
                job.on_conflict = kept(job);
            }
        }
        jobs
    }

    pub(super) fn some_worker(&self) -> Option<WorkerId> {
        let live: Vec<_> = self.live.iter().map(|worker| worker.id).collect();
        self.pick(&live)
    }

    pub(super) fn some_run(&self) -> Option<ClaimedJob> {
        let runs: Vec<_> =
            self.live.iter().flat_map(|worker| worker.runs.iter().cloned()).collect();
        self.pick(&runs)
    }

    /// Some runs of some worker, which then no longer knows of them.
    pub(super) fn part_with_runs(&mut self, most: usize) -> Option<(WorkerId, Vec<ClaimedJob>)> {
        let id = self.some_worker()?;
        let count = 1 + self.below(most);
        let worker = self.live.iter_mut().find(|worker| worker.id == id)?;
        let mut runs: Vec<_> = worker.runs.drain(..count.min(worker.runs.len())).collect();
        runs.sort_by_key(|run| run.fence);
        self.former.extend(runs.iter().cloned());
        Some((id, runs)).filter(|(_, runs)| !runs.is_empty())
    }

    pub(super) fn ending(&self, run: &ClaimedJob) -> Ending {
        let wait = self.pick(&WAITS).unwrap_or_default();
        let fail = |retry| {
            Ending::Failed(Failure { class: "error".into(), text: "it's \"broken\"".into(), retry })
        };
        match self.below(14) {
            0..4 => Ending::Done,
            4 => fail(Retry::Ladder),
            5 => fail(Retry::After(wait)),
            6 => fail(Retry::Never),
            7 => Ending::Snoozed(wait),
            8 | 9 => Ending::Refused {
                refusal: Refusal::Newer,
                build: if self.one_in(2) { "old" } else { "older" }.to_owned(),
                text: "1.1.0 here 1.0".to_owned(),
            },
            10 => Ending::Interrupted(Interruption::Stopped("drain".to_owned())),
            // The third wait of an absent service is the last that ends between two steps of time.
            11 if run.counters.interruptions < 3 => {
                Ending::Interrupted(Interruption::Infrastructure("away".to_owned()))
            }
            11 | 12 => Ending::Interrupted(Interruption::GivenUp),
            13.. => Ending::Unstarted,
        }
    }

    pub(super) fn settlement(&self, run: &ClaimedJob) -> Settlement {
        let ladder = Ladder::Fixed(WAITS[2]);
        let settlement = transition(&Run::from(run), &self.ending(run), &ladder, NO_JITTER);
        Settlement { notes: self.notes(), ..settlement }
    }

    /// Mostly none, as most handlers leave none.
    pub(super) fn notes(&self) -> Notes {
        let some = |text: &str| self.one_in(4).then(|| text.to_owned());
        Notes { progress: some("half of it"), result: some("[1, 2]") }
    }

    pub(super) fn save(&self, fence: Fence) -> CheckpointSave {
        let version = Version::new(1, u32::from(self.one_in(5)), 0);
        CheckpointSave {
            fence,
            version,
            min_reader: version.own_reader(),
            text: format!("[{}]", self.below(3)),
            keeps_failures: self.one_in(3),
        }
    }
}
