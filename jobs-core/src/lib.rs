//! The vocabulary and the rules of the jobs framework.
//!
//! Payload crates depend on this crate alone: it has the derives and nothing that touches the
//! outside. Workers depend on `jobs-runtime`, which re-exports all of it.

// The derives write `::jobs_core::…`, also inside this crate and its tests.
extern crate self as jobs_core;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod id;
mod job;
mod name;
mod version;

pub use id::{ClaimNumber, Fence, JobId, StoreId, WorkerId};
pub use job::{Checkpoint, DecodeError, Job, NoCheckpoint, Payload, Policy, Versioned};
pub use name::{
    BuildId, InvalidName, Kind, MAX_KIND_BYTES, MAX_LABEL_BYTES, MAX_QUEUE_BYTES,
    MAX_UNIQUE_KEY_BYTES, QueueName, UniqueKey, WorkerName, is_kind,
};
pub use version::{
    Line, MalformedVersion, MinReader, Reader, Refusal, Stamp, Verdict, Version, judge,
};

#[cfg(feature = "derive")]
pub use jobs_derive::{Checkpoint, Job, PastJob};
