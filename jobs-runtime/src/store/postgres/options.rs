//! How a store is opened.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::{Random, SeededRandom, StoreError, StoreErrorKind};

/// What PostgreSQL keeps of a name.
const MAX_NAME_BYTES: usize = 63;
/// More than any server takes.
const MAX_CONNECTIONS: u32 = 10_000;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_hours(24);

/// Settings of a [`PostgresStore`](super::PostgresStore); every one has a default.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub(super) schema: String,
    pub(super) migration: Migration,
    pub(super) connections: u32,
    pub(super) connect_timeout: Duration,
    pub(super) statement_timeout: Duration,
    pub(super) patience: Duration,
    pub(super) path: Path,
    pub(super) random: Arc<dyn Random>,
}

/// What opening does about the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Migration {
    Run,
    Require,
}

/// What lies between this process and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// A session of the server's own for each connection.
    Direct,
    /// A pooler that gives a session for one transaction at a time.
    Pooler,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "jobs".to_owned(),
            migration: Migration::Run,
            connections: 10,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(10),
            path: Path::Direct,
            random: Arc::new(SeededRandom::new(0)),
        }
    }
}

impl PostgresOptions {
    /// The schema that holds the tables; any name of at most 63 bytes. Default: `jobs`.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Refuses to open a database whose schema is not up to date, instead of migrating it: for
    /// roles that may not create tables. Default: opening migrates.
    #[must_use]
    pub fn require_migrated(mut self) -> Self {
        self.migration = Migration::Require;
        self
    }

    /// How many connections the store opens at most beside those for heartbeats and wake-ups; also
    /// how many the pool for transactions of the application opens. 1 to 10,000. Default: 10.
    #[must_use]
    pub fn connections(mut self, most: u32) -> Self {
        self.connections = most;
        self
    }

    /// How long a call waits for a connection, 1 ms to 24 h. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, longest: Duration) -> Self {
        self.connect_timeout = longest;
        self
    }

    /// After how long the server ends a statement of the store, 1 ms to 24 h. Default: 30 s, the length
    /// of a lease: what takes longer comes too late.
    #[must_use]
    pub fn statement_timeout(mut self, longest: Duration) -> Self {
        self.statement_timeout = longest;
        self
    }

    /// How long a call waits for a row that a transaction of the application holds, where it can't
    /// step over it, 1 ms to 24 h. Default: 10 s.
    #[must_use]
    pub fn patience(mut self, longest: Duration) -> Self {
        self.patience = longest;
        self
    }

    /// Works through PgBouncer in transaction mode or the like: no `LISTEN` (the worker polls), no
    /// prepared statements, no settings of the session. Slower: three round trips a statement.
    #[must_use]
    pub fn behind_pooler(mut self) -> Self {
        self.path = Path::Pooler;
        self
    }

    /// Where the few drawn numbers come from that no caller gives. Default: a fixed seed.
    #[must_use]
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.random = random;
        self
    }

    /// Refuses what can't be worked with; opening a store does so first.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let refused = |what: String| StoreError::new(StoreErrorKind::Configuration, what);
        let schema = &self.schema;
        if schema.is_empty()
            || schema.len() > MAX_NAME_BYTES
            || schema.chars().any(char::is_control)
        {
            let what = "the schema's name must have 1 to 63 bytes and no control characters";
            return Err(refused(what.to_owned()));
        }
        if !(1..=MAX_CONNECTIONS).contains(&self.connections) {
            let most = self.connections;
            return Err(refused(format!("{most} connections are not 1 to {MAX_CONNECTIONS}")));
        }
        let spans = [
            ("connect_timeout", self.connect_timeout),
            ("statement_timeout", self.statement_timeout),
            ("patience", self.patience),
        ];
        for (name, span) in spans {
            if !(SHORTEST..=LONGEST).contains(&span) {
                return Err(refused(format!("a {name} of {span:?} is not 1 ms to 24 h")));
            }
        }
        Ok(())
    }
}
