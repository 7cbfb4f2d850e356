//! What a store promises. One contract, three stores, one suite that checks them.
//!
//! 1. **Fence.** A write about a run is applied only while its job is running under its claim
//!    number. Otherwise it changes nothing and says so by a value.
//! 2. **Claim numbers grow** at every claim and every taking back, and only then.
//! 3. **One lease a worker.** A claim takes nothing under a worker that was taken back or closed.
//! 4. **All or nothing.** Each call is one transaction, except where it says that it may be
//!    partial. An error means that nothing was done, unless it is ambiguous; then the row tells.
//! 5. **No decoding.** A store never reads a payload and never judges a kind.
//! 6. Slices go in, a value per element comes out, in the same order.
//!
//! Futures may be dropped at any await: a call then either happens as a whole or not at all, and no
//! connection is left inside a transaction.
//!
//! Deliberately absent: deciding what an outcome means ([`transition`](crate::transition) does),
//! and anything that runs by itself; the worker drives every loop.

#[cfg(feature = "conformance")]
pub mod conformance;
mod deploy;
mod duty;
pub mod memory;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

pub use self::deploy::{Deploy, Drained, WorkerEnd};
pub use self::duty::Duty;
use crate::clock::Timestamp;
use crate::envelope::NewJob;
use crate::error::StoreError;
use crate::id::{ClaimNumber, Fence, JobId, StoreId, WorkerId};
use crate::lease::Lease;
use crate::name::{BuildId, QueueName, WorkerName};
use crate::record::{ClaimedJob, Counters, Event, JobRecord, Place};
use crate::route::Route;
use crate::state::State;
use crate::transition::Settlement;
use crate::version::{MinReader, Version};

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The class of a cancel that a person asked for.
pub const CANCELLED: &str = "cancelled";
/// The class of a job that another one with its unique key stands for.
pub const SUPERSEDED: &str = "superseded";
/// The class of a redrive.
pub const REDRIVEN: &str = "redriven";
/// The class of a job whose claim number can't grow any more.
pub const EXHAUSTED: &str = "claim_numbers_exhausted";

/// How long a store remembers workers that have ended.
pub const WORKERS_KEPT: Duration = Duration::from_hours(24 * 30);

/// What producers and workers ask of a store.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// The identity that the store's first migration made.
    fn id(&self) -> &StoreId;

    /// Stores jobs, in order. Any number is taken; all are stored or none.
    ///
    /// A job with a unique key is answered [`Enqueued::AlreadyThere`] when a job of its kind and
    /// key waits (an earlier element of the same slice included). That job is then locked until the
    /// call's transaction ends, so that what the caller wrote before is seen by a run that starts
    /// after it.
    ///
    /// [`Due::Unchanged`](crate::Due::Unchanged) is at once. A job that is due already is ready, and
    /// keeps the instant that it was due at.
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>>;

    /// Opens the lease of a new worker.
    async fn register(&self, worker: &NewWorker) -> Result<WorkerId>;

    /// Opens what a worker's heartbeat speaks through: a connection of its own, on the runtime that
    /// calls this, so that neither a drained pool nor a busy runtime holds a renewal up.
    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>>;

    /// The routes that have ready jobs in these queues; paused queues have none.
    ///
    /// The cost grows with the number of routes, not of jobs.
    async fn routes(&self, queues: &[QueueName]) -> Result<Vec<(QueueName, Route)>>;

    /// Takes ready jobs under a worker's lease: the first of all heads in order of place, at most
    /// the claim's limit and at most each head's own. Locked rows are stepped over.
    ///
    /// A queue that was paused before the claim started gives nothing. A job whose claim number can't
    /// grow any more is not claimed but ends dead as [`EXHAUSTED`], so that it stops no other.
    async fn claim(&self, claim: Claim<'_>) -> Result<Claimed>;

    /// Writes how runs ended. Each element stands alone: applied where its fence holds, so the second
    /// of two equal ones is too late.
    ///
    /// Where a cancel of the run was requested, a state other than succeeded and dead is written as
    /// cancelled, with an event of the class [`CANCELLED`] behind the settlement's own. Else, where
    /// the state waits and another job of the same kind and unique key waits already, it is written
    /// as cancelled with the error class [`SUPERSEDED`] and an event of that class: the one that
    /// waits stands for both. The rest of the settlement is written as it is.
    ///
    /// An event is about the claim that its run had.
    async fn settle(&self, by: &Author, settlements: &[Settlement]) -> Result<Vec<Settled>>;

    /// Saves checkpoints, each where its fence holds. A checkpoint that moved, in its text or its
    /// versions, gets the next number and resets the interruptions and crashes, and the failures
    /// unless it says otherwise; one that did not move changes nothing.
    async fn checkpoint(&self, saves: &[CheckpointSave]) -> Result<Vec<Standing>>;

    /// Asks whether runs still hold their claims. Writes nothing.
    async fn check(&self, fences: &[Fence]) -> Result<Vec<Standing>>;

    /// Reads what became of runs, waiting out transactions in flight that touch them.
    ///
    /// After a lost answer and after a transactional finish the row decides, not the caller.
    async fn reread(&self, fences: &[Fence]) -> Result<Vec<Row>>;

    /// Makes scheduled jobs that are due ready, in order of their due instants, which they keep; at
    /// most `limit`. A pause does not hold it up.
    async fn promote(&self, limit: u32) -> Result<Promoted>;

    /// The routes of scheduled jobs that a build gave back unread.
    async fn refused_routes(&self) -> Result<Vec<Route>>;

    /// Makes the refused jobs of these routes that are scheduled ready, due now at the latest, at most
    /// `limit`; answers how many. The refusal stays on the row until a settlement says otherwise.
    async fn recall(&self, routes: &[Route], limit: u32) -> Result<u32>;

    /// Takes back what ended workers hold: ends the leases that have expired, and settles as
    /// crashed every run whose worker was taken back, closed, or is unknown, by the rules of
    /// [`settle`](Self::settle): as [`Alone`](crate::Company::Alone) where its worker held no other
    /// run when its lease was ended. A run that its worker abandoned when it left is settled as given
    /// up.
    ///
    /// Each worker is taken back in one transaction with its runs; locked rows are left for the
    /// next sweep. Partial: at most `limit` jobs.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept>;

    /// Gives a worker a [`Duty`], unless another one has it whose lease is open and who does not
    /// leave; answers whether the worker has it now. A worker that was taken back, closed, leaves or
    /// is unknown never has one.
    async fn take_duty(&self, duty: Duty, worker: WorkerId) -> Result<bool>;

    /// Gives back a duty that a worker has; one of another worker stays.
    async fn give_back_duty(&self, duty: Duty, worker: WorkerId) -> Result<()>;

    /// Deletes finished jobs that ended longer ago than their retention, and all that belongs to
    /// them, oldest first, at most `limit`; answers how many. Where nothing old is left, forgets
    /// workers that ended longer ago than [`WORKERS_KEPT`] and hold neither a run nor a duty.
    async fn prune(&self, retention: Retention, limit: u32) -> Result<u32>;

    /// What outside the store has slowed it down for longer than `lasting`, in words for an
    /// operator: what it is, what it does, and what ends it. Asked once a minute at most.
    async fn warnings(&self, lasting: Duration) -> Result<Vec<String>> {
        let _ = lasting;
        Ok(Vec::new())
    }

    /// A signal that something may have become ready or due.
    fn wake(&self) -> Box<dyn Wake>;
}

/// The part of a store that keeps a worker alive.
#[async_trait]
pub trait Heartbeat: Send + fmt::Debug {
    /// Renews a lease, from now for its whole length. A lease that has expired but was not taken
    /// back is renewed like any other.
    ///
    /// A store whose write lock others hold waits for it, and answers [`Renewed::Undecided`] when it
    /// could not have it `within` this span: nobody else could take the lease back meanwhile.
    async fn renew(&mut self, worker: WorkerId, phase: Phase, within: Duration) -> Result<Renewed>;

    /// The runs that the store says a worker holds, in order of job id, and whether someone asked
    /// to cancel them.
    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>>;

    /// Ends a worker's lease for good, with the phase [`Done`](Phase::Done), and, in the same
    /// transaction, gives back as interruptions whatever the store still says it holds, by the rules
    /// of [`Store::settle`]; answers which, in order of id. Closing again, or an unknown worker,
    /// gives nothing back.
    ///
    /// Runs that the worker abandons stay claimed, and keep its lease open for a while; see
    /// [`Leaving`]. It claims nothing more all the same. Its report is kept with it, what this call
    /// gives back added to the interrupted.
    async fn close(
        &mut self,
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
    ) -> Result<Vec<JobId>>;
}

/// Waits for a store to change.
#[async_trait]
pub trait Wake: Send + fmt::Debug {
    /// Returns when jobs may have become ready or due since the last return. It may return for
    /// nothing, and a change may be missed; a poll stands behind it.
    ///
    /// # Cancel safety
    /// A dropped call loses no change.
    async fn changed(&mut self);
}

/// What people and tools may look at. Nothing here claims, settles or decodes.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// A job by its id.
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>>;

    /// The kept history of a job, oldest first.
    async fn events(&self, id: JobId) -> Result<Vec<Event>>;

    /// Jobs in order of id after `filter.after`, at most `limit`.
    async fn jobs(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>>;

    /// How many jobs there are of each queue, kind, version and state, in that order.
    async fn counts(&self) -> Result<Vec<Count>>;

    /// The workers that the store knows, newest first.
    async fn workers(&self) -> Result<Vec<WorkerRecord>>;

    /// The queues that are paused.
    async fn paused(&self) -> Result<Vec<Paused>>;

    /// What became of the workers of each build, newest build first: the workers added up.
    async fn deploys(&self) -> Result<Vec<Deploy>> {
        Ok(Deploy::of(&self.workers().await?))
    }
}

/// What people and tools may change. Nothing here claims, settles or decodes.
#[async_trait]
pub trait Operate: Send + Sync {
    /// Ends waiting jobs as cancelled, with an event of the class [`CANCELLED`], and asks for the
    /// cancel of running ones, which their settlement answers.
    async fn cancel(&self, jobs: &[JobId]) -> Result<Vec<Cancelled>>;

    /// Makes dead and cancelled jobs ready again, due now, with an event of the class [`REDRIVEN`].
    /// Claim number, latest error and history stay.
    async fn redrive(&self, jobs: &[JobId], redrive: Redrive) -> Result<Vec<Redriven>>;

    /// Makes scheduled jobs ready, due now at the latest; answers which ones it found scheduled.
    async fn run_now(&self, jobs: &[JobId]) -> Result<Vec<bool>>;

    /// Stops claims from a queue; binds every claim that starts after it returns. Pausing again
    /// keeps the first reason.
    async fn pause(&self, queue: &QueueName, by: &str, reason: &str) -> Result<()>;

    /// Lets a queue be claimed from again.
    async fn resume(&self, queue: &QueueName) -> Result<()>;
}

/// A store whose writes can join a transaction of the caller, as the suite sees it.
#[async_trait]
pub trait Transactions: Send + Sync {
    /// Opens a transaction. In a store with one writer, everyone else's writes wait for its end.
    async fn begin(&self) -> Result<Box<dyn Transaction>>;
}

/// An open transaction. Dropping it rolls it back.
#[async_trait]
pub trait Transaction: Send {
    /// As [`Store::enqueue`], within this transaction.
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>>;

    /// As [`Store::checkpoint`] for one run, within this transaction; locks the job's row until it
    /// ends, so that the fence holds at the commit.
    async fn checkpoint(&mut self, save: &CheckpointSave) -> Result<Standing>;

    /// Writes a run's success within this transaction; locks the job's row until it ends.
    async fn done(&mut self, fence: Fence) -> Result<Standing>;

    /// Makes the writes of this transaction everyone's.
    async fn commit(self: Box<Self>) -> Result<()>;

    /// Undoes them.
    async fn rollback(self: Box<Self>) -> Result<()>;
}

/// What became of a job that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Enqueued {
    /// It was stored.
    Added(JobId),
    /// A waiting job with its kind and unique key was there; nothing was stored.
    AlreadyThere(JobId),
}

impl Enqueued {
    /// The job that will run: the new one or the one that was there.
    pub const fn id(self) -> JobId {
        match self {
            Self::Added(id) | Self::AlreadyThere(id) => id,
        }
    }
}

/// A worker that asks for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorker {
    /// Its name, for people.
    pub name: WorkerName,
    /// The build it runs.
    pub build: BuildId,
    /// What its build reads, handles and produces, as JSON text.
    pub manifest: String,
    /// The length of its lease.
    pub lease: Lease,
}

/// What a worker is doing, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Claims and runs.
    Working,
    /// Claims nothing more; its handlers finish.
    Quiet,
    /// Its handlers are asked to return.
    Interrupting,
    /// What is left is given back.
    Releasing,
    /// Over.
    Done,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: [Self; 5] =
        [Self::Working, Self::Quiet, Self::Interrupting, Self::Releasing, Self::Done];

    /// The phase's stable name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Quiet => "quiet",
            Self::Interrupting => "interrupting",
            Self::Releasing => "releasing",
            Self::Done => "done",
        }
    }

    /// The phase of a stored name; `None` when no phase has that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == name)
    }
}

/// What a worker that leaves abandons, by default nothing, and what it did in its drain.
///
/// Nobody may start beside a handler that still works, so abandoned runs stay claimed until the
/// process is gone. The lease is shortened to that; the sweep that ends it settles them as given up
/// and not as crashed, since the worker told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaving {
    /// The runs whose handlers have not ended.
    pub abandoned: Vec<Fence>,
    /// How long until the process is gone, and those handlers with it.
    pub gone_in: Duration,
    /// Its report, but for what the close itself gives back.
    pub drained: Drained,
}

/// The answer to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease runs for its whole length from now.
    Renewed,
    /// Others held the store's write lock all the time: nobody could renew a lease or take one back,
    /// so it counts as renewed.
    Undecided,
    /// The worker was taken back, closed, or is unknown: it must register anew.
    Ended,
}

/// A run that the store says a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// The run.
    pub fence: Fence,
    /// Whether someone asked to cancel it.
    pub is_cancel_requested: bool,
}

/// What to claim.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// Under whose lease.
    pub worker: WorkerId,
    /// From which routes.
    pub heads: &'a [Head],
    /// At most this many jobs in all.
    pub limit: u32,
}

/// Where to claim from one route of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The queue.
    pub queue: QueueName,
    /// The route.
    pub route: Route,
    /// Start behind this place, where an earlier claim ended; `None`: from the first.
    pub after: Option<Place>,
    /// At most this many jobs.
    pub limit: u32,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// These jobs, in order of place.
    Jobs(Vec<ClaimedJob>),
    /// Nothing: the worker was taken back, closed, or is unknown.
    WorkerEnded,
}

/// Who writes, for the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The worker; `None` for a person or a tool.
    pub worker: Option<WorkerId>,
    /// The build.
    pub build: BuildId,
}

/// The answer to a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// Written; the job is now in this state.
    Applied(State),
    /// The fence did not hold: another has the job, or it has ended. Nothing was written.
    LeaseLost,
    /// Another transaction holds the job's row. Nothing was written; settle it again later.
    Locked,
}

/// A checkpoint to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSave {
    /// The run that saves it.
    pub fence: Fence,
    /// The version of its shape.
    pub version: Version,
    /// The oldest reader that its writer vouches for.
    pub min_reader: MinReader,
    /// Its JSON text.
    pub text: String,
    /// Whether the job's failures stay counted although it got on.
    pub keeps_failures: bool,
}

/// Whether a run may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It holds its claim; what it asked to write is written.
    Held,
    /// It holds its claim and what it asked to write is written, but someone asked to cancel it.
    CancelRequested,
    /// The fence did not hold. Nothing was written.
    Lost,
}

/// What the row says of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Row {
    /// Still running under this claim: no settlement of it was applied. Its counters as stored.
    Running(Counters),
    /// Not running any more, under this claim's number: its settlement was applied.
    Settled(State),
    /// Under a higher number: it was taken from this run.
    Taken(ClaimNumber),
    /// No such job, or one that never had this claim.
    Missing,
    /// Another transaction holds the job's row for longer than a read waits; ask again later.
    Locked,
}

/// What a promotion did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promoted {
    /// How many jobs became ready.
    pub count: u32,
    /// How long until the next scheduled job is due; zero when one is due already, `None` when none
    /// is scheduled.
    pub next_in: Option<Duration>,
}

/// What to sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Who sweeps.
    pub by: Author,
    /// Take only leases that ended at least this long ago.
    pub grace: Duration,
    /// At most this many jobs.
    pub limit: u32,
    /// A drawn number that spreads the waits.
    pub draw: u64,
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// The workers whose leases it ended.
    pub workers: Vec<WorkerId>,
    /// The jobs it took back, with the state that each got.
    pub jobs: Vec<(JobId, State)>,
}

/// How long finished jobs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Succeeded jobs. Default: 24 h.
    pub succeeded: Duration,
    /// Cancelled jobs. Default: 7 days.
    pub cancelled: Duration,
    /// Dead letters. Default: 30 days.
    pub dead: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self { succeeded: DAY, cancelled: DAY * 7, dead: DAY * 30 }
    }
}

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only of this state.
    pub state: Option<State>,
    /// Only of this queue.
    pub queue: Option<String>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only after this id.
    pub after: Option<JobId>,
}

/// How many jobs share a queue, a kind, a version and a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// The queue.
    pub queue: String,
    /// The stored kind.
    pub kind: String,
    /// The stored version.
    pub version: String,
    /// The state.
    pub state: State,
    /// How many.
    pub jobs: u64,
}

/// A worker as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Its number.
    pub id: WorkerId,
    /// Its name.
    pub name: String,
    /// Its build.
    pub build: String,
    /// What it published about its build.
    pub manifest: String,
    /// What it says it is doing.
    pub phase: Phase,
    /// When it registered.
    pub started_at: Timestamp,
    /// When it was closed or taken back; `None` while its lease is open.
    pub ended_at: Option<Timestamp>,
    /// Whether its lease was ended by a sweep rather than by itself.
    pub is_taken_back: bool,
    /// What it did in its drain; `None` when it did not leave by its own word.
    pub drained: Option<Drained>,
    /// How many runs it held when a sweep ended its lease.
    pub reclaimed: u64,
    /// How many runs it holds.
    pub held: u64,
}

/// A paused queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// The queue.
    pub queue: String,
    /// Who paused it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// What became of a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cancelled {
    /// It was waiting and is cancelled.
    Cancelled,
    /// It is running; its worker will hear of it.
    Requested,
    /// It had ended already, in this state.
    Finished(State),
    /// There is no such job.
    Missing,
}

/// What a redrive keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redrive {
    /// Keep the counters; otherwise all of them start from zero.
    pub keeps_counters: bool,
    /// Forget the checkpoint and its number; otherwise the job resumes from it.
    pub forgets_checkpoint: bool,
}

/// What became of a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Redriven {
    /// It is ready again.
    Ready,
    /// A waiting job with its kind and unique key stands for it; it stays as it was.
    TwinWaits(JobId),
    /// It is in this state and can't be redriven.
    Not(State),
    /// There is no such job.
    Missing,
}
