//! What the tests with real processes share: the jobs, the ledger that its handlers write, and the
//! processes themselves.

pub mod clock;
pub mod cluster;
pub mod ledger;
pub mod process;
pub mod proxy;
pub mod rollout;
pub mod schema;
pub mod steps;

use std::time::Duration;

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

/// A job that works for a while and writes its start and its end to a ledger.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.work", version = "1.0.0")]
pub struct Work {
    /// How long it works.
    pub millis: u64,
}

/// A job whose handler never ends by itself.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.stay", version = "1.0.0")]
pub struct Stay {
    /// What it takes to be rid of it.
    pub how: Staying,
}

/// How a handler stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Staying {
    /// It returns when it is asked to.
    Cooperative,
    /// It waits and hears nothing, but its future can be dropped.
    Deaf,
    /// It holds its thread for ever.
    Spinning,
    /// It waits for a closure that blocks for ever.
    Blocking,
}

/// A job that kills its process.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.die", version = "1.0.0")]
pub struct Die {}

/// Work that may fail once and no more.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.frail", version = "1.0.0", max_failures = 1)]
pub struct Frail {
    /// How long it works.
    pub millis: u64,
}

/// Work that must never start twice.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.once", version = "1.0.0", on_stop = "at_most_once")]
pub struct Once {
    /// How long it works.
    pub millis: u64,
}

/// A job whose first run goes on after it lost its lease, and writes.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.late", version = "1.0.0", checkpoint = LateAt)]
pub struct Late {
    /// Whether it writes its success, else a checkpoint.
    pub finishes: bool,
}

/// How far a late job has come.
#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
pub struct LateAt {
    /// The claim that wrote it.
    pub claim: i64,
}

/// A job that holds its thread for a while, without yielding.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.spin", version = "1.0.0", timeout = "90s")]
pub struct Spin {
    /// For how long.
    pub millis: u64,
}

/// The size of a long test: small unless `JOBS_TEST_SIZE=full`.
///
/// # Panics
/// When the variable holds anything else.
pub fn sized<T>(small: T, full: T) -> T {
    match std::env::var("JOBS_TEST_SIZE").as_deref() {
        Ok("full") => full,
        Ok(other) => panic!("JOBS_TEST_SIZE is {other:?}; write `full`, or leave it unset"),
        Err(_) => small,
    }
}

/// Polls until something holds, but not for ever.
///
/// # Panics
/// When it does not hold within the limit.
pub async fn until(what: &str, limit: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(limit, polling).await.is_ok(), "not within {limit:?}: {what}");
}
