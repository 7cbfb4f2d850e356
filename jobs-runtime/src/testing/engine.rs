//! A worker without its loops: it judges, decodes and settles claims, one call at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Author, Claim, Claimed, Head, NewWorker};
use jobs_core::{
    BuildId, ClaimedJob, Clock, Ending, Failure, Ladder, Lease, OldCheckpoint, QueueName, Random,
    Reader, Refusal, Retry, Route, RouteVerdict, Run, Stamp, Verdict, WorkerId, WorkerName, judge,
    transition,
};

use crate::client::Jobs;
use crate::manifest::Manifest;
use crate::registry::{Handled, Handlers, PrepareError, Prepared, StoredText};

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
        for (queue, route) in routes {
            let limit = match route.judge(|kind| handlers.reader(kind)) {
                RouteVerdict::Reads | RouteVerdict::Malformed => limit.min(BATCH),
                RouteVerdict::Foreign(_) => {
                    let is_cooling = self.cooling.get(&route).is_some_and(|until| now < *until);
                    if is_cooling {
                        continue;
                    }
                    self.cooling.insert(route.clone(), now + COOL_DOWN);
                    1
                }
            };
            heads.push(Head { queue, route, after: None, limit });
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

    /// Writes how a run ended; a run whose fence no longer holds changes nothing.
    pub(super) async fn settle(&self, job: &ClaimedJob, ending: &Ending, ladder: &Ladder) {
        let run = Run {
            fence: job.fence,
            counters: job.counters,
            budget: job.budget,
            refused: job.refused.clone(),
        };
        let settlement = transition(&run, ending, ladder, self.random.draw());
        let settled = self.jobs.store().settle(&self.author(), &[settlement]).await;
        settled.expect("the memory store answers");
    }

    /// Judges and decodes a claimed job as a worker of the build does.
    pub(super) fn prepare<S>(
        &self,
        job: &ClaimedJob,
        handlers: &Handlers<S>,
    ) -> Result<Prepared<S>, Ending> {
        let stamp = Stamp::parse(&job.version, job.min_reader.as_deref())
            .map_err(|error| Ending::MalformedVersion(error.to_string()))?;
        let verdict = judge(stamp, handlers.reader(&job.kind));
        let major = match verdict {
            Verdict::Run => stamp.version().major,
            Verdict::Upcast { from } | Verdict::TolerantRead { from } => from,
            Verdict::Retired => return Err(Ending::Retired),
            Verdict::Refuse(refusal) => return Err(self.refused(job, refusal)),
        };
        let handled = handlers.handled(&job.kind);
        let handled = handled.ok_or_else(|| self.refused(job, Refusal::UnknownKind))?;
        let checkpoint = self.checkpoint(job, handled)?;
        let payload = StoredText { major, text: &job.payload };
        handled.erased.prepare(payload, checkpoint).map_err(|error| match verdict {
            Verdict::TolerantRead { .. } => self.refused(job, Refusal::Newer),
            _ => unreadable(&error),
        })
    }

    /// The saved checkpoint, where there is one that the run resumes from.
    fn checkpoint<'j, S>(
        &self,
        job: &'j ClaimedJob,
        handled: &Handled<S>,
    ) -> Result<Option<StoredText<'j>>, Ending> {
        let Some(saved) = &job.checkpoint else { return Ok(None) };
        let stamp = Stamp::parse(&saved.version, saved.min_reader.as_deref())
            .map_err(|error| Ending::MalformedVersion(error.to_string()))?;
        if handled.checkpoint_lines.is_empty() {
            return Err(self.refused(job, Refusal::Checkpoint));
        }
        let restarts = handled.policy.on_old_checkpoint == OldCheckpoint::Restart;
        let major = match judge(stamp, Reader::Reads(&handled.checkpoint_lines)) {
            Verdict::Run => stamp.version().major,
            Verdict::Upcast { from } | Verdict::TolerantRead { from } => from,
            Verdict::Refuse(Refusal::Older) if restarts => return Ok(None),
            Verdict::Refuse(_) | Verdict::Retired => {
                return Err(self.refused(job, Refusal::Checkpoint));
            }
        };
        Ok(Some(StoredText { major, text: &saved.text }))
    }

    fn refused(&self, job: &ClaimedJob, refusal: Refusal) -> Ending {
        let text = format!("{} {}", job.kind, job.version);
        Ending::Refused { refusal, build: self.build.to_string(), text }
    }
}

fn unreadable(error: &PrepareError) -> Ending {
    let (class, text) = match error {
        PrepareError::Payload(error) => ("malformed_payload", jobs_core::chain(error)),
        PrepareError::Checkpoint(error) => ("malformed_checkpoint", jobs_core::chain(error)),
        PrepareError::CheckpointPanicked(_) => {
            ("upcast_failed", "the upcast of the checkpoint panicked".to_owned())
        }
    };
    Ending::Unreadable(Failure { class: class.to_owned(), text, retry: Retry::Never })
}
