//! What most checks begin with: a store, a worker, and short words for what they do.

use std::task::Poll;
use std::time::Duration;

use super::super::{
    Author, CheckpointSave, Claim, Claimed, Enqueued, Head, Leaving, NewWorker, Phase, Renewed,
    Row, Saved, Settled, Standing, Sweep, Swept,
};
use super::Subject;
use crate::envelope::{NewJob, OnConflict, UniqueWhile};
use crate::id::{ClaimNumber, Fence, JobId, WorkerId};
use crate::lease::Lease;
use crate::name::{BuildId, Kind, QueueName, UniqueKey, WorkerName};
use crate::outcome::{Ending, Failure, Retry};
use crate::record::{Budget, ClaimedJob, Counters, Event, JobRecord, Priority};
use crate::retry::Ladder;
use crate::route::SUSPECT_CRASHES;
use crate::state::State;
use crate::transition::{Due, Run, Settlement, transition};
use crate::version::{Refusal, Version};

/// A draw that moves no wait: the middle of all.
pub(super) const NO_JITTER: u64 = u64::MAX / 2;
/// The limit of calls that should take all.
pub(super) const ALL: u32 = 1_000_000;
pub(super) const SECOND: Duration = Duration::from_secs(1);
const BUILD: &str = "shop 1.0.0";

/// A store under check with one worker.
pub(super) struct Scene<'a> {
    pub(super) subject: &'a dyn Subject,
    pub(super) worker: WorkerId,
}

impl<'a> Scene<'a> {
    pub(super) async fn open(subject: &'a dyn Subject) -> Self {
        let worker = subject.store().register(&new_worker("one")).await.unwrap();
        Self { subject, worker }
    }

    /// The same store in the eyes of another worker.
    pub(super) async fn another(&self) -> Self {
        Self::open(self.subject).await
    }

    pub(super) fn author(&self) -> Author {
        Author { worker: Some(self.worker), build: build() }
    }

    pub(super) async fn enqueue(&self, jobs: &[NewJob]) -> Vec<Enqueued> {
        self.subject.store().enqueue(jobs).await.unwrap()
    }

    /// Enqueues one job, which must be new.
    pub(super) async fn add(&self, job: &NewJob) -> JobId {
        match self.enqueue(std::slice::from_ref(job)).await[..] {
            [Enqueued::Added(id)] => id,
            ref other => panic!("expected one new job, got {other:?}"),
        }
    }

    /// Claims from these heads; the worker must be open.
    pub(super) async fn claim_from(&self, heads: &[Head], limit: u32) -> Vec<ClaimedJob> {
        let claim = Claim { worker: self.worker, heads, limit };
        match self.subject.store().claim(claim).await.unwrap() {
            Claimed::Jobs(jobs) => jobs,
            Claimed::WorkerEnded => panic!("the worker has ended"),
        }
    }

    /// The heads of the default queue that suspects stand in.
    pub(super) async fn heads_of_suspects(&self) -> Vec<Head> {
        let heads = self.heads(&[QueueName::DEFAULT]).await;
        heads.into_iter().filter(|head| head.route.is_suspect()).collect()
    }

    /// A ready job that has crashed so often that it is a suspect.
    pub(super) async fn suspect(&self, job: &NewJob) -> JobId {
        let run = self.run(job).await;
        let counters = Counters { crashes: SUSPECT_CRASHES, ..Counters::default() };
        self.settle(&Settlement { counters, ..ended(&run, &Ending::Unstarted) }).await;
        run.fence.job
    }

    /// Claims from all routes of a queue.
    pub(super) async fn claim_in(&self, queue: &str, limit: u32) -> Vec<ClaimedJob> {
        self.claim_from(&self.heads(&[queue]).await, limit).await
    }

    /// Claims from all routes of the default queue.
    pub(super) async fn claim(&self, limit: u32) -> Vec<ClaimedJob> {
        self.claim_in(QueueName::DEFAULT, limit).await
    }

    /// Heads of all routes that the store lists for these queues.
    pub(super) async fn heads(&self, queues: &[&str]) -> Vec<Head> {
        let queues: Vec<_> = queues.iter().map(|name| queue(name)).collect();
        let routes = self.subject.store().routes(&queues).await.unwrap();
        routes.into_iter().map(|listed| listed.head(ALL)).collect()
    }

    /// Claims the one job that is ready in the default queue.
    pub(super) async fn take(&self) -> ClaimedJob {
        let mut jobs = self.claim(ALL).await;
        assert_eq!(jobs.len(), 1, "one job is ready: {jobs:?}");
        jobs.remove(0)
    }

    /// Enqueues one job and claims it.
    pub(super) async fn run(&self, job: &NewJob) -> ClaimedJob {
        let id = self.add(job).await;
        let taken = self.take().await;
        assert_eq!(taken.fence.job, id);
        taken
    }

    pub(super) async fn settle(&self, settlement: &Settlement) -> Settled {
        let settlements = std::slice::from_ref(settlement);
        let settled = self.subject.store().settle(&self.author(), settlements).await.unwrap();
        assert_eq!(settled.len(), 1, "one answer for one settlement");
        settled[0]
    }

    /// Settles a run as its transition says.
    pub(super) async fn end(&self, job: &ClaimedJob, ending: &Ending) -> Settled {
        self.settle(&ended(job, ending)).await
    }

    /// Settles a run as its transition says, which must be applied as it says.
    pub(super) async fn end_as(&self, job: &ClaimedJob, ending: &Ending, state: State) {
        assert_eq!(self.end(job, ending).await, Settled::Applied(state), "{ending:?}");
    }

    /// Enqueues one job, runs it and leaves it dead.
    pub(super) async fn dead(&self, job: &NewJob) -> JobId {
        let run = self.run(job).await;
        self.end_as(&run, &failed(Retry::Never), State::Dead).await;
        run.fence.job
    }

    pub(super) async fn save(&self, fence: Fence, text: &str) -> Standing {
        let saves = [save(fence, text)];
        match self.subject.store().checkpoint(&saves).await.unwrap()[..] {
            [Saved::Answered(standing)] => standing,
            ref other => panic!("nobody holds the row of {fence:?}: {other:?}"),
        }
    }

    pub(super) async fn standing(&self, fence: Fence) -> Standing {
        let standings = self.subject.store().check(&[fence]).await.unwrap();
        assert_eq!(standings.len(), 1, "one answer for one fence");
        standings[0]
    }

    pub(super) async fn reread(&self, fence: Fence) -> Row {
        let rows = self.subject.store().reread(&[fence]).await.unwrap();
        assert_eq!(rows.len(), 1, "one answer for one fence");
        rows[0]
    }

    pub(super) async fn record(&self, id: JobId) -> JobRecord {
        self.subject.inspect().job(id).await.unwrap().expect("the job is stored")
    }

    pub(super) async fn state(&self, id: JobId) -> State {
        self.record(id).await.state
    }

    pub(super) async fn events(&self, id: JobId) -> Vec<Event> {
        self.subject.inspect().events(id).await.unwrap()
    }

    /// All jobs of the store.
    pub(super) async fn records(&self) -> Vec<JobRecord> {
        self.subject.inspect().jobs(&super::super::Filter::default(), ALL).await.unwrap()
    }

    pub(super) async fn renew(&self) -> Renewed {
        let mut heartbeat = self.subject.store().heartbeat().await.unwrap();
        heartbeat.renew(self.worker, Phase::Working, SECOND).await.unwrap()
    }

    pub(super) async fn sweep(&self) -> Swept {
        self.subject.store().sweep(&sweep(Duration::ZERO, ALL)).await.unwrap()
    }

    /// Lets the leases of all workers expire, and sweeps.
    ///
    /// A store without a clock of its own sees an expiry only by looking twice, so this looks
    /// before the time passes and after it.
    pub(super) async fn expire(&self) -> Swept {
        let before = self.sweep().await;
        assert_eq!(before, Swept::default(), "no lease has expired yet");
        self.subject.advance(Lease::default().length() + SECOND).await;
        self.sweep().await
    }

    pub(super) async fn close(&self) -> Vec<JobId> {
        self.leave(&Leaving::default()).await
    }

    pub(super) async fn leave(&self, leaving: &Leaving) -> Vec<JobId> {
        let mut heartbeat = self.subject.store().heartbeat().await.unwrap();
        heartbeat.close(self.worker, &self.author(), leaving).await.unwrap()
    }

    pub(super) async fn promote(&self) -> u32 {
        self.subject.store().promote(ALL).await.unwrap().count
    }
}

/// A job of a kind in the default queue, due at once.
pub(super) fn job(kind: &str) -> NewJob {
    let version = Version::new(1, 0, 0);
    NewJob {
        queue: QueueName::default(),
        kind: Kind::new(kind).unwrap(),
        version,
        min_reader: version.own_reader(),
        payload: "{}".to_owned(),
        headers: None,
        priority: Priority::default(),
        due: Due::In(Duration::ZERO),
        unique_key: None,
        unique_while: UniqueWhile::default(),
        on_conflict: OnConflict::default(),
        expires_in: None,
        budget: Budget::default(),
        build: Some(build()),
    }
}

/// A job of which one at a time waits.
pub(super) fn unique(key: &str) -> NewJob {
    NewJob { unique_key: Some(UniqueKey::new(key).unwrap()), ..job("unique") }
}

pub(super) fn due_in(wait: Duration, job: NewJob) -> NewJob {
    NewJob { due: Due::In(wait), ..job }
}

pub(super) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(super) fn build() -> BuildId {
    BuildId::new(BUILD).unwrap()
}

pub(super) fn new_worker(name: &str) -> NewWorker {
    NewWorker {
        name: WorkerName::new(name).unwrap(),
        build: build(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    }
}

pub(super) fn sweep(grace: Duration, limit: u32) -> Sweep {
    Sweep { by: Author { worker: None, build: build() }, grace, limit, draw: NO_JITTER }
}

/// What is written when a run ends so.
pub(super) fn ended(job: &ClaimedJob, ending: &Ending) -> Settlement {
    transition(&Run::from(job), ending, &Ladder::Fixed(SECOND * 9), NO_JITTER)
}

pub(super) fn failed(retry: Retry) -> Ending {
    Ending::Failed(Failure { class: "error".to_owned(), text: "it broke".to_owned(), retry })
}

pub(super) fn refused() -> Ending {
    let text = "1.0.0 here 2.0".to_owned();
    Ending::Refused { refusal: Refusal::Newer, build: BUILD.to_owned(), text }
}

pub(super) fn save(fence: Fence, text: &str) -> CheckpointSave {
    let version = Version::new(1, 0, 0);
    CheckpointSave {
        fence,
        version,
        min_reader: version.own_reader(),
        text: text.to_owned(),
        keeps_failures: false,
    }
}

/// The fence of another claim of the same job.
pub(super) fn moved(fence: Fence, by: i64) -> Fence {
    Fence { claim: ClaimNumber(fence.claim.0 + by), ..fence }
}

pub(super) fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.fence.job).collect()
}

/// Lets other futures of the same task go on so many times.
pub(super) async fn yield_often(times: u32) {
    for _ in 0..times {
        let mut has_yielded = false;
        std::future::poll_fn(|cx| {
            if has_yielded {
                return Poll::Ready(());
            }
            has_yielded = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}
