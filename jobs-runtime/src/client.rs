//! The client: opens a store, enqueues, and looks at single jobs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::memory::MemoryStore;
use jobs_core::store::{Enqueued, Inspect, Operate, Retention, Store};
use jobs_core::{
    BuildId, Clock, EnvelopeError, Job, JobId, JobRecord, MAX_PAYLOAD_BYTES, NewJob, Random,
    StoreId,
};

use crate::clock::SystemClock;
use crate::enqueue::{Enqueue, Enqueueable};
use crate::error::{Error, ErrorKind};
use crate::manifest::ProducedKind;
use crate::producer::{self, Gate, Producer};
use crate::random::OsRandom;
#[cfg(feature = "postgres")]
use crate::store::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{Backend, StoreDatabase, unknown_scheme};
use crate::trace::TraceContext;
use crate::wait::{Ends, Wait};

/// Well below what a value of SQLite or PostgreSQL may have.
const LARGEST_MAX_PAYLOAD: usize = 256 * 1024 * 1024;

/// A handle on a job store. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct Jobs {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    settings: Settings,
    producer: Producer,
    ends: Ends,
}

/// How a client is opened.
#[derive(Debug, Clone)]
pub struct JobsBuilder {
    settings: Settings,
    build: Option<String>,
}

#[derive(Debug, Clone)]
struct Settings {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    build: BuildId,
    max_payload_bytes: usize,
    trace: Option<Trace>,
    producer: producer::Wanted,
    #[cfg(feature = "sqlite")]
    sqlite: Vec<Change<SqliteOptions>>,
    #[cfg(feature = "postgres")]
    postgres: Vec<Change<PostgresOptions>>,
}

impl Jobs {
    /// Opens the store at an address with the default settings: `sqlite://app.db` (the file is made
    /// when absent), `postgres://user@host/database`, or `memory:` for tests.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error that says what to do: an address that no store serves, a
    /// file or server that can't be used, a schema of another version.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::builder().open(url).await
    }

    /// Settings that differ from the defaults.
    pub fn builder() -> JobsBuilder {
        JobsBuilder {
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

    /// Begins to enqueue a job. Nothing happens until it is awaited.
    pub fn enqueue<J: Enqueueable>(&self, job: J) -> Enqueue<'_, J::One> {
        Enqueue::new(self, [job])
    }

    /// Begins to enqueue any number of jobs of one type. All are stored or none; the answers are in
    /// their order.
    pub fn enqueue_all<J: Enqueueable>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Enqueue<'_, J::Many> {
        Enqueue::new(self, jobs)
    }

    /// Enqueues a job whose payload is text already, as tools do that know no type for it.
    ///
    /// # Errors
    /// As [`Enqueue`].
    pub async fn enqueue_new(&self, job: NewJob) -> Result<Enqueued, Error> {
        let bytes = job.payload.len();
        if bytes > self.max_payload_bytes() {
            let (kind, max_bytes) = (job.kind.to_string(), self.max_payload_bytes());
            return Err(EnvelopeError::TooLarge { kind, bytes, max_bytes }.into());
        }
        let job = NewJob { build: Some(self.build().clone()), ..job };
        Ok(self.store().enqueue(&[job]).await?.remove(0))
    }

    /// Deletes finished jobs that ended longer ago than their retention, oldest first, at most
    /// `limit`; answers how many. Workers do it by themselves; this is for tools.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error.
    pub async fn prune(&self, retention: Retention, limit: u32) -> Result<u32, Error> {
        Ok(self.store().prune(retention, limit).await?)
    }

    /// What outside the store has slowed it down for longer than `lasting`, in words for an operator;
    /// workers log it too.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error.
    pub async fn warnings(&self, lasting: Duration) -> Result<Vec<String>, Error> {
        Ok(self.store().warnings(lasting).await?)
    }

    /// Opens a transaction on the database that the jobs are in, for rows of the application that
    /// commit together with jobs: `jobs.begin::<sqlx::Sqlite>()`.
    ///
    /// On SQLite it is `BEGIN IMMEDIATE` and everyone else's writes wait for its end, so keep it
    /// short; a call of this client that is not passed the transaction waits for it too, and fails
    /// when it would wait for ever. Dropping it rolls it back.
    ///
    /// # Errors
    /// [`WrongTransaction`](crate::ErrorKind::WrongTransaction) when the jobs are in another database; a
    /// [`Store`](crate::ErrorKind::Store) error.
    pub async fn begin<DB: StoreDatabase>(&self) -> Result<sqlx::Transaction<'static, DB>, Error> {
        DB::begin(self).await
    }

    /// Reads a job and where it is in its life; `None` when there is none with this id.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error.
    pub async fn job(&self, id: JobId) -> Result<Option<JobRecord>, Error> {
        Ok(self.inspect().job(id).await?)
    }

    /// Waits until a job has succeeded, died or been cancelled, and reads it:
    /// `jobs.wait(id).timeout(Duration::from_secs(30)).await?.result_as::<Totals>()`.
    pub fn wait(&self, id: JobId) -> Wait<'_> {
        Wait::new(self, id)
    }

    /// The store's contract, for tools and tests.
    pub fn store(&self) -> &dyn Store {
        self.inner.backend.store()
    }

    /// The read side, for tools.
    pub fn inspect(&self) -> &dyn Inspect {
        self.inner.backend.inspect()
    }

    /// The operators' side, for tools.
    pub fn operate(&self) -> &dyn Operate {
        self.inner.backend.operate()
    }

    /// Which store this is.
    pub fn store_id(&self) -> &StoreId {
        self.store().id()
    }

    /// The label of this build.
    pub fn build(&self) -> &BuildId {
        &self.inner.settings.build
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    pub(crate) fn producer(&self) -> &Producer {
        &self.inner.producer
    }

    pub(crate) fn ends(&self) -> &Ends {
        &self.inner.ends
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.settings.clock
    }

    /// The trace that a job which is enqueued now belongs to.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let of_application = || self.inner.settings.trace.as_ref().and_then(|trace| (trace.0)());
        crate::trace::current().or_else(of_application)
    }

    pub(crate) fn max_payload_bytes(&self) -> usize {
        self.inner.settings.max_payload_bytes
    }

    pub(crate) fn random(&self) -> &Arc<dyn Random> {
        &self.inner.settings.random
    }

    /// This client, once it has said what it produces.
    async fn published(self) -> Self {
        self.producer().publish(&self).await;
        self
    }

    fn new(backend: Backend, settings: Settings) -> Self {
        let producer = Producer::new(settings.producer.clone());
        Self { inner: Arc::new(Inner { backend, settings, producer, ends: Ends::default() }) }
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
struct Trace(Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>);

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

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("store", &self.store().id().0).finish_non_exhaustive()
    }
}

impl JobsBuilder {
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
    /// and every hour that something is enqueued, for `jobs manifest check`.
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
        let backend = match url.split_once(':') {
            Some(("memory", _)) => {
                let seed = settings.random.draw();
                Backend::Memory(MemoryStore::new(settings.clock.clone(), seed))
            }
            #[cfg(feature = "sqlite")]
            Some(("sqlite", _)) => {
                let options = settings.sqlite();
                Backend::Sqlite(SqliteStore::open(url, options).await?)
            }
            #[cfg(feature = "postgres")]
            Some(("postgres" | "postgresql", _)) => {
                let options = settings.postgres();
                Backend::Postgres(PostgresStore::open(url, options).await?)
            }
            _ => return Err(unknown_scheme(url).into()),
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
    /// [`Configuration`](crate::ErrorKind::Configuration) for a malformed build label.
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
