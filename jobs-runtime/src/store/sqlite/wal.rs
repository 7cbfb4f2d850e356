//! The size of the write-ahead log.
//!
//! SQLite folds the log into the file as it goes and starts it over once no reader needs it. A reader
//! that stays open for hours keeps it from that, and the log grows without bound. None of this
//! store's reads does; a stranger's may, so that is warned of, and the log is truncated as soon as
//! the reader has left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::SqliteConnection;

use super::holder::beside;

/// How often the size is looked at, and a truncation tried.
const CHECK: Duration = Duration::from_secs(1);
const WARN: Duration = Duration::from_mins(1);
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

#[derive(Debug)]
pub(super) struct Wal {
    path: PathBuf,
    warning_bytes: u64,
    checked: Option<Duration>,
    warned: Option<Duration>,
}

impl Wal {
    pub(super) fn new(database: &Path, warning_bytes: u64) -> Self {
        let path = beside(database, "-wal");
        Self { path, warning_bytes, checked: None, warned: None }
    }

    /// Truncates a log that has grown too large, or says what keeps it from that. Called between two
    /// transactions.
    pub(super) async fn check(&mut self, connection: &mut SqliteConnection, elapsed: Duration) {
        if !is_time(&mut self.checked, elapsed, CHECK) {
            return;
        }
        let Some(bytes) = self.bytes().filter(|bytes| *bytes > self.warning_bytes) else {
            return;
        };
        // Whether it worked shows in the size, and a failure has no other effect.
        drop(sqlx::query(TRUNCATE).execute(connection).await);
        let is_kept = self.bytes().is_some_and(|bytes| bytes > self.warning_bytes);
        if is_kept && is_time(&mut self.warned, elapsed, WARN) {
            tracing::warn!(
                wal_bytes = bytes,
                path = %self.path.display(),
                "the write-ahead log grows: a reader of another program keeps a transaction open; \
                 end it, and the log shrinks by itself"
            );
        }
    }

    fn bytes(&self) -> Option<u64> {
        std::fs::metadata(&self.path).ok().map(|file| file.len())
    }
}

fn is_time(last: &mut Option<Duration>, elapsed: Duration, every: Duration) -> bool {
    let is_time = last.is_none_or(|last| elapsed.saturating_sub(last) >= every);
    if is_time {
        *last = Some(elapsed);
    }
    is_time
}
