//! What people and tools see.

use super::{Drained, Phase};
use crate::clock::Timestamp;
use crate::id::{JobId, WorkerId};
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
