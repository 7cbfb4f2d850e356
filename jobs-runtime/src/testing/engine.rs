//! A worker without its loops: it judges, decodes and settles claims, one call at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Author, Claim, Claimed, NewWorker, Row};
use jobs_core::{
    BuildId, ClaimedJob, Clock, Ending, Ladder, Lease, Notes, QueueName, Random, Route,
    RouteVerdict, Run, Settlement, WorkerId, WorkerName, transition,
};

use crate::client::Jobs;
use crate::judge::{self, Wanted};
use crate::manifest::Manifest;
use crate::registry::{Handlers, Prepared};

/// How long a route that is not read is left alone, as a worker does.
const COOL_DOWN: Duration = Duration::from_secs(10);
/// How many jobs one claim takes at most.
const BATCH: u32 = 100;

/// A worker's lease and what it remembers of foreign routes.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) jobs: Jobs,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) worker: WorkerId,
    build: BuildId,
    cooling: HashMap<Route, Duration>,
}

impl Engine {
    /// Registers a worker of a build.
    pub(super) async fn register<S>(
        jobs: &Jobs,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        build: &BuildId,
        handlers: &Handlers<S>,
    ) -> Self {
        let new = NewWorker {
            name: WorkerName::new("testing").expect("a short name"),
            build: build.clone(),
            manifest: Manifest::of(handlers).to_json(),
            lease: Lease::default(),
        };
        let worker = jobs.store().register(&new).await.expect("the memory store answers");
        let cooling = HashMap::new();
        Self { jobs: jobs.clone(), clock, random, worker, build: build.clone(), cooling }
    }

    pub(super) fn author(&self) -> Author {
        Author { worker: Some(self.worker), build: self.build.clone() }
    }

    /// Claims at most so many jobs of these queues, and one of each foreign route per cool-down.
    pub(super) async fn claim<S>(
        &mut self,
        queues: &[QueueName],
        handlers: &Handlers<S>,
        limit: u32,
    ) -> Vec<ClaimedJob> {
        let now = self.clock.elapsed();
        let routes = self.jobs.store().routes(queues).await.expect("the memory store answers");
        let mut heads = Vec::new();
        for listed in routes {
            let limit = match listed.route.judge(|kind| handlers.reader(kind)) {
                RouteVerdict::Reads | RouteVerdict::Malformed => limit.min(BATCH),
                RouteVerdict::Foreign(_) => {
                    let is_cooling =
                        self.cooling.get(&listed.route).is_some_and(|until| now < *until);
                    if is_cooling {
                        continue;
                    }
                    self.cooling.insert(listed.route.clone(), now + COOL_DOWN);
                    1
                }
            };
            heads.push(listed.head(limit));
        }
        if heads.is_empty() || limit == 0 {
            return Vec::new();
        }
        let claim = Claim { worker: self.worker, heads: &heads, limit };
        match self.jobs.store().claim(claim).await.expect("the memory store answers") {
            Claimed::Jobs(jobs) => jobs,
            Claimed::WorkerEnded => Vec::new(),
        }
    }

    /// Writes how a run ended, with what its handler left; a run whose fence no longer holds changes
    /// nothing. The row says what stands of its counters: a checkpoint may have reset them.
    pub(super) async fn settle(
        &self,
        job: &ClaimedJob,
        ending: &Ending,
        ladder: &Ladder,
        notes: Notes,
    ) {
        let store = self.jobs.store();
        let rows = store.reread(&[job.fence]).await.expect("the memory store answers");
        let counters = match rows.first() {
            Some(Row::Running(counters)) => *counters,
            _ => job.counters,
        };
        let run = Run { counters, ..Run::from(job) };
        let settlement = transition(&run, ending, ladder, self.random.draw());
        let settlement = Settlement { notes, ..settlement };
        let settled = store.settle(&self.author(), &[settlement]).await;
        settled.expect("the memory store answers");
    }

    /// Judges and decodes a claimed job as a worker of the build does.
    pub(super) fn prepare<S>(
        &self,
        job: &ClaimedJob,
        handlers: &Handlers<S>,
    ) -> Result<Prepared<S>, Ending> {
        let build = judge::Build { handlers, label: &self.build };
        let judged = build.judged(job)?;
        let prepared = judged.prepare(job, Wanted::Run);
        prepared.map_err(|unreadable| build.unreadable(job, &judged, unreadable))
    }
}
