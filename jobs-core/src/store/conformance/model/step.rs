//! What is done to both stores, and what they answer, in numbers that both share.

use std::time::Duration;

use super::super::super::{
    Advanced, Cancelled, CheckpointSave, Duty, Enqueued, Held, Redrive, Redriven, Renewed,
    Reschedule, Row, Saved, ScheduleRecord, Settled, Standing, Swept, Tick,
};
use super::schedules::Act;
use crate::envelope::NewJob;
use crate::id::{Fence, JobId, WorkerId};
use crate::name::QueueName;
use crate::record::{ClaimedJob, Notes, ProgressNote};
use crate::route::Route;
use crate::state::State;
use crate::transition::Settlement;

/// One call. Jobs and workers are numbered in the order in which they came to be.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Enqueue(Vec<NewJob>),
    Register,
    Renew(WorkerId),
    Held(WorkerId),
    Routes(Vec<QueueName>),
    Claim(Taking),
    Settle(WorkerId, Vec<Settlement>),
    Checkpoint(Vec<CheckpointSave>),
    NoteProgress(Vec<ProgressNote>),
    Check(Vec<Fence>),
    Reread(Vec<Fence>),
    Promote,
    RefusedRoutes,
    Recall(Vec<Route>),
    Sweep(WorkerId),
    Close(WorkerId),
    TakeDuty(Duty, WorkerId),
    GiveBackDuty(Duty, WorkerId),
    Prune,
    Expire,
    Cancel(Vec<JobId>),
    Redrive(Vec<JobId>, Redrive),
    RunNow(Vec<JobId>),
    Reschedule(Vec<JobId>, Reschedule),
    Pause(QueueName),
    Resume(QueueName),
    Unhold(JobId),
    Advance(Duration),
    Transaction(Vec<Inner>, End),
    Schedules(Act),
}

/// A claim.
#[derive(Debug, Clone)]
pub(super) struct Taking {
    pub(super) worker: WorkerId,
    pub(super) heads: Vec<From>,
    pub(super) limit: u32,
    pub(super) order: Order,
}

/// A head that starts at the place of a job, or at the first.
#[derive(Debug, Clone)]
pub(super) struct From {
    pub(super) queue: QueueName,
    pub(super) route: Route,
    pub(super) at: Option<JobId>,
    pub(super) limit: u32,
}

/// Whether both stores must agree on the order of what is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// They must.
    ByPlace,
    /// Each store drew some of the waits by itself.
    Any,
}

/// A call within a transaction.
#[derive(Debug, Clone)]
pub(super) enum Inner {
    Enqueue(Vec<NewJob>),
    Checkpoint(CheckpointSave),
    Done(Fence, Notes),
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    Rollback,
    Drop,
}

/// An answer without instants, in shared numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Nothing,
    Enqueued(Vec<Enqueued>),
    Worker(WorkerId),
    Renewed(Renewed),
    Held(Vec<Held>),
    Routes(Vec<(QueueName, Route)>),
    /// `None`: the worker has ended.
    Claimed(Option<Vec<ClaimedJob>>),
    Settled(Vec<Settled>),
    Standings(Vec<Standing>),
    Saved(Vec<Saved>),
    Rows(Vec<Row>),
    Promoted {
        count: u32,
        is_more: bool,
    },
    Refused(Vec<Route>),
    Count(u32),
    Swept(Swept),
    GivenBack(Vec<JobId>),
    Cancelled(Vec<Cancelled>),
    Redriven(Vec<Redriven>),
    RunNow(Vec<bool>),
    Noted(Vec<bool>),
    HasDuty(bool),
    Transaction(Vec<Answer>),
    Undeclared(bool),
    Schedules(Vec<ScheduleRecord>),
    Advanced(Advanced),
    Ticks(Vec<Tick>),
}

impl Answer {
    /// The jobs that a sweep made wait by a drawn span.
    pub(super) fn delayed(&self) -> Vec<JobId> {
        match self {
            Self::Swept(swept) => {
                let delayed = swept.jobs.iter().filter(|(_, state)| *state == State::Scheduled);
                delayed.map(|(id, _)| *id).collect()
            }
            Self::Nothing
            | Self::Enqueued(_)
            | Self::Worker(_)
            | Self::Renewed(_)
            | Self::Held(_)
            | Self::Routes(_)
            | Self::Claimed(_)
            | Self::Settled(_)
            | Self::Standings(_)
            | Self::Saved(_)
            | Self::Rows(_)
            | Self::Promoted { .. }
            | Self::Refused(_)
            | Self::Count(_)
            | Self::GivenBack(_)
            | Self::Cancelled(_)
            | Self::Redriven(_)
            | Self::RunNow(_)
            | Self::Noted(_)
            | Self::HasDuty(_)
            | Self::Transaction(_)
            | Self::Undeclared(_)
            | Self::Schedules(_)
            | Self::Advanced(_)
            | Self::Ticks(_) => Vec::new(),
        }
    }
}
