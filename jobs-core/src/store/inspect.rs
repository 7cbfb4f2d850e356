//! What people and tools see.

use std::collections::BTreeMap;

use super::{Drained, Phase};
use crate::clock::Timestamp;
use crate::id::{JobId, WorkerId};
use crate::record::{Counters, JobRecord, Priority, RefusedBy};
use crate::state::State;

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only of this state.
    pub state: Option<State>,
    /// Only of this queue.
    pub queue: Option<String>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only of this error class: that of the dead letter, or of the latest failure.
    pub class: Option<String>,
    /// Only enqueued by this build.
    pub enqueued_by: Option<String>,
    /// Only whose latest line of history this build wrote; of a dead letter, the build that failed it.
    pub failed_by: Option<String>,
    /// Only enqueued in this span.
    pub enqueued: Span,
    /// Only ended in this span; one without ends takes those too that have not ended.
    pub finished: Span,
    /// Only behind this id, in the order of the listing.
    pub after: Option<JobId>,
}

/// A span of time; an end that is missing is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// From this instant on.
    pub from: Option<Timestamp>,
    /// Up to this instant, without it.
    pub before: Option<Timestamp>,
}

impl Span {
    /// Whether nothing is kept out.
    pub const fn is_open(self) -> bool {
        self.from.is_none() && self.before.is_none()
    }

    /// Whether an instant lies in the span.
    pub fn contains(self, instant: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= instant)
            && self.before.is_none_or(|before| instant < before)
    }
}

impl Depth {
    /// Gathers what is told of routes: a queue, how many are ready, and the due instant of the first;
    /// and of queues: how many run.
    pub fn gather(
        states: Vec<(State, u64)>,
        routes: impl IntoIterator<Item = (String, u64, Timestamp)>,
        running: impl IntoIterator<Item = (String, u64)>,
        most: u32,
    ) -> Self {
        let mut queues: BTreeMap<String, QueueDepth> = BTreeMap::new();
        let most = u64::from(most);
        let empty = |queue: &str| QueueDepth {
            queue: queue.to_owned(),
            ready: 0,
            head_due_at: None,
            running: 0,
        };
        for (name, ready, head_due_at) in routes {
            let queue = queues.entry(name.clone()).or_insert_with(|| empty(&name));
            queue.ready = queue.ready.saturating_add(ready).min(most);
            queue.head_due_at = Some(queue.head_due_at.unwrap_or(head_due_at).min(head_due_at));
        }
        for (name, running) in running {
            queues.entry(name.clone()).or_insert_with(|| empty(&name)).running = running.min(most);
        }
        Self { states, queues: queues.into_values().collect() }
    }
}

/// What identifies a job and tells why it is where it is, without what it carries, which may be large:
/// payload, headers, checkpoint, texts and result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// The job.
    pub id: JobId,
    /// Where it is in its life.
    pub state: State,
    /// Its queue.
    pub queue: String,
    /// The stored kind.
    pub kind: String,
    /// The stored version.
    pub version: String,
    /// How urgent it is.
    pub priority: Priority,
    /// What has happened to it so far.
    pub counters: Counters,
    /// Why and by which build it was last given back unread.
    pub refused: Option<RefusedBy>,
    /// The class of the dead letter, or of the latest failure.
    pub class: Option<String>,
    /// The build that enqueued it.
    pub build: Option<String>,
    /// The worker that runs it, or whose run was its success.
    pub worker: Option<WorkerId>,
    /// The key of a unique job.
    pub unique_key: Option<String>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it is or was due.
    pub due_at: Timestamp,
    /// When its latest run was claimed.
    pub claimed_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl Brief {
    /// What a whole record tells in brief.
    pub fn of(job: &JobRecord) -> Self {
        Self {
            id: job.id,
            state: job.state,
            queue: job.queue.clone(),
            kind: job.kind.clone(),
            version: job.version.clone(),
            priority: job.priority,
            counters: job.counters,
            refused: job.refused.clone(),
            class: job.error_class.clone(),
            build: job.build.clone(),
            worker: job.worker,
            unique_key: job.unique_key.clone(),
            enqueued_at: job.enqueued_at,
            due_at: job.due_at,
            claimed_at: job.claimed_at,
            finished_at: job.finished_at,
        }
    }
}

/// How full a store is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Depth {
    /// How many jobs each state has, in the order of [`State::ALL`].
    pub states: Vec<(State, u64)>,
    /// The queues that have ready or running jobs, in order of name.
    pub queues: Vec<QueueDepth>,
}

/// How full a queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDepth {
    /// The queue.
    pub queue: String,
    /// How many of its jobs are ready.
    pub ready: u64,
    /// When the longest waiting of the jobs that stand first in their routes fell due; `None` when
    /// none is ready.
    pub head_due_at: Option<Timestamp>,
    /// How many of its jobs run.
    pub running: u64,
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
