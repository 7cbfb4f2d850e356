//! The connections of a store and what each is for.
//!
//! The writer has one, each heartbeat has one, reads share a few, and the transactions of users share
//! others, so that no handler can keep a renewal or a settlement waiting for a connection.

use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode, SqlitePool,
    SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};

use super::error::{During, Result, is_busy};
use super::options::Synchronous;
use super::turn::{LONGEST_WAIT, Turn};
use super::wal;

const READERS: u32 = 4;
/// How many transactions of users may be open or waiting. Only one of them writes at a time.
const TRANSACTIONS: u32 = 32;
/// A log is cut to this size when it starts over: 16 MiB.
const WAL_KEPT_BYTES: &str = "16777216";
/// The log is folded into the file whenever it has this many pages: 16 MiB. Folding is two flushes,
/// so it should not happen at every few commits.
const WAL_FOLD_PAGES: &str = "4000";
/// Pages kept in memory by the writer: 32 MiB.
const WRITER_CACHE: &str = "-32000";

/// Opens connections to one file.
#[derive(Debug, Clone)]
pub(super) struct Connect {
    options: SqliteConnectOptions,
}

impl Connect {
    pub(super) fn new(options: SqliteConnectOptions, synchronous: Synchronous) -> Self {
        let options = options
            .create_if_missing(true)
            // A pool may have been opened otherwise; none of these lets several processes write.
            .read_only(false)
            .immutable(false)
            .shared_cache(false)
            .locking_mode(SqliteLockingMode::Normal)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(match synchronous {
                Synchronous::Full => SqliteSynchronous::Full,
                Synchronous::Normal => SqliteSynchronous::Normal,
            })
            .pragma("journal_size_limit", WAL_KEPT_BYTES)
            .pragma("wal_autocheckpoint", WAL_FOLD_PAGES)
            .pragma("temp_store", "memory")
            .disable_statement_logging();
        Self { options }
    }

    /// The same, but only to a file that is there: once a store is open, a missing file is an error and not
    /// the reason for an empty one.
    pub(super) fn existing(self) -> Self {
        Self { options: self.options.create_if_missing(false) }
    }

    /// A connection that takes the write lock through a [`Turn`], so it never waits by itself.
    pub(super) async fn writing(&self, turn: &Turn) -> Result<SqliteConnection> {
        let options = self.options.clone().busy_timeout(Duration::ZERO).row_buffer_size(1024);
        let mut connection = open(&options.pragma("cache_size", WRITER_CACHE), turn).await?;
        // The one before may have failed for want of the very room that the log takes.
        wal::fold_large(&mut connection, self.options.get_filename()).await;
        Ok(connection)
    }

    /// Connections for reads. They wait only while a crashed process's log is recovered.
    pub(super) fn reads(&self) -> SqlitePool {
        pool(READERS).connect_lazy_with(self.options.clone())
    }

    /// Connections for the transactions of users.
    pub(super) fn transactions(&self) -> SqlitePool {
        pool(TRANSACTIONS).connect_lazy_with(self.options.clone().busy_timeout(Duration::ZERO))
    }
}

/// SQLite does not wait for the lock that it needs to begin a write-ahead log, which is then kept for
/// good. Even reading needs a turn where a log is just begun, recovered, or removed with its last user.
async fn open(options: &SqliteConnectOptions, turn: &Turn) -> Result<SqliteConnection> {
    let doing = format!("opening {}", options.get_filename().display());
    let mut patience = turn.patience(&doing, LONGEST_WAIT);
    loop {
        match SqliteConnection::connect_with(options).await {
            Err(error) if is_busy(&error) => patience.wait().await?,
            connection => return connection.during(&doing),
        }
    }
}

fn pool(most: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(most)
        .min_connections(0)
        .max_lifetime(None)
        .idle_timeout(Duration::from_mins(10))
        .test_before_acquire(false)
}
