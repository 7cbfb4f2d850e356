//! How a client is opened.

use std::fmt;
use std::sync::Arc;

use jobs_core::store::memory::MemoryStore;
use jobs_core::store::{Inspect, Operate, Store};
use jobs_core::{BuildId, Clock, Job, MAX_PAYLOAD_BYTES, Random};

use super::Jobs;
use crate::clock::SystemClock;
use crate::error::{Error, ErrorKind};
use crate::manifest::ProducedKind;
use crate::producer::{self, Gate};
use crate::random::OsRandom;
#[cfg(feature = "postgres")]
use crate::store::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{Backend, Scheme, unknown_scheme};
use crate::trace::TraceContext;

/// Well below what a value of SQLite or PostgreSQL may have.
const LARGEST_MAX_PAYLOAD: usize = 256 * 1024 * 1024;

/// How a client is opened.
#[derive(Debug, Clone)]
pub struct JobsBuilder {
    settings: Settings,
    build: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) build: BuildId,
    pub(super) max_payload_bytes: usize,
    pub(super) trace: Option<Trace>,
    pub(super) producer: producer::Wanted,
    #[cfg(feature = "sqlite")]
    sqlite: Vec<Change<SqliteOptions>>,
    #[cfg(feature = "postgres")]
    postgres: Vec<Change<PostgresOptions>>,
}

impl JobsBuilder {
    pub(super) fn new() -> Self {
        Self {
            settings: Settings {
                clock: Arc::new(SystemClock),
                random: Arc::new(OsRandom::new()),
                build: BuildId::default(),
                max_payload_bytes: MAX_PAYLOAD_BYTES,
                trace: None,
                producer: producer::Wanted::default(),
                #[cfg(feature = "sqlite")]
                sqlite: Vec::new(),
                #[cfg(feature = "postgres")]
                postgres: Vec::new(),
            },
            build: None,
        }
    }

    /// Labels this build, such as `concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"))`.
    /// 1 to 255 bytes. Default: `unlabelled`.
    #[must_use]
    pub fn build_label(mut self, label: impl Into<String>) -> Self {
        self.build = Some(label.into());
        self
    }

    /// The largest payload, in bytes of JSON text, from 1 byte to 256 MiB; opening a store with another
    /// fails. Default: 1 MiB. Larger payloads are refused before any write.
    #[must_use]
    pub fn max_payload_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_payload_bytes = bytes;
        self
    }

    /// Says which trace the code that enqueues is in, such as the current context of an OpenTelemetry
    /// layer. Asked at each enqueue outside of a run; what a handler enqueues belongs to its run's trace.
    #[must_use]
    pub fn trace_context(
        mut self,
        current: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) -> Self {
        self.settings.trace = Some(Trace(Arc::new(current)));
        self
    }

    /// Changes how a SQLite file is opened:
    /// `.sqlite(|options| options.synchronous(Synchronous::Normal))`.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn sqlite(
        mut self,
        change: impl Fn(SqliteOptions) -> SqliteOptions + Send + Sync + 'static,
    ) -> Self {
        self.settings.sqlite.push(Change(Arc::new(change)));
        self
    }

    /// Changes how a PostgreSQL store is opened: `.postgres(|options| options.schema("shop_jobs"))`.
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn postgres(
        mut self,
        change: impl Fn(PostgresOptions) -> PostgresOptions + Send + Sync + 'static,
    ) -> Self {
        self.settings.postgres.push(Change(Arc::new(change)));
        self
    }

    /// Refuses to open a database that is not there or not migrated, instead of making it: for tools
    /// and for roles that may not create tables. Default: opening migrates.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[must_use]
    pub fn require_migrated(self) -> Self {
        #[cfg(feature = "sqlite")]
        let this = self.sqlite(SqliteOptions::require_migrated);
        #[cfg(not(feature = "sqlite"))]
        let this = self;
        #[cfg(feature = "postgres")]
        let this = this.postgres(PostgresOptions::require_migrated);
        this
    }

    /// Says in the manifest of this build that the program enqueues a job; for programs that only
    /// enqueue, since a worker publishes what it handles. It is published when the store is opened
    /// (with [`over`](Self::over) at the first enqueue) and every hour that something is enqueued, for
    /// `jobs manifest check`.
    #[must_use]
    pub fn produces<J: Job>(mut self) -> Self {
        self.settings.producer.produces.push(ProducedKind::of::<J>());
        self
    }

    /// Asks before each enqueue whether a live worker reads the kind and version. An answer stands
    /// for 30 s where it is yes and for 2 s where it is no, so it costs a statement now and then.
    /// Where no worker is there at all, everything may be enqueued. Default: nobody is asked.
    #[must_use]
    pub fn gate(mut self, gate: Gate) -> Self {
        self.settings.producer.gate = Some(gate);
        self
    }

    /// Another source of time, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Another source of chance, for tests.
    #[must_use]
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.settings.random = random;
        self
    }

    /// Opens the store at an address.
    ///
    /// # Errors
    /// As [`Jobs::open`]; [`Configuration`](crate::ErrorKind::Configuration) for a malformed build label
    /// or an impossible [`max_payload_bytes`](Self::max_payload_bytes).
    pub async fn open(self, url: &str) -> Result<Jobs, Error> {
        let settings = self.checked()?;
        let backend = match Scheme::of(url) {
            None if url.starts_with("memory:") => {
                let seed = settings.random.draw();
                Backend::Memory(MemoryStore::new(settings.clock.clone(), seed))
            }
            #[cfg(feature = "sqlite")]
            Some(Scheme::Sqlite) => {
                let options = settings.sqlite();
                Backend::Sqlite(SqliteStore::open(url, options).await?)
            }
            #[cfg(feature = "postgres")]
            Some(Scheme::Postgres) => {
                let options = settings.postgres();
                Backend::Postgres(PostgresStore::open(url, options).await?)
            }
            #[cfg(not(feature = "sqlite"))]
            Some(Scheme::Sqlite) => return Err(crate::store::left_out("sqlite").into()),
            #[cfg(not(feature = "postgres"))]
            Some(Scheme::Postgres) => return Err(crate::store::left_out("postgres").into()),
            None => return Err(unknown_scheme(url).into()),
        };
        Ok(Jobs::new(backend, settings).published().await)
    }

    /// Uses a pool of the application's own; the file must not be in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "sqlite")]
    pub async fn from_sqlite(self, pool: &sqlx::SqlitePool) -> Result<Jobs, Error> {
        let settings = self.checked()?;
        let store = SqliteStore::from_pool(pool, settings.sqlite()).await?;
        Ok(Jobs::new(Backend::Sqlite(store), settings).published().await)
    }

    /// Uses a pool of the application's own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "postgres")]
    pub async fn from_postgres(self, pool: &sqlx::PgPool) -> Result<Jobs, Error> {
        let settings = self.checked()?;
        let options = settings.postgres();
        let store = PostgresStore::from_pool(pool.clone(), options).await?;
        Ok(Jobs::new(Backend::Postgres(store), settings).published().await)
    }

    /// Uses a store of the application's own. It should pass the conformance suite of `jobs-core`.
    /// No transaction can be joined on it.
    ///
    /// # Errors
    /// [`Configuration`](crate::ErrorKind::Configuration) for a malformed build label or an impossible
    /// [`max_payload_bytes`](Self::max_payload_bytes).
    pub fn over(self, store: impl Store + Inspect + Operate) -> Result<Jobs, Error> {
        let settings = self.checked()?;
        Ok(Jobs::new(Backend::Other(Arc::new(store)), settings))
    }

    fn checked(self) -> Result<Settings, Error> {
        let mut settings = self.settings;
        if let Some(label) = self.build {
            settings.build = BuildId::new(label)?;
        }
        if !(1..=LARGEST_MAX_PAYLOAD).contains(&settings.max_payload_bytes) {
            let bytes = settings.max_payload_bytes;
            let what = format!("max_payload_bytes({bytes}) is not 1 to {LARGEST_MAX_PAYLOAD}");
            return Err(Error::new(ErrorKind::Configuration, what));
        }
        Ok(settings)
    }
}

impl Settings {
    #[cfg(feature = "sqlite")]
    fn sqlite(&self) -> SqliteOptions {
        let options = SqliteOptions::new(self.clock.clone(), self.random.clone());
        self.sqlite.iter().fold(options, |options, change| (change.0)(options))
    }

    #[cfg(feature = "postgres")]
    fn postgres(&self) -> PostgresOptions {
        let options = PostgresOptions::default().random(self.random.clone());
        self.postgres.iter().fold(options, |options, change| (change.0)(options))
    }
}

/// Says which trace the application is in.
#[derive(Clone)]
pub(super) struct Trace(pub(super) Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>);

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}

/// A change to a store's options, kept until the store is opened.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[derive(Clone)]
struct Change<O>(Arc<dyn Fn(O) -> O + Send + Sync>);

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl<O> fmt::Debug for Change<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Change")
    }
}
