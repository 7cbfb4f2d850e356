//! For the tests of applications: handlers without a database, and a rollout as a simulation.
//!
//! 1. Nothing here waits: time stands still until a test moves it, and chance comes from a seed.
//! 2. Jobs are judged, decoded, run inside their middleware and settled by the same code as in a worker.
//! 3. What an application enqueues goes into the store in memory, which is the reference that the
//!    others are compared with.
//!
//! Deliberately absent: leases, heartbeats, time-outs, and what a stop asks of handlers, undo included.
//! Run a [`Worker`](crate::Worker) over `memory:` for those.
//!
//! ```
//! # use std::time::Duration;
//! # use jobs_runtime::prelude::*;
//! # use serde::{Deserialize, Serialize};
//! use jobs_runtime::testing::{Inline, enqueued};
//!
//! #[derive(Debug, Serialize, Deserialize, Job)]
//! #[job(kind = "mail.welcome", version = "1.0.0")]
//! struct Welcome { to: String }
//!
//! async fn welcome(job: Welcome, _: JobContext<()>) -> Result<(), JobError> {
//!     if job.to.is_empty() { Err(JobError::new("nobody to welcome")) } else { Ok(()) }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let inline = Inline::new(Registry::new().handle(welcome).build()?, ()).await;
//! let outcome = inline.run(Welcome { to: "ann".into() }).await.expect("somebody to welcome");
//! assert_eq!(outcome, Outcome::Done);
//!
//! // What the application's own code would do with its client:
//! inline.jobs().enqueue(Welcome { to: "bob".into() }).delay(Duration::from_secs(60)).await?;
//! enqueued::<Welcome>(inline.jobs(), |job| job.to == "bob").await;
//! inline.advance(Duration::from_secs(60));
//! assert_eq!(inline.drain().await.succeeded, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod engine;
mod inline;
mod report;
mod simulation;

use jobs_core::store::Filter;
use jobs_core::{DecodeError, Job, Reader, Stamp, Verdict, judge};

pub use self::inline::{Drained, Inline};
pub use self::report::{JobReport, Report};
pub use self::simulation::{Plan, Simulation};
use crate::client::Jobs;

/// The first waiting job of a type for which `is_wanted` holds.
///
/// # Panics
/// When there is none: the message lists the payloads of its kind that wait. When the store can't be
/// read.
pub async fn enqueued<J: Job>(jobs: &Jobs, is_wanted: impl Fn(&J) -> bool) -> J {
    let waiting = waiting::<J>(jobs).await;
    let found = waiting.iter().find_map(|text| {
        let job = J::decode(J::VERSION.major, text).ok()?;
        is_wanted(&job).then_some(job)
    });
    found.unwrap_or_else(|| {
        let kind = J::KIND;
        panic!("no such job of `{kind}` was enqueued; what waits of it: {waiting:?}")
    })
}

/// Asserts that no job of a type waits for which `is_unwanted` holds.
///
/// # Panics
/// When there is one. When the store can't be read.
pub async fn not_enqueued<J: Job>(jobs: &Jobs, is_unwanted: impl Fn(&J) -> bool) {
    for text in waiting::<J>(jobs).await {
        let job = J::decode(J::VERSION.major, &text);
        assert!(!job.is_ok_and(|job| is_unwanted(&job)), "enqueued of `{}`: {text}", J::KIND);
    }
}

/// The payloads of the waiting jobs of a type, as this build writes them.
async fn waiting<J: Job>(jobs: &Jobs) -> Vec<String> {
    let filter = Filter { kind: Some(J::KIND.to_owned()), ..Filter::default() };
    let all = jobs.inspect().jobs(&filter, u32::MAX).await.expect("the store can be read");
    let is_own = |version: &str| {
        Stamp::parse(version, None).is_ok_and(|it| it.version().major == J::VERSION.major)
    };
    let own = all.into_iter().filter(|job| job.state.is_waiting() && is_own(&job.version));
    own.map(|job| job.payload).collect()
}

/// Decodes a golden row as a worker of this build would: judged by its version, upcast step by step.
///
/// # Errors
/// As a stored row that this build does not read, or that does not decode.
///
/// # Panics
/// When `version` is no version.
pub fn decode_golden<J: Job>(version: &str, payload: &str) -> Result<J, DecodeError> {
    let stamp = Stamp::parse(version, None).expect("a golden row has a version");
    match judge(stamp, Reader::Reads(&J::lines())) {
        Verdict::Run => J::decode(stamp.version().major, payload),
        Verdict::Upcast { from } | Verdict::TolerantRead { from } => J::decode(from, payload),
        Verdict::Refuse(_) | Verdict::Retired => {
            Err(DecodeError::NoLine { major: stamp.version().major })
        }
    }
}
