//! What a user may choose about the embedded store.

use std::sync::Arc;

use jobs_core::{Clock, Random};

/// How an acknowledged write survives the loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// It does: every commit waits for the disk. The default, since a job that was acknowledged and
    /// then lost is what a job store is for preventing.
    #[default]
    Full,
    /// The last commits before a loss of power may be gone; a crash of the process loses nothing.
    /// Many times the commits a second on disks that flush slowly.
    Normal,
}

/// The settings of a [`SqliteStore`](super::SqliteStore).
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) synchronous: Synchronous,
    pub(super) wal_warning_bytes: u64,
    pub(super) migration: Migration,
}

/// What opening does about the file and its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Migration {
    Run,
    Require,
}

impl SqliteOptions {
    /// Above this size of its write-ahead log the store warns that a reader keeps it from being
    /// reset: 64 MiB.
    pub const WAL_WARNING_BYTES: u64 = 64 * 1024 * 1024;

    /// The defaults over a clock, which judges due times and times the leases of others, and a source
    /// of chance, which makes the store's identity and spreads waits.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self {
            clock,
            random,
            synchronous: Synchronous::default(),
            wal_warning_bytes: Self::WAL_WARNING_BYTES,
            migration: Migration::Run,
        }
    }

    /// Chooses what a loss of power may cost.
    #[must_use]
    pub const fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Refuses to open a file that is not there or whose schema is not up to date, instead of making
    /// or migrating it: for tools. Default: opening does both.
    #[must_use]
    pub const fn require_migrated(mut self) -> Self {
        self.migration = Migration::Require;
        self
    }

    /// Chooses the size of the write-ahead log from which on the store warns, and truncates it as
    /// soon as no reader needs it.
    #[must_use]
    pub const fn wal_warning_bytes(mut self, bytes: u64) -> Self {
        self.wal_warning_bytes = bytes;
        self
    }
}
