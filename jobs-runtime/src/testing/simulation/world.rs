//! What happens in a simulation: workers come and go, and jobs run, tick by tick.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Filter, Leaving, Sweep};
use jobs_core::{
    BuildId, ClaimedJob, Clock, Ending, Fence, Interruption, JobId, Ladder, ManualClock, NewJob,
    Notes, QueueName, Random, SeededRandom, State, below,
};

use super::super::engine::Engine;
use super::super::inline::START;
use super::super::report::{JobReport, Report};
use super::Simulation;
use crate::client::Jobs;
use crate::registry::Handlers;

/// How far time moves between two looks at the world.
const TICK: Duration = Duration::from_millis(100);
const HEARTBEAT: Duration = Duration::from_secs(10);
const SWEEP: Duration = Duration::from_secs(10);
/// How long a worker that is told to stop lets its runs finish.
const QUIET: Duration = Duration::from_secs(3);
/// How long the simulation goes on once nothing more is planned.
const PATIENCE: Duration = Duration::from_mins(10);

/// The state of a run.
pub(super) struct World<'a, S> {
    simulation: Simulation<'a, S>,
    clock: Arc<ManualClock>,
    random: Arc<SeededRandom>,
    jobs: Jobs,
    queues: Vec<QueueName>,
    workers: Vec<Worker>,
    /// When workers are killed, the next one last.
    kills: Vec<Duration>,
    step: usize,
    /// The jobs that were enqueued so far, in the order of the load.
    sent: Vec<JobId>,
    seen: HashMap<JobId, Seen>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    starts: u32,
    successes: u32,
    delay: Option<Duration>,
}

struct Worker {
    engine: Engine,
    is_new: bool,
    runs: Vec<Running>,
    renewed_at: Duration,
    /// When it gives back what it still runs, once it was told to stop.
    stops_at: Option<Duration>,
}

struct Running {
    job: ClaimedJob,
    ends_at: Duration,
}

impl<'a, S: Clone + Send + Sync + 'static> World<'a, S> {
    pub(super) async fn open(simulation: Simulation<'a, S>) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let random = Arc::new(SeededRandom::new(simulation.seed));
        let jobs = Jobs::builder().clock(clock.clone()).random(random.clone());
        let jobs = jobs.open("memory:").await.expect("the store in memory opens");
        let mut queues: Vec<QueueName> =
            simulation.load.iter().map(|(_, job)| job.queue.clone()).collect();
        queues.sort_unstable();
        queues.dedup();
        let planned = simulation.plan.every * u32::try_from(simulation.plan.steps()).unwrap_or(0);
        let drawn = |_| {
            Duration::from_micros(below(random.draw(), jobs_core::micros(planned).unsigned_abs()))
        };
        let mut kills: Vec<Duration> = (0..simulation.plan.kills).map(drawn).collect();
        kills.sort_unstable_by(|a, b| b.cmp(a));
        let mut world = Self {
            simulation,
            clock,
            random,
            jobs,
            queues,
            workers: Vec::new(),
            kills,
            step: 0,
            sent: Vec::new(),
            seen: HashMap::new(),
        };
        for _ in 0..world.simulation.plan.workers {
            world.start(false).await;
        }
        world
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    fn handlers(&self, is_new: bool) -> &'a Handlers<S> {
        if is_new { self.simulation.new } else { self.simulation.old }
    }

    async fn start(&mut self, is_new: bool) {
        let build = BuildId::new(if is_new { "new" } else { "old" }).expect("a short label");
        let (clock, random) = (self.clock.clone(), self.random.clone());
        let handlers = self.handlers(is_new);
        let engine = Engine::register(&self.jobs, clock, random, &build, handlers).await;
        self.recall(handlers).await;
        let renewed_at = self.now();
        self.workers.push(Worker { engine, is_new, runs: Vec::new(), renewed_at, stops_at: None });
    }

    /// What a build may read again is due at once, as when a worker registers.
    async fn recall(&self, handlers: &Handlers<S>) {
        let store = self.jobs.store();
        let routes = store.refused_routes().await.expect("the memory store answers");
        let is_read = |route: &jobs_core::Route| {
            !matches!(
                route.judge(|kind| handlers.reader(kind)),
                jobs_core::RouteVerdict::Foreign(_)
            )
        };
        let routes: Vec<_> = routes.into_iter().filter(is_read).collect();
        store.recall(&routes, u32::MAX).await.expect("the memory store answers");
    }

    /// Goes on until every job has ended, or nothing has been planned for long.
    pub(super) async fn until_over(mut self) -> Report {
        let mut idle_since = None;
        loop {
            self.enqueue().await;
            self.replace().await;
            self.kill().await;
            self.housekeep().await;
            for n in 0..self.workers.len() {
                self.work(n).await;
            }
            self.leave().await;
            let plan_ends = self.step == self.simulation.plan.steps();
            let is_over = plan_ends && self.sent.len() == self.simulation.load.len();
            let since = *idle_since.get_or_insert(self.now());
            if !is_over {
                idle_since = None;
            } else if self.is_done().await || self.now().saturating_sub(since) > PATIENCE {
                return self.report().await;
            }
            self.clock.advance(TICK);
        }
    }

    async fn enqueue(&mut self) {
        let now = self.now();
        let left = &self.simulation.load[self.sent.len()..];
        let due = left.iter().take_while(|(at, _)| *at <= now);
        let new: Vec<NewJob> = due.map(|(_, job)| job.clone()).collect();
        let added = self.jobs.store().enqueue(&new).await.expect("the memory store answers");
        self.sent.extend(added.iter().map(|added| added.id()));
    }

    /// Tells the longest-lived worker of the other build to stop, and starts one in its place.
    async fn replace(&mut self) {
        let plan = &self.simulation.plan;
        let at = plan.every * u32::try_from(self.step + 1).unwrap_or(u32::MAX);
        if self.step == plan.steps() || self.now() < at {
            return;
        }
        let is_new = plan.is_forwards(self.step);
        self.step += 1;
        let stops_at = self.now() + QUIET;
        let goes = self.workers.iter_mut().find(|it| it.is_new != is_new && it.stops_at.is_none());
        if let Some(worker) = goes {
            worker.stops_at = Some(stops_at);
        }
        self.start(is_new).await;
    }

    async fn kill(&mut self) {
        while self.kills.last().is_some_and(|at| *at <= self.now()) {
            self.kills.pop();
            let count = u64::try_from(self.workers.len()).unwrap_or(1);
            let victim = usize::try_from(below(self.random.draw(), count)).unwrap_or(0);
            // Nobody hears of it: its lease has to end.
            let Worker { is_new, .. } = self.workers.remove(victim);
            self.start(is_new).await;
        }
    }

    /// Promotion, renewals, and a sweep now and then.
    async fn housekeep(&mut self) {
        let now = self.now();
        let store = self.jobs.store();
        store.promote(u32::MAX).await.expect("the memory store answers");
        let mut heartbeat = store.heartbeat().await.expect("the memory store answers");
        for worker in
            self.workers.iter_mut().filter(|it| now.saturating_sub(it.renewed_at) >= HEARTBEAT)
        {
            let phase = jobs_core::store::Phase::Working;
            let renewed = heartbeat.renew(worker.engine.worker, phase, TICK).await;
            renewed.expect("the memory store answers");
            worker.renewed_at = now;
        }
        let is_time = now.as_millis().is_multiple_of(SWEEP.as_millis());
        if let Some(worker) = self.workers.first().filter(|_| is_time) {
            let by = worker.engine.author();
            let draw = self.random.draw();
            let sweep = Sweep { by, grace: Duration::ZERO, limit: u32::MAX, draw };
            store.sweep(&sweep).await.expect("the memory store answers");
        }
    }

    /// Ends the runs of a worker that are over, and starts as many new ones.
    async fn work(&mut self, n: usize) {
        let now = self.now();
        let worker = &mut self.workers[n];
        let handlers = if worker.is_new { self.simulation.new } else { self.simulation.old };
        let is_over = |run: &mut Running| run.ends_at <= now;
        for run in worker.runs.extract_if(.., is_over).collect::<Vec<_>>() {
            worker
                .engine
                .settle(&run.job, &Ending::Done, &Ladder::default(), Notes::default())
                .await;
            if succeeded(&self.jobs, run.job.fence).await {
                self.seen.entry(run.job.fence.job).or_default().successes += 1;
            }
        }
        if worker.stops_at.is_some() {
            return;
        }
        let free = self.simulation.plan.concurrency.saturating_sub(worker.runs.len());
        let limit = u32::try_from(free).unwrap_or(u32::MAX);
        for job in worker.engine.claim(&self.queues, handlers, limit).await {
            if let Err(ending) = worker.engine.prepare(&job, handlers) {
                worker.engine.settle(&job, &ending, &Ladder::default(), Notes::default()).await;
                continue;
            }
            let (least, most) = self.simulation.run_takes;
            let spread = jobs_core::micros(most.saturating_sub(least)).unsigned_abs() + 1;
            let takes = least + Duration::from_micros(below(self.random.draw(), spread));
            let seen = self.seen.entry(job.fence.job).or_default();
            seen.starts += 1;
            let delay = self.clock.now().since(job.enqueued_at);
            seen.delay.get_or_insert(delay);
            worker.runs.push(Running { job, ends_at: now + takes });
        }
    }

    /// Closes the workers whose time to finish is over, or that have nothing left.
    async fn leave(&mut self) {
        let now = self.now();
        let leaves = |worker: &mut Worker| {
            worker.stops_at.is_some_and(|at| at <= now || worker.runs.is_empty())
        };
        for worker in self.workers.extract_if(.., leaves).collect::<Vec<_>>() {
            let text = "the simulated worker stops".to_owned();
            let stopped = Ending::Interrupted(Interruption::Stopped(text));
            for run in &worker.runs {
                worker
                    .engine
                    .settle(&run.job, &stopped, &Ladder::default(), Notes::default())
                    .await;
            }
            let store = self.jobs.store();
            let mut heartbeat = store.heartbeat().await.expect("the memory store answers");
            let (id, by) = (worker.engine.worker, worker.engine.author());
            let closed = heartbeat.close(id, &by, &Leaving::default()).await;
            closed.expect("the memory store answers");
        }
    }

    async fn is_done(&self) -> bool {
        let counts = self.jobs.inspect().counts().await.expect("the memory store answers");
        counts.iter().all(|count| count.state.is_finished())
    }

    async fn report(self) -> Report {
        let all = self.jobs.inspect().jobs(&Filter::default(), u32::MAX).await;
        let mut records: HashMap<JobId, _> =
            all.expect("the memory store answers").into_iter().map(|job| (job.id, job)).collect();
        let report = |(id, (_, new)): (JobId, &(Duration, NewJob))| {
            let seen = self.seen.get(&id).copied().unwrap_or_default();
            let record = records.remove(&id);
            let counters = record.as_ref().map(|job| job.counters).unwrap_or_default();
            JobReport {
                id,
                kind: new.kind.to_string(),
                version: new.version.to_string(),
                state: record.map(|job| job.state),
                starts: seen.starts,
                successes: seen.successes,
                refusals: counters.refusals,
                interruptions: counters.interruptions,
                failures: counters.failures,
                delay: seen.delay,
            }
        };
        let jobs = self.sent.iter().copied().zip(&self.simulation.load).map(report).collect();
        Report { seed: self.simulation.seed, jobs }
    }
}

/// Whether a settlement of this very claim made the job succeed.
async fn succeeded(jobs: &Jobs, fence: Fence) -> bool {
    let job = jobs.inspect().job(fence.job).await.expect("the memory store answers");
    job.is_some_and(|job| job.state == State::Succeeded && job.claim == fence.claim)
}
