//! The floor: the work of a job system in SQL written by hand, over sqlx, and nothing around it.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use super::app::Stamp;

/// Rows that a scenario begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Ready jobs of the measured kind.
    Ready,
    /// Jobs that succeeded a moment ago.
    Finished,
    /// Jobs that are due in a day or later.
    Future,
    /// Ready jobs, in the same queue, of 20 kinds that nobody here handles.
    Foreign,
    /// Dead letters of those kinds and ten classes, each with a line of history.
    Dead,
}

/// Hand-written SQL over one database.
#[async_trait]
pub(crate) trait Floor: Send {
    /// Fills the table: the same rows for both sides.
    async fn fill(&mut self, rows: Rows, count: u64) -> Result<()>;

    /// Stores jobs by one statement.
    async fn enqueue(&mut self, jobs: &[Stamp]) -> Result<()>;

    /// Claims and completes `count` jobs in batches; answers the ends of its tenths since the start.
    async fn drain(&mut self, batch: u32, count: u64) -> Result<Vec<Duration>>;

    /// Enqueues jobs one by one to an idle worker in this process; answers how long each took from
    /// before its enqueue to after its claim.
    async fn pickups(&mut self, count: usize, spacing: Duration) -> Result<Vec<Duration>>;

    /// Writes one row, the same one each time, as a checkpoint is kept.
    async fn upsert(&mut self, text: &str) -> Result<()>;

    /// Holds a snapshot open on a connection of its own until it is dropped.
    async fn hold_snapshot(&mut self) -> Result<Box<dyn Send>>;

    /// How many transactions the database has committed, where it counts them.
    async fn commits(&mut self) -> Result<Option<i64>>;
}

/// Counts completed jobs and notes the end of each tenth.
pub(crate) struct Tenths {
    begun: Duration,
    count: u64,
    ends: Vec<Duration>,
}

impl Tenths {
    pub(crate) fn begin(count: u64) -> Self {
        Self { begun: super::app::elapsed(), count, ends: Vec::with_capacity(10) }
    }

    pub(crate) fn note(&mut self, done: u64) {
        while self.ends.len() < 10 && done * 10 >= self.count * (self.ends.len() as u64 + 1) {
            self.ends.push(super::app::elapsed().saturating_sub(self.begun));
        }
    }

    pub(crate) fn ends(self) -> Vec<Duration> {
        self.ends
    }
}
