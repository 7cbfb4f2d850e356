//! Who does what next: workers with their runs, and the comparison after each call.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use super::super::super::{Filter, ScheduleRecord};
use super::super::scene::ALL;
use super::super::{MemorySubject, Subject};
use super::side::Side;
use super::step::{Answer, From, Step};
use crate::id::{JobId, WorkerId};
use crate::random::{Random, SeededRandom, below};
use crate::record::ClaimedJob;
use crate::state::State;

/// Both clocks move by this before each call, so that what comes later is later on both.
const TICK: Duration = Duration::from_millis(1);

pub(super) struct Driver<'a> {
    seed: u64,
    random: SeededRandom,
    model: Side<'a>,
    real: Side<'a>,
    log: Vec<Step>,
    /// Workers with open leases.
    pub(super) live: Vec<Worker>,
    /// Workers that were closed or taken back.
    pub(super) gone: Vec<WorkerId>,
    /// Runs that are over, as far as their workers know or not.
    pub(super) former: Vec<ClaimedJob>,
    /// Jobs whose due instant each store has drawn by itself.
    pub(super) drawn: BTreeSet<JobId>,
    /// Jobs that were made to run by hand, perhaps under a claim number that was over.
    pub(super) revived: BTreeSet<JobId>,
    /// The schedules as a leader saw them last.
    pub(super) seen: Vec<ScheduleRecord>,
    /// The latest job claimed from anywhere.
    pub(super) latest: Option<JobId>,
}

/// A worker and the runs that it knows of.
pub(super) struct Worker {
    pub(super) id: WorkerId,
    pub(super) runs: Vec<ClaimedJob>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(seed: u64, real: &'a dyn Subject, model: &'a MemorySubject) -> Self {
        Self {
            seed,
            random: SeededRandom::new(seed),
            model: Side::new(model),
            real: Side::new(real),
            log: Vec::new(),
            live: Vec::new(),
            gone: Vec::new(),
            former: Vec::new(),
            drawn: BTreeSet::new(),
            revived: BTreeSet::new(),
            seen: Vec::new(),
            latest: None,
        }
    }

    pub(super) async fn settle_time(&mut self) {
        self.model.begin().await;
        self.real.begin().await;
    }

    /// Does one thing to both stores; their answers must be equal.
    pub(super) async fn both(&mut self, step: Step) -> Answer {
        self.model.advance(TICK).await;
        self.real.advance(TICK).await;
        let expected = self.model.perform(&step).await;
        let actual = self.real.perform(&step).await;
        self.drawn.extend(expected.delayed());
        self.log.push(step);
        if actual != expected {
            self.differ(&format!("the model answers {expected:#?}\nthe store answers {actual:#?}"));
        }
        expected
    }

    /// Does one thing that has only one right answer.
    pub(super) async fn both_answer(&mut self, step: Step, right: &Answer) {
        let answer = self.both(step).await;
        if answer != *right {
            self.differ(&format!("both answer {answer:#?}\nthe contract says {right:#?}"));
        }
    }

    /// Compares all that both stores say of themselves.
    pub(super) async fn end(&mut self) {
        let expected = self.model.snapshot().await;
        let actual = self.real.snapshot().await;
        for (model, store) in expected.jobs.iter().zip(&actual.jobs) {
            if model != store {
                self.differ(&format!("the model keeps {model:#?}\nthe store keeps {store:#?}"));
            }
        }
        if expected != actual {
            self.differ(&format!("the model keeps {expected:#?}\nthe store keeps {actual:#?}"));
        }
    }

    fn differ(&self, how: &str) -> ! {
        let mut steps = String::new();
        let first = self.log.len().saturating_sub(12);
        for (at, step) in self.log.iter().enumerate().skip(first) {
            let _ = writeln!(steps, "  {at}: {step:?}");
        }
        let seed = self.seed;
        panic!(
            "the store differs from the model\nthe last steps:\n{steps}{how}\n\
             see it again: JOBS_SEED={seed} cargo nextest run --all-features -E 'test(model)'"
        );
    }

    /// A number below a bound.
    pub(super) fn below(&self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(below(self.random.draw(), bound)).unwrap_or_default()
    }

    pub(super) fn one_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<T: Clone>(&self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }

    /// A few jobs in order of their numbers, now and then one that does not exist.
    pub(super) fn some_jobs(&self) -> Vec<JobId> {
        let bound = self.model.jobs() + 2;
        let jobs: BTreeSet<_> = (0..=self.below(3))
            .map(|_| JobId(i64::try_from(1 + self.below(bound)).unwrap_or(1)))
            .collect();
        jobs.into_iter().collect()
    }

    /// The jobs that the model has in a state.
    pub(super) async fn in_state(&self, state: State) -> Vec<(String, JobId)> {
        let filter = Filter { state: Some(state), ..Filter::default() };
        let jobs = self.model.subject.inspect().jobs(&filter, ALL).await.unwrap();
        jobs.into_iter().map(|job| (job.queue, self.model.shared_job(job.id))).collect()
    }

    /// Whether the order among what these heads offer is the store's own.
    pub(super) async fn is_drawn(&self, heads: &[From]) -> bool {
        let is_offered = |queue: &str| heads.iter().any(|head| head.queue.as_str() == queue);
        let is_drawn =
            |(queue, job): &(String, JobId)| is_offered(queue) && self.drawn.contains(job);
        self.in_state(State::Ready).await.iter().any(is_drawn)
    }

    /// The runs that a worker has just been told of.
    pub(super) fn keep(&mut self, worker: WorkerId, runs: Vec<ClaimedJob>) {
        if let Some(last) = runs.last() {
            self.latest = Some(last.fence.job);
        }
        if let Some(worker) = self.live.iter_mut().find(|one| one.id == worker) {
            worker.runs.extend(runs);
        }
    }

    /// A worker is no more: what it ran may still write, in vain.
    pub(super) fn lose(&mut self, worker: WorkerId) {
        if let Some(at) = self.live.iter().position(|one| one.id == worker) {
            let worker = self.live.remove(at);
            self.former.extend(worker.runs);
            self.gone.push(worker.id);
        }
    }
}
