//! The store for fleets: PostgreSQL.
//!
//! 1. It keeps the contract of [`jobs_core::store`]; the same suite checks it and the others.
//! 2. The database's clock judges leases and due times; this process's clock tells only how
//!    long the connection for wake-ups has been silent, and when a row is tried again that the server
//!    lets nobody write.
//! 3. A clean run costs two statements, one round trip each, and no event.
//! 4. A call that is dropped happens as a whole or not at all; no connection is ever handed on
//!    inside a transaction.
//! 5. What a claim visits grows with what it takes, not with foreign, scheduled or finished rows.
//!
//! Deliberately absent: stored functions and triggers (code decides, SQL guards), and anything that
//! runs by itself but the end of a notification's window.
//!
//! One table whose rows change state in place, with one partial index for each question. Separate
//! tables for ready, running or finished jobs were tried and lost or bought nothing.

mod checkpoint;
mod claim;
mod due;
mod enqueue;
mod error;
mod event;
mod halves;
mod idle;
mod inspect;
mod lane;
mod lease;
mod migrate;
mod operate;
mod options;
mod rollout;
mod row;
mod schedule;
mod settle;
mod sql;
mod taken;
mod transaction;
mod url;
mod wake;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{
    Author, CheckpointSave, Claim, Claimed, Duty, Enqueued, Heartbeat, NewWorker, Promoted,
    ReadyRoute, Retention, Row, Saved, Settled, Standing, Store, Strand, Sweep, Swept, Wake,
};
use jobs_core::{
    BuildId, Fence, NewJob, ProgressNote, QueueName, Random, Route, Settlement, StoreError,
    StoreErrorKind, StoreId, WorkerId,
};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tokio::task::JoinSet;

pub use self::options::PostgresOptions;

use self::error::{Attempt, Trouble};
use self::lane::Lanes;
use self::options::Path;
use self::sql::{Statement, Statements};
use self::wake::{Bell, Ear, Line};
use super::poison::Poison;

/// A store in a PostgreSQL database. Clones are handles of the same store.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: StoreId,
    options: PostgresOptions,
    /// Where heartbeats and listeners connect.
    address: PgConnectOptions,
    lanes: Arc<Lanes>,
    /// For transactions of the application.
    pool: PgPool,
    statements: Arc<Statements>,
    bell: Bell,
    /// Rows of jobs that the server lets nobody write.
    poison: Poison,
    /// What the ears listen by, while there are any.
    line: Mutex<Weak<Line>>,
    /// Work that no caller's cancellation can drop.
    tasks: Mutex<JoinSet<()>>,
}

impl PostgresStore {
    /// Connects to a database by its URL and brings its schema up to date.
    ///
    /// `postgres://user:password@host:port/database?sslmode=…`; the password may hold any
    /// characters, encoded or not. A Unix socket goes in the parameter `host`. An encrypted way
    /// (`sslmode=require` and above) needs the feature `tls`, or a `tls-*` feature of `sqlx`.
    ///
    /// # Errors
    /// [`StoreErrorKind::Configuration`] names the part of the address that is wrong and never
    /// repeats it; [`StoreErrorKind::Unavailable`]: try again later; [`StoreErrorKind::ReadOnly`]:
    /// a standby, or the role lacks a right, which the error names;
    /// [`StoreErrorKind::Schema`]: deploy a newer build, or migrate.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        options.check()?;
        let address = url::connect_options(url)?;
        let lanes = Lanes::own(&address, &options);
        let pool = PgPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(options.connect_timeout)
            .test_before_acquire(false)
            .connect_lazy_with(address.clone());
        Self::over(lanes, pool, address, options).await
    }

    /// Works over the application's own pool; heartbeats and wake-ups have connections of their
    /// own beside it. Slower than [`open`](Self::open): each statement brings its settings along,
    /// which takes two round trips more.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn from_pool(pool: PgPool, options: PostgresOptions) -> Result<Self, StoreError> {
        options.check()?;
        let address = pool.connect_options().as_ref().clone();
        let lanes = Lanes::borrowed(pool.clone(), &options);
        Self::over(lanes, pool, address, options).await
    }

    /// Where a server is, as `host:port/database`: an address without its user and password.
    #[cfg(feature = "cli")]
    pub(crate) fn place_of(url: &str) -> Result<String, StoreError> {
        let options = url::connect_options(url)?;
        let database = options.get_database().unwrap_or_default();
        Ok(format!("{}:{}/{database}", options.get_host(), options.get_port()))
    }

    /// Where the server is, and in which schema the tables are.
    pub(crate) fn place(&self) -> String {
        self.lanes().place().to_owned()
    }

    /// The version of the schema that this build makes and needs.
    pub const SCHEMA_VERSION: u32 = migrate::SCHEMA_VERSION.unsigned_abs();

    /// The SQL that makes a schema of this name from nothing: what opening runs.
    pub fn migration_sql(schema: &str) -> String {
        migrate::whole_sql(schema)
    }

    /// The pool for transactions of the application.
    pub fn pool(&self) -> &PgPool {
        &self.shared.pool
    }

    /// Every statement by the name of its file, `kept` or `fresh`, with the schema's name in it:
    /// for tests that prepare them and read their plans.
    #[doc(hidden)]
    pub fn statement_texts(&self) -> Vec<(&'static str, &'static str, String)> {
        let texts = self.statements().all();
        texts.into_iter().map(|(name, when, sql)| (name, when, sql.to_owned())).collect()
    }

    /// The channel that wake-ups go out on, for tests that look for who listens.
    #[doc(hidden)]
    pub fn channel(&self) -> &str {
        self.bell().channel()
    }

    async fn over(
        lanes: Lanes,
        pool: PgPool,
        address: PgConnectOptions,
        options: PostgresOptions,
    ) -> Result<Self, StoreError> {
        let lanes = Arc::new(lanes);
        let statements = Arc::new(Statements::new(&options.schema));
        let ready = migrate::ready(&lanes, &statements, &options.schema, options.migration);
        let opening = format!("open the store at {}", url::host(&address));
        let id = ready.await.map_err(|trouble| trouble.during(&opening))?;
        if options.path == Path::Pooler {
            tracing::info!("behind a pooler: no LISTEN, workers start jobs by polling");
        }
        let bell = Bell::new(&options.schema, Arc::clone(&lanes), Arc::clone(&statements));
        let (line, tasks) = (Mutex::default(), Mutex::default());
        let poison = Poison::default();
        let shared =
            Shared { id, options, address, lanes, pool, statements, bell, poison, line, tasks };
        Ok(Self { shared: Arc::new(shared) })
    }

    fn lanes(&self) -> &Lanes {
        &self.shared.lanes
    }

    fn statements(&self) -> &Statements {
        &self.shared.statements
    }

    fn bell(&self) -> &Bell {
        &self.shared.bell
    }

    fn poison(&self) -> &Poison {
        &self.shared.poison
    }

    fn random(&self) -> &dyn Random {
        &*self.shared.options.random
    }

    fn store_id(&self) -> String {
        self.shared.id.0.clone()
    }

    /// A statement for a connection of the application.
    fn prepared(&self, statement: Statement) -> Statement {
        self.lanes().prepared(statement)
    }

    fn ring_if(&self, is_news: bool) {
        if is_news {
            self.bell().ring();
        }
    }

    /// Runs work that ends with the store at the latest.
    fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Runs work to its end even when the caller is dropped; what it made is then dropped there.
    async fn run_to_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Attempt<T> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.in_background(async move { drop(answer.send(work.await)) });
        let stopped = |_| Trouble::new(StoreErrorKind::Unavailable, "the runtime is shutting down");
        answered.await.map_err(stopped)
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn id(&self) -> &StoreId {
        &self.shared.id
    }

    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.enqueue_all(jobs).await.map_err(|trouble| trouble.during("enqueue"))
    }

    async fn register(&self, worker: &NewWorker) -> Result<WorkerId, StoreError> {
        self.register_worker(worker).await.map_err(|trouble| trouble.during("register the worker"))
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        let options = PostgresOptions { connections: 1, ..self.shared.options.clone() };
        let lanes = Lanes::own(&self.shared.address, &options);
        let pulse = lease::Pulse::open(self.clone(), lanes).await;
        let pulse = pulse.map_err(|trouble| trouble.during("open the heartbeat"))?;
        Ok(Box::new(pulse))
    }

    async fn routes(&self, queues: &[QueueName]) -> Result<Vec<ReadyRoute>, StoreError> {
        self.routes_of(queues).await.map_err(|trouble| trouble.during("list the routes"))
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Claimed, StoreError> {
        self.claim_jobs(claim).await.map_err(|trouble| trouble.during("claim jobs"))
    }

    async fn claim_within(&self, claim: Claim<'_>, most: u32) -> Result<Claimed, StoreError> {
        let claimed = self.claim_limited(claim, most).await;
        claimed.map_err(|trouble| trouble.during("claim jobs"))
    }

    async fn settle(
        &self,
        by: &Author,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let settled = self.settle_all(by, settlements).await;
        settled.map_err(|trouble| trouble.during("settle runs"))
    }

    async fn checkpoint(&self, saves: &[CheckpointSave]) -> Result<Vec<Saved>, StoreError> {
        self.checkpoint_all(saves).await.map_err(|trouble| trouble.during("save checkpoints"))
    }

    async fn note_progress(&self, notes: &[ProgressNote]) -> Result<Vec<bool>, StoreError> {
        self.note_all(notes).await.map_err(|trouble| trouble.during("note progress"))
    }

    async fn check(&self, fences: &[Fence]) -> Result<Vec<Standing>, StoreError> {
        let standings = self.standings(fences.iter().copied()).await;
        let standings = standings.map_err(|trouble| trouble.during("check runs"))?;
        Ok(standings.into_iter().map(|standing| standing.unwrap_or(Standing::Lost)).collect())
    }

    async fn reread(&self, fences: &[Fence]) -> Result<Vec<Row>, StoreError> {
        self.reread_all(fences).await.map_err(|trouble| trouble.during("read what became of runs"))
    }

    async fn promote(&self, limit: u32) -> Result<Promoted, StoreError> {
        self.promote_due(limit).await.map_err(|trouble| trouble.during("promote jobs"))
    }

    async fn expire(&self, limit: u32) -> Result<u32, StoreError> {
        self.expire_waiting(limit).await.map_err(|trouble| trouble.during("end expired jobs"))
    }

    async fn refused_routes(&self) -> Result<Vec<Route>, StoreError> {
        let routes = self.routes_refused().await;
        routes.map_err(|trouble| trouble.during("list the refused routes"))
    }

    async fn recall(&self, routes: &[Route], limit: u32) -> Result<u32, StoreError> {
        let recalled = self.recall_refused(routes, limit).await;
        recalled.map_err(|trouble| trouble.during("recall refused jobs"))
    }

    async fn strand(&self, strand: &Strand<'_>) -> Result<u32, StoreError> {
        let ended = self.end_stranded(strand).await;
        ended.map_err(|trouble| trouble.during("end stranded jobs"))
    }

    async fn publish(&self, build: &BuildId, manifest: &str) -> Result<(), StoreError> {
        let published = self.publish_manifest(build, manifest).await;
        published.map_err(|trouble| trouble.during("publish a manifest"))
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept, StoreError> {
        self.sweep_leases(sweep).await.map_err(|trouble| trouble.during("sweep"))
    }

    async fn take_duty(&self, duty: Duty, worker: WorkerId) -> Result<bool, StoreError> {
        let taken = self.take_duty_over(duty, worker).await;
        taken.map_err(|trouble| trouble.during("take a duty"))
    }

    async fn give_back_duty(&self, duty: Duty, worker: WorkerId) -> Result<(), StoreError> {
        let given = self.let_go_of_duty(duty, worker).await;
        given.map_err(|trouble| trouble.during("give a duty back"))
    }

    async fn prune(&self, retention: Retention, limit: u32) -> Result<u32, StoreError> {
        self.prune_finished(retention, limit).await.map_err(|trouble| trouble.during("prune"))
    }

    async fn warnings(&self, lasting: Duration) -> Result<Vec<String>, StoreError> {
        let held = self.held_snapshot(lasting).await;
        let mut warnings = held.map_err(|trouble| trouble.during("look for held snapshots"))?;
        let queued = self.queued_notifications().await;
        warnings.extend(queued.map_err(|trouble| trouble.during("look at the notifications"))?);
        Ok(warnings)
    }

    fn wake(&self) -> Box<dyn Wake> {
        let mut shared = self.shared.line.lock().unwrap_or_else(PoisonError::into_inner);
        let line = shared.upgrade().unwrap_or_else(|| {
            let source = match self.shared.options.path {
                Path::Direct => Some(self.shared.address.clone()),
                Path::Pooler => None,
            };
            let line = Arc::new(Line::new(source, self.bell().channel()));
            *shared = Arc::downgrade(&line);
            line
        });
        Box::new(Ear::new(line))
    }
}
