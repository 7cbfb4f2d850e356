//! Numbers that name things in a store, and the fence made of two of them.
//!
//! All of them are issued by a store and only ever grow. `0` is never issued, so a default or a
//! missing value can't pass for a real one.

use std::fmt;

/// The number of a job in its store, from 1 upwards in order of enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

/// The number of one worker: one process incarnation, new at every start and every registration.
///
/// A worker is never identified by its name: a process restarted under the same name is another
/// worker, so that the claims of the dead one can be told from those of the living.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub i64);

/// How many times a job was taken or taken back; it advances at both, and so only grows.
///
/// A job that was never claimed has number 0. Budgets never look at it: they compare the
/// [`Counters`](crate::Counters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClaimNumber(pub i64);

/// What must still hold for a write about a run to be accepted: this job, under this claim number,
/// running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// The job that runs.
    pub job: JobId,
    /// The claim under which it runs.
    pub claim: ClaimNumber,
}

/// The identity of a store, made once by its first migration: 32 hexadecimal digits.
///
/// Together with a job's id it makes keys that are unique across stores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreId(pub String);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ClaimNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
