//! What a rollout asks of a store: who produces what, and what waits for a build that reads it.

use std::time::Duration;

use super::Author;
use crate::clock::Timestamp;
use crate::route::Route;

/// Waiting jobs of one queue, kind and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The queue.
    pub queue: String,
    /// The stored kind.
    pub kind: String,
    /// The stored version.
    pub version: String,
    /// The stored oldest reader; `None`: the version itself.
    pub min_reader: Option<String>,
    /// How many are scheduled or ready.
    pub jobs: u64,
    /// How many of them a build gave back unread.
    pub refused: u64,
    /// When the oldest was enqueued.
    pub oldest_at: Timestamp,
}

/// What a build published about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRecord {
    /// The build.
    pub build: String,
    /// Its manifest, as JSON text.
    pub manifest: String,
    /// When a process last published it.
    pub seen_at: Timestamp,
}

/// Which stranded jobs to end.
#[derive(Debug, Clone)]
pub struct Strand<'a> {
    /// Who ends them.
    pub by: Author,
    /// The routes that no live worker reads.
    pub routes: &'a [Route],
    /// Only jobs that have waited for this long: since they were due, or, once a build has given
    /// them back, since they were enqueued.
    pub waited: Duration,
    /// At most this many jobs.
    pub limit: u32,
}

impl Waiting {
    /// Where it stands among the others.
    pub fn place(&self) -> (&str, &str, &str, Option<&str>) {
        (&self.queue, &self.kind, &self.version, self.min_reader.as_deref())
    }
}

/// A number that stands for a text, for a key of bounded length: FNV-1a.
pub fn fingerprint(text: &str) -> i64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    i64::from_ne_bytes(text.bytes().fold(0xcbf2_9ce4_8422_2325, step).to_ne_bytes())
}
