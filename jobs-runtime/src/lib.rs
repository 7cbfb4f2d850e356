//! Jobs that survive deploys: client, workers and stores.
//!
//! | you | begin at |
//! |---|---|
//! | write a job | the derive [`Job`](derive@Job) with the table of its options, [`Handler`], [`JobContext`], [`JobError`] |
//! | enqueue | [`Jobs`], [`Enqueue`] |
//! | run a worker | [`Registry`], [`Worker`], [`DrainReport`] |
//! | save how far a job has come | the derive [`Checkpoint`](derive@Checkpoint), [`JobContext::checkpoint`], [`Cursor`] |
//! | change a payload | the derive [`PastJob`](derive@PastJob), [`lock`], [`manifest`] |
//! | test | [`testing`] |
//! | look and operate | [`store::Inspect`], [`store::Operate`], and the command line (feature `cli`) |
//! | write a store | [`store::Store`] and its conformance suite in `jobs-core` |

#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    allow(unused_variables, clippy::unused_async, reason = "only a SQL store has transactions")
)]

#[cfg(feature = "cli")]
pub mod cli;
mod client;
mod clock;
mod context;
mod enqueue;
mod error;
mod handler;
mod judge;
mod log;
pub mod manifest;
mod outage;
mod producer;
mod random;
mod registry;
mod run;
mod schedule;
mod signals;
mod span;
pub mod store;
mod telemetry;
pub mod testing;
mod trace;
mod wait;
mod worker;

#[doc(hidden)]
pub use jobs_core::__private;
pub use jobs_core::store::Enqueued;
pub use jobs_core::*;

pub use self::client::{Jobs, JobsBuilder};
pub use self::clock::SystemClock;
pub use self::context::{Batch, Cursor, Interrupted, JobContext, MAX_CHECKPOINT_BYTES, Spawned};
pub use self::enqueue::{Answer, Enqueue, EnqueueIn, Enqueueable};
pub use self::error::{Error, ErrorKind};
pub use self::handler::{Ends, Handler, HandlerFn, JobError, Outcome, ResultExt, Takes};
pub use self::producer::Gate;
pub use self::random::OsRandom;
pub use self::registry::{Handlers, Next, Registry, RegistryError, WithHandler};
pub use self::run::RunInfo;
pub use self::schedule::{DeclaredBy, SchedulePause, ScheduleStatus, ScheduledJob};
pub use self::store::{TransactionConnection, UserTransaction};
pub use self::trace::{InvalidTraceContext, TRACEPARENT, TraceContext};
pub use self::wait::Wait;
pub use self::worker::{DrainReport, EXIT_UNFINISHED, Worker};

/// What most applications use.
pub mod prelude {
    pub use crate::{
        Checkpoint, Handler, Interrupted, Job, JobContext, JobError, Jobs, Outcome, PastJob,
        Registry, ResultExt, Worker,
    };
}

/// The examples that stand in the README, compiled.
#[cfg(all(doctest, feature = "sqlite", feature = "postgres"))]
#[doc = include_str!("../../README.md")]
struct Readme;
