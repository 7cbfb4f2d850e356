//! The vocabulary and the rules of the jobs framework.
//!
//! Payload crates depend on this crate alone: it has the derives and nothing that touches the
//! outside. Workers depend on `jobs-runtime`, which re-exports all of it.
//!
//! The rules are pure functions: [`judge`] decides what a build may read, [`transition`] what
//! follows from how a run ended. The [`store`] contract says what a store must keep.

// The derives write `::jobs_core::…`, also inside this crate and its tests.
extern crate self as jobs_core;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod clock;
mod codec;
pub mod drain;
mod envelope;
mod error;
mod id;
mod job;
mod lease;
#[cfg(feature = "schema")]
pub mod lock;
mod name;
mod outcome;
mod random;
mod record;
mod retry;
mod route;
mod schedule;
mod state;
pub mod store;
mod transition;
mod version;

pub use clock::{Clock, ManualClock, Timestamp, micros};
pub use codec::{EncodeError, check_levels, encode};
pub use envelope::{
    EnvelopeError, Headers, MAX_HEADERS_BYTES, MAX_PAYLOAD_BYTES, NewJob, OnConflict, UniqueWhile,
    encode_headers,
};
pub use error::{StoreError, StoreErrorKind, chain};
pub use id::{ClaimNumber, Fence, JobId, StoreId, WorkerId};
pub use job::{
    Checkpoint, DecodeError, Job, NoCheckpoint, OldCheckpoint, OnStop, Payload, Policy, Versioned,
};
pub use lease::Lease;
pub use name::{
    BuildId, InvalidName, Kind, MAX_KIND_BYTES, MAX_LABEL_BYTES, MAX_QUEUE_BYTES,
    MAX_UNIQUE_KEY_BYTES, QueueName, ScheduleName, UniqueKey, WorkerName, is_kind,
};
pub use outcome::{
    Company, Ending, Failure, Interruption, MAX_CLASS_BYTES, MAX_ERROR_BYTES, Retry, storable,
};
pub use random::{Random, SeededRandom, below, jittered};
pub use record::{
    Budget, COUNTER_MAX, ClaimedJob, Counters, Event, EventKind, JobRecord, MAX_EVENTS,
    MAX_PROGRESS_BYTES, MAX_RESULT_BYTES, NewEvent, Notes, Place, Priority, ProgressNote,
    RefusedBy, StoredCheckpoint,
};
pub use retry::{Ladder, MAX_WAIT};
pub use route::{Route, RouteVerdict, SUSPECT_CRASHES};
pub use schedule::{CatchUp, MAX_CATCH_UP, Schedule};
pub use state::State;
pub use transition::{
    Due, ErrorNote, MAX_CRASHES, NOT_PROGRESSING, RELEASE_DELAY, Run, Settlement, WAIT_TOO_LONG,
    transition,
};
pub use version::{
    Line, MalformedVersion, MinReader, Reader, Refusal, Stamp, Verdict, Version, judge,
};

#[cfg(feature = "derive")]
pub use jobs_derive::{Checkpoint, Job, PastJob};
