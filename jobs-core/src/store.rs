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
mod inspect;
mod lease;
pub mod memory;
mod operate;
mod rollout;
mod run;
mod schedule;
mod upkeep;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::envelope::NewJob;
use crate::error::StoreError;
use crate::id::{Fence, JobId, StoreId, WorkerId};
use crate::name::{BuildId, QueueName};
use crate::record::{Event, JobRecord, Notes, ProgressNote};
use crate::route::Route;
use crate::transition::Settlement;

pub use deploy::{Deploy, Drained, WorkerEnd};
pub use duty::Duty;
pub use inspect::{Brief, Count, Depth, Filter, Paused, QueueDepth, Span, WorkerRecord};
pub use lease::{Held, Leaving, NewWorker, Phase, Renewed};
pub use operate::{Cancelled, Redrive, Redriven, Reschedule};
pub use rollout::{BuildRecord, Strand, Waiting, fingerprint};
pub use run::{
    Author, CheckpointSave, Claim, Claimed, Enqueued, Head, ReadyRoute, Row, Saved, Settled,
    Standing,
};
pub use schedule::{
    Advanced, Declaration, Declared, MAX_TICKS, ScheduleRecord, ScheduleView, Schedules, Step, Tick,
};
pub use upkeep::{Promoted, Retention, Sweep, Swept};

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The class of a cancel that a person asked for.
pub const CANCELLED: &str = "cancelled";
/// The class of a job that another one with its unique key stands for.
pub const SUPERSEDED: &str = "superseded";
/// The class of a redrive.
pub const REDRIVEN: &str = "redriven";
/// What its event says.
pub const REDRIVEN_TEXT: &str = "brought back to run again";
/// The class of a change of when a job is due or how urgent it is.
pub const RESCHEDULED: &str = "rescheduled";
/// The class of a scheduled job's being made ready before it was due.
pub const RUN_NOW: &str = "run_now";
/// What its event says.
pub const RUN_NOW_TEXT: &str = "made ready before it was due";
/// The class of a success that was stored only a while after its handler had ended.
pub const SETTLED_LATE: &str = "settled_late";
/// The class of a job that no run was started of in time.
pub const EXPIRED: &str = "expired";
/// The class of a job that no live worker could read until its deadline.
pub const STRANDED: &str = "stranded";
/// The class of a job whose claim number can't grow any more.
pub const EXHAUSTED: &str = "claim_numbers_exhausted";

/// The longest author and the longest reason of a pause, in bytes; what is longer is cut in its middle.
pub const MAX_PAUSE_BYTES: usize = 1024;

/// How long a store remembers workers that have ended.
pub const WORKERS_KEPT: Duration = Duration::from_hours(24 * 30);

/// What producers and workers ask of a store; [`Schedules`] is a part of it.
#[async_trait]
pub trait Store: Schedules + 'static {
    /// The identity that the store's first migration made.
    fn id(&self) -> &StoreId;

    /// Stores jobs, in order. Any number is taken; all are stored or none.
    ///
    /// A job with a unique key is answered [`Enqueued::AlreadyThere`] when a job of its kind and
    /// key waits (an earlier element of the same slice included). That job is then locked until the
    /// call's transaction ends, so that what the caller wrote before is seen by a run that starts
    /// after it.
    ///
    /// The key binds for as long as [`UniqueWhile`](crate::UniqueWhile) says, and what becomes of a
    /// waiting job that stands for the new one is what [`OnConflict`](crate::OnConflict) says; the
    /// elements of a call do so in their order.
    ///
    /// [`Due::Unchanged`](crate::Due::Unchanged) is at once. A job that is due already is ready, and
    /// keeps the instant that it was due at.
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>>;

    /// Opens the lease of a new worker.
    async fn register(&self, worker: &NewWorker) -> Result<WorkerId>;

    /// Opens what a worker's heartbeat speaks through: a connection of its own, on the runtime that
    /// calls this, so that neither a drained pool nor a busy runtime holds a renewal up.
    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>>;

    /// The routes that have ready jobs in these queues, in order, with the place of the first job of each;
    /// paused queues have none.
    ///
    /// The cost grows with the number of routes, not of jobs. Only what a store can't forget yet, such as
    /// the entries of jobs that were ready, may make it dearer, and is for this call to walk: a claim
    /// that starts at the first place does not.
    async fn routes(&self, queues: &[QueueName]) -> Result<Vec<ReadyRoute>>;

    /// Takes ready jobs under a worker's lease: the first of all heads in order of place, at most
    /// the claim's limit and at most each head's own. Locked rows are stepped over.
    ///
    /// A queue that was paused before the claim started gives nothing. A job whose claim number can't
    /// grow any more is not claimed but ends dead as [`EXHAUSTED`], so that it stops no other.
    async fn claim(&self, claim: Claim<'_>) -> Result<Claimed>;

    /// As [`claim`](Self::claim), of a few jobs for a worker that held nothing and was woken: no settlement
    /// is likely to come with it that a store would write in one go with it, so it may have a quicker way.
    /// A job whose claim number can't grow may be left to the next claim, and hide what is behind it.
    async fn claim_idle(&self, claim: Claim<'_>) -> Result<Claimed> {
        self.claim(claim).await
    }

    /// As [`claim`](Self::claim) from heads of one queue, of which at most `most` jobs run in all
    /// workers together then. It counts the jobs that are running, so none is counted out twice
    /// however late its settlement comes. Such claims of one queue take turns.
    async fn claim_within(&self, claim: Claim<'_>, most: u32) -> Result<Claimed>;

    /// Writes how runs ended. Each element stands alone: applied where its fence holds, so the second
    /// of two equal ones is too late.
    ///
    /// Where a cancel of the run was requested, a state other than succeeded and dead is written as
    /// cancelled, with an event of the class [`CANCELLED`] behind the settlement's own. Else, where
    /// the state waits and another job of the same kind and unique key waits already, it is written
    /// as cancelled with the error class [`SUPERSEDED`] and an event of that class: the one that
    /// waits stands for both. The rest of the settlement is written as it is.
    ///
    /// An event is about the claim that its run had. A note that is absent leaves what stands there.
    async fn settle(&self, by: &Author, settlements: &[Settlement]) -> Result<Vec<Settled>>;

    /// Saves checkpoints, each where its fence holds. A checkpoint that moved, in its text or its
    /// versions, gets the next number and resets the interruptions and crashes, and the failures
    /// unless it says otherwise; one that did not move changes nothing.
    ///
    /// Each element stands alone and has an answer of its own: a row that someone holds keeps none of
    /// the others from being saved. So the call may be partial, and an error that comes behind a save
    /// is ambiguous; to save the same again is safe, since it does not move.
    async fn checkpoint(&self, saves: &[CheckpointSave]) -> Result<Vec<Saved>>;

    /// Writes how far runs have come, for people, each where its fence holds; nothing else of the row
    /// changes. Answers which were written.
    ///
    /// Waits for no row: one that another transaction holds is not written to.
    async fn note_progress(&self, notes: &[ProgressNote]) -> Result<Vec<bool>>;

    /// Asks whether runs still hold their claims. Writes nothing.
    async fn check(&self, fences: &[Fence]) -> Result<Vec<Standing>>;

    /// Reads what became of runs, waiting out transactions in flight that touch them.
    ///
    /// After a lost answer and after a transactional finish the row decides, not the caller.
    async fn reread(&self, fences: &[Fence]) -> Result<Vec<Row>>;

    /// Makes scheduled jobs that are due ready, in order of their due instants, which they keep; at
    /// most `limit`. A pause does not hold it up.
    async fn promote(&self, limit: u32) -> Result<Promoted>;

    /// Ends waiting jobs that no run may start of any more, dead with the class [`EXPIRED`], oldest
    /// expiry first, at most `limit`; answers how many. One that is claimed before that is told by
    /// [`ClaimedJob::is_expired`](crate::ClaimedJob).
    async fn expire(&self, limit: u32) -> Result<u32>;

    /// The routes of scheduled jobs that a build gave back unread.
    async fn refused_routes(&self) -> Result<Vec<Route>>;

    /// Makes the refused jobs of these routes that are scheduled ready, due now at the latest, at most
    /// `limit`; answers how many. The refusal stays on the row until a settlement says otherwise.
    async fn recall(&self, routes: &[Route], limit: u32) -> Result<u32>;

    /// Ends waiting jobs that no live worker can read as dead, with the class [`STRANDED`] and an
    /// event; answers how many. Scheduled jobs that no build has given back are not due yet and are
    /// left alone.
    ///
    /// The cost grows with the waiting jobs of these routes, not with what else there is.
    async fn strand(&self, strand: &Strand<'_>) -> Result<u32>;

    /// Notes what a build says about itself, and that it was seen now; a build may say several
    /// things, one a program.
    async fn publish(&self, build: &BuildId, manifest: &str) -> Result<()>;

    /// Takes back what ended workers hold: ends the leases that have expired, and settles as
    /// crashed every run whose worker was taken back, closed, or is unknown, by the rules of
    /// [`settle`](Self::settle): as [`Alone`](crate::Company::Alone) where its worker held no other
    /// run when its lease was ended. A run that its worker abandoned when it left is settled as given
    /// up.
    ///
    /// Each worker is taken back in one transaction with its runs; locked rows are left for the
    /// next sweep, and so are those that the database lets nobody write, by a trigger or a constraint of
    /// others: they hold up no other. Partial: at most `limit` jobs.
    ///
    /// In a job's history that is an act of the worker that lost the run, and of its build, as
    /// [`Sweep::author`] says; the text tells who noticed.
    async fn sweep(&self, sweep: &Sweep) -> Result<Swept>;

    /// Gives a worker a [`Duty`], unless another one has it whose lease is open and who does not
    /// leave; answers whether the worker has it now. A worker that was taken back, closed, leaves or
    /// is unknown never has one.
    async fn take_duty(&self, duty: Duty, worker: WorkerId) -> Result<bool>;

    /// Gives back a duty that a worker has; one of another worker stays.
    async fn give_back_duty(&self, duty: Duty, worker: WorkerId) -> Result<()>;

    /// Deletes finished jobs that ended longer ago than their retention, and all that belongs to
    /// them, oldest first, at most `limit`; answers how many. Where nothing old is left, forgets
    /// workers that ended longer ago than [`WORKERS_KEPT`] and hold neither a run nor a duty, and
    /// builds that were last seen before that; oldest first, at most `limit` of each.
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
    /// An error of the kind [`Schema`](crate::StoreErrorKind::Schema) says that the store was migrated
    /// and needs a newer build; the lease is renewed all the same, so that the worker can drain.
    ///
    /// A store whose write lock others hold waits for it, and answers [`Renewed::Undecided`] when it
    /// could not have it `within` this span: nobody else could take the lease back meanwhile.
    async fn renew(&mut self, worker: WorkerId, phase: Phase, within: Duration) -> Result<Renewed>;

    /// The runs that the store says a worker holds, in order of job id, and whether someone asked
    /// to cancel them.
    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>>;

    /// Ends a worker's lease for good, with the phase [`Done`](Phase::Done), and, in the same
    /// transaction, gives back as interruptions whatever the store still says it holds, by the rules
    /// of [`Store::settle`]; answers which, in order of id. What the worker does not know of was
    /// claimed by an answer that never came: it goes back as unstarted. A run whose row another
    /// transaction holds, such as that of a finish, is left to it; if it still runs then, a sweep
    /// settles it as given up. Closing again, or an unknown worker, gives nothing back.
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

    /// The kept history of a job, oldest first. A line of a kind that only a newer build knows is left
    /// out.
    async fn events(&self, id: JobId) -> Result<Vec<Event>>;

    /// Jobs in order of id after `filter.after`, at most `limit`.
    async fn jobs(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>>;

    /// Jobs from the newest on, those whose ids lie before `filter.after`, at most `limit`.
    async fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>>;

    /// As [`jobs`](Self::jobs), without what the jobs carry: for many at once.
    async fn briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>>;

    /// As [`newest`](Self::newest), without what the jobs carry.
    async fn newest_briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>>;

    /// These jobs in brief, each once and in order of id; those that are not there are left out.
    async fn briefs_of(&self, jobs: &[JobId]) -> Result<Vec<Brief>>;

    /// How full the store is. Every count stops at `most`, so that the cost does not grow with what
    /// there is, but with the number of routes that have ready jobs.
    async fn depth(&self, most: u32) -> Result<Depth>;

    /// How many jobs there are of each queue, kind, version and state, in that order.
    async fn counts(&self) -> Result<Vec<Count>>;

    /// The scheduled and ready jobs by queue, kind, version and oldest reader, in that order; no
    /// oldest reader comes first.
    async fn waiting(&self) -> Result<Vec<Waiting>>;

    /// How many jobs of each of these routes are due in any queue: ready, or given back unread. Every
    /// count stops at `most`, so that the cost grows with neither them nor what else there is.
    async fn count_due(&self, routes: &[Route], most: u32) -> Result<Vec<u64>>;

    /// What builds have published, most lately seen first.
    async fn builds(&self) -> Result<Vec<BuildRecord>>;

    /// The workers that the store knows, newest first. One in a phase that only a newer build knows
    /// is told as [`Working`](Phase::Working).
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
    /// Claim number, latest error and history stay; an expiry doesn't.
    async fn redrive(&self, jobs: &[JobId], redrive: Redrive) -> Result<Vec<Redriven>>;

    /// Makes scheduled jobs ready, due now at the latest, with an event of the class [`RUN_NOW`]; answers
    /// which ones it found scheduled.
    async fn run_now(&self, jobs: &[JobId]) -> Result<Vec<bool>>;

    /// Changes when waiting jobs are due and how urgent they are, with an event of the class
    /// [`RESCHEDULED`] that says to what; answers which ones it found waiting. A job that is due then is
    /// ready; one that isn't yet is scheduled. How far ahead that may be is the caller's to decide.
    async fn reschedule(&self, jobs: &[JobId], change: Reschedule) -> Result<Vec<bool>>;

    /// Stops claims from a queue; binds every claim that starts after it returns. Pausing again
    /// keeps the first reason. Who and why are kept [`storable`](crate::storable), each in
    /// [`MAX_PAUSE_BYTES`].
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

    /// Writes a run's success, with its notes, within this transaction; locks the job's row until it
    /// ends.
    async fn done(&mut self, fence: Fence, notes: &Notes) -> Result<Standing>;

    /// Makes the writes of this transaction everyone's.
    async fn commit(self: Box<Self>) -> Result<()>;

    /// Undoes them.
    async fn rollback(self: Box<Self>) -> Result<()>;
}
