//! The size of the write-ahead log.
//!
//! SQLite folds the log into the file as it goes and starts it over once no reader needs it. A reader
//! that stays open for hours keeps it from that, and the log grows without bound. None of this
//! store's reads does; a stranger's may, so `warnings` tells of it, and the log is truncated as soon
//! as the reader has left. On a disk that the log has filled no write would come to that, so a connection
//! that is made anew, as after each failure, folds it first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::Timestamp;
use sqlx::SqliteConnection;

use super::error::Result;
use super::holder::beside;
use super::writer::Write;

/// How often the size is looked at, and a truncation tried.
const CHECK: Duration = Duration::from_secs(1);
/// What a new connection folds: 1 MiB.
const WORTH_FOLDING_BYTES: u64 = 1024 * 1024;
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

#[derive(Debug)]
pub(super) struct Wal {
    path: PathBuf,
    warning_bytes: u64,
    checked: Option<Duration>,
}

impl Wal {
    pub(super) fn new(database: &Path, warning_bytes: u64) -> Self {
        Self { path: beside(database, "-wal"), warning_bytes, checked: None }
    }

    /// Truncates a log that has grown too large, where no reader keeps it from that. Called between
    /// two transactions.
    pub(super) async fn check(&mut self, connection: &mut SqliteConnection, elapsed: Duration) {
        if self.checked.is_some_and(|last| elapsed.saturating_sub(last) < CHECK) {
            return;
        }
        self.checked = Some(elapsed);
        if too_large(&self.path, self.warning_bytes).is_some() {
            // Whether it worked shows in the size.
            fold(connection).await;
        }
    }
}

/// Folds the log into the file and empties it, where nobody keeps it from that.
pub(super) async fn fold(connection: &mut SqliteConnection) {
    // A failure has no other effect than that the log stays.
    drop(sqlx::query(TRUNCATE).execute(connection).await);
}

/// The same, where the log is worth it: on a disk that is full it is most of what can be given back.
pub(super) async fn fold_large(connection: &mut SqliteConnection, database: &Path) {
    if too_large(&beside(database, "-wal"), WORTH_FOLDING_BYTES).is_some() {
        fold(connection).await;
    }
}

/// Folds the log when a worker has ended: the process may end without dropping the store.
pub(super) struct Fold;

#[async_trait]
impl Write for Fold {
    type Answer = ();

    /// Never within a transaction: others write, and so the log is in use.
    async fn run(&mut self, _: &mut SqliteConnection, _: Timestamp) -> Result<()> {
        Ok(())
    }

    async fn run_alone(&mut self, connection: &mut SqliteConnection, _: Timestamp) -> Result<()> {
        fold(connection).await;
        Ok(())
    }

    fn wakes(&self, (): &()) -> bool {
        false
    }

    fn is_one_statement(&self) -> bool {
        true
    }
}

/// Says that the log of a database has grown beyond so much, and what keeps it from shrinking.
pub(super) fn warning(database: &Path, warning_bytes: u64) -> Option<String> {
    let path = beside(database, "-wal");
    let bytes = too_large(&path, warning_bytes)?;
    Some(format!(
        "the write-ahead log {} has grown to {} MiB: a reader of another program keeps a transaction \
         open, and reads become slower; end it, and the log shrinks at the next write",
        path.display(),
        bytes.div_ceil(1024 * 1024)
    ))
}

fn too_large(log: &Path, warning_bytes: u64) -> Option<u64> {
    std::fs::metadata(log).ok().map(|file| file.len()).filter(|bytes| *bytes > warning_bytes)
}
