//! The embedded store: one SQLite file, no server.
//!
//! 1. It keeps the contract of [`jobs_core::store`] on one machine, for any number of processes.
//! 2. An acknowledged write survives the loss of power ([`Synchronous::Full`]).
//! 3. Nobody ever sees `busy` because others write; see `turn`.
//! 4. A worker's death is told without clocks, at once for a process that has ended; see `alive`.
//!    Due times go by the clock of the host, and step with it.
//! 5. Nothing of this store keeps the write-ahead log from being reset; see `wal`.
//!
//! Its tables begin with `jobs_`, so they may live in the file of an application, which may write to
//! both in one transaction. A job can be added by any program with
//! `INSERT INTO jobs_job (kind, version, payload) VALUES (…)`.
//!
//! Deliberately absent: databases in memory, network file systems, and other machines' workers. Use
//! the memory store for tests and PostgreSQL for a fleet.
//!
//! Why one writer thread: SQLite has one write lock a file. Writers that take it in turns inside a
//! process would each wait for their own flush to disk; one that gathers them shares it, and no
//! cancelled future can leave a connection inside a transaction.

mod alive;
mod checkpoint;
mod claim;
mod connect;
mod due;
mod duty;
mod enqueue;
mod error;
mod event;
mod file;
mod finish;
mod halves;
mod heartbeat;
mod holder;
mod inspect;
mod json;
mod lease;
mod line;
mod loan;
mod migrate;
mod note;
mod operate;
mod options;
mod rollout;
mod row;
mod schedule;
mod settle;
mod signs;
mod sql;
mod transaction;
mod turn;
mod unreadable;
mod wake;
mod wal;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{
    Author, CheckpointSave, Claim, Claimed, Duty, Enqueued, Heartbeat, NewWorker, Promoted,
    ReadyRoute, Retention, Row, Saved, Settled, Standing, Store, Strand, Sweep, Swept, Wake,
};
use jobs_core::{
    BuildId, Clock, Fence, JobId, NewJob, Place, ProgressNote, QueueName, Random, Route,
    Settlement, StoreError, StoreId, WorkerId,
};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::Mutex;

use self::alive::LockFiles;
use self::checkpoint::{Reread, Save, standings};
use self::claim::Take;
use self::connect::Connect;
use self::due::{Expire, Next, Promote, Recall, next_due};
use self::duty::ChangeDuty;
use self::enqueue::Enqueue;
use self::error::{During, Result};
use self::file::{Location, OpenFile};
use self::halves::{Known, Many, Upkeep};
use self::heartbeat::Beat;
use self::lease::{Register, TakeBack};
use self::line::Line;
use self::note::Note;
use self::operate::Prune;
pub use self::options::{SqliteOptions, Synchronous};
use self::row::Columns;
use self::settle::Settle;
use self::signs::{Observer, Renewals};
#[doc(hidden)]
pub use self::sql::STATEMENTS;
use self::turn::Turn;
use self::wake::{Bell, Listener};
use self::wal::Wal;
use self::writer::{End, Parts, Writer};

/// A store in a SQLite file. Clones are handles of the same store.
///
/// The workers that it registers count as alive for as long as a handle is, so it should live until
/// the process ends. Dropping the last handle blocks for a moment: the log is folded into the file, which is
/// then whole by itself.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    id: StoreId,
    location: Location,
    file: OpenFile,
    options: SqliteOptions,
    connect: Connect,
    reads: SqlitePool,
    transactions: SqlitePool,
    writer: Writer,
    bell: Arc<Bell>,
    observer: Observer,
    known: Known,
    /// Behind all others: what it waits for begins when they are dropped.
    _end: End,
}

impl SqliteStore {
    /// The version of the schema that this build makes and needs.
    #[expect(clippy::cast_possible_truncation, reason = "a small number")]
    pub const SCHEMA_VERSION: u32 = migrate::SCHEMA_VERSION as u32;

    /// The SQL that makes the schema from nothing: what opening runs.
    pub fn migration_sql() -> String {
        migrate::whole_sql()
    }

    /// Opens a file such as `sqlite://jobs.db` or a path to one, and makes it if it is missing. Its
    /// schema is brought to this build's, in one transaction, by whichever process comes first.
    ///
    /// # Errors
    /// Each says what to do. `Configuration`: the address names no usable file. `ReadOnly`: it takes
    /// no writes. `Schema`: a newer build has changed it in a way that this one can't work with.
    /// `Busy`: another program has kept it locked for 30 s.
    pub async fn open(address: &str, options: SqliteOptions) -> Result<Self> {
        Self::open_with(file::options(address)?, options).await
    }

    /// Opens the file of a pool. The store makes connections of its own with the options of the pool,
    /// such as its key; none of the pool's is used, so a drained pool never keeps a settlement
    /// waiting. Transactions that were begun on the pool can be joined.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn from_pool(pool: &SqlitePool, options: SqliteOptions) -> Result<Self> {
        Self::open_with(pool.connect_options().as_ref().clone(), options).await
    }

    async fn open_with(connect: SqliteConnectOptions, options: SqliteOptions) -> Result<Self> {
        file::check_exists(&connect, options.migration)?;
        let location = file::location(&connect)?;
        let connect = Connect::new(connect.filename(&location.database), options.synchronous);
        let turn =
            || Turn::open(&location.workers, &location.database, Arc::clone(&options.random));
        let opening = turn()?;
        let now = options.clock.now();
        let opened = async {
            let mut first = connect.writing(&opening).await?;
            let SqliteOptions { random, migration, .. } = &options;
            let migrated = migrate::migrate(&mut first, &opening, now, random.as_ref(), *migration);
            let id = migrated.await?;
            Ok((id, first))
        };
        let (id, mut first) = opened.await.inspect_err(|_: &StoreError| location.leave())?;
        let observer = Observer {
            files: Arc::new(LockFiles::new(location.workers.clone())),
            renewals: Arc::new(Renewals::default()),
            clock: Arc::clone(&options.clock),
        };
        lease::tidy(&mut first, &observer.files).await?;
        let bell = Arc::new(Bell::new());
        let (file, connect) = (OpenFile::at(&location.database), connect.existing());
        let parts = Parts {
            file: file.clone(),
            connect: connect.clone(),
            turn: turn()?,
            clock: Arc::clone(&options.clock),
            bell: Arc::clone(&bell),
            wal: Mutex::new(Wal::new(&location.database, options.wal_warning_bytes)),
            loan: Arc::default(),
        };
        let (writer, end) = Writer::start(parts, Line::open(&location.workers)?)?;
        let (reads, transactions) = (connect.reads(), connect.transactions());
        let known = Known { poison: Arc::default(), clock: Arc::clone(&options.clock) };
        let inner = Inner {
            id,
            location,
            file,
            options,
            connect,
            reads,
            transactions,
            writer,
            bell,
            observer,
            known,
            _end: end,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where the file is.
    pub(crate) fn place(&self) -> String {
        self.database().display().to_string()
    }

    /// Makes the file whole by itself, without its log, where nobody else uses it just now.
    pub(crate) async fn rest(&self) {
        drop(self.writer().write(wal::Fold).await);
    }

    fn reads(&self) -> &SqlitePool {
        &self.inner.reads
    }

    fn transactions(&self) -> &SqlitePool {
        &self.inner.transactions
    }

    fn writer(&self) -> &Writer {
        &self.inner.writer
    }

    fn clock(&self) -> &dyn Clock {
        self.inner.options.clock.as_ref()
    }

    fn random(&self) -> &Arc<dyn Random> {
        &self.inner.options.random
    }

    fn store_id(&self) -> &StoreId {
        &self.inner.id
    }

    fn database(&self) -> &Path {
        &self.inner.location.database
    }

    fn observer(&self) -> Observer {
        self.inner.observer.clone()
    }

    /// Makes a write of many rows.
    async fn upkeep<W>(&self, together: W, many: Many, limit: u32) -> Result<u32>
    where
        W: writer::Write<Answer = u32>,
    {
        let upkeep = Upkeep::new(together, many, limit, self.inner.known.clone());
        self.writer().write(upkeep).await?.rows()
    }

    fn turn(&self) -> Result<Turn> {
        let Location { workers, database, .. } = &self.inner.location;
        Turn::open(workers, database, Arc::clone(self.random()))
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("database", &self.inner.location.database)
            .field("id", &self.inner.id)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn id(&self) -> &StoreId {
        self.store_id()
    }

    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        self.writer().write(Enqueue::new(jobs)?).await
    }

    async fn register(&self, worker: &NewWorker) -> Result<WorkerId> {
        let observer = self.observer();
        let file = observer.files.make(self.random().as_ref())?;
        self.writer().write(Register::new(worker, file, observer)).await
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>> {
        let beat = Beat::open(self, self.inner.connect.clone(), self.turn()?);
        Ok(Box::new(beat.await?))
    }

    async fn routes(&self, queues: &[QueueName]) -> Result<Vec<ReadyRoute>> {
        const DOING: &str = "listing routes";
        let names: Vec<_> = queues.iter().map(QueueName::as_str).collect();
        let rows = sqlx::query(sql::ROUTES).bind(json::rows(&names)).fetch_all(self.reads()).await;
        let mut routes = Vec::new();
        for row in rows.during(DOING)? {
            let mut columns = Columns::new(&row);
            let (queue, route) = (columns.text().during(DOING)?, columns.bytes().during(DOING)?);
            let at_us = columns.number().during(DOING)?;
            let first = Place { at_us, job: JobId(columns.number().during(DOING)?) };
            // What is no text can't be asked for again; a sweep ends its jobs.
            let Ok(route) = std::str::from_utf8(route) else { continue };
            if let Some(queue) = queues.iter().find(|name| name.as_str() == queue) {
                let (queue, route) = (queue.clone(), Route::from_store(route));
                routes.push(ReadyRoute { queue, route, first });
            }
        }
        Ok(routes)
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Claimed> {
        self.writer().write(Take::new(claim)).await?.claimed(claim.heads)
    }

    async fn claim_idle(&self, claim: Claim<'_>) -> Result<Claimed> {
        self.writer().write(Take::new(claim).alone()).await?.claimed(claim.heads)
    }

    async fn claim_within(&self, claim: Claim<'_>, most: u32) -> Result<Claimed> {
        self.writer().write(Take::new(claim).within(most)).await?.claimed(claim.heads)
    }

    async fn settle(&self, by: &Author, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        self.writer().write(Settle::new(by, settlements)).await
    }

    async fn checkpoint(&self, saves: &[CheckpointSave]) -> Result<Vec<Saved>> {
        let standings = self.writer().write(Save::new(saves)).await?;
        Ok(standings.into_iter().map(Saved::Answered).collect())
    }

    async fn note_progress(&self, notes: &[ProgressNote]) -> Result<Vec<bool>> {
        self.writer().write(Note::new(notes)).await
    }

    async fn check(&self, fences: &[Fence]) -> Result<Vec<Standing>> {
        standings(self.reads(), fences).await
    }

    async fn reread(&self, fences: &[Fence]) -> Result<Vec<Row>> {
        self.writer().write(Reread::new(fences)).await
    }

    async fn promote(&self, limit: u32) -> Result<Promoted> {
        // Most of the time nothing is due, and then no write lock is taken.
        let now = self.clock().now();
        let known = &self.inner.known;
        match next_due(self.reads(), now, known).await? {
            Next::Due => {
                let count = self.upkeep(Promote { limit }, Many::Promote, limit).await?;
                let next = next_due(self.reads(), self.clock().now(), known).await?;
                Ok(Promoted { count, next_in: next.due_in() })
            }
            next @ (Next::Nothing | Next::In(_)) => {
                Ok(Promoted { count: 0, next_in: next.due_in() })
            }
        }
    }

    async fn expire(&self, limit: u32) -> Result<u32> {
        self.upkeep(Expire { limit }, Many::Expire, limit).await
    }

    async fn refused_routes(&self) -> Result<Vec<Route>> {
        const DOING: &str = "listing refused routes";
        let rows = sqlx::query(sql::REFUSED_ROUTES).fetch_all(self.reads()).await.during(DOING)?;
        let route = |row| Columns::new(row).text().map(Route::from_store);
        let mut routes = rows.iter().map(route).collect::<Result<Vec<_>, _>>().during(DOING)?;
        routes.sort_unstable();
        Ok(routes)
    }

    async fn recall(&self, routes: &[Route], limit: u32) -> Result<u32> {
        self.upkeep(Recall::new(routes, limit), Many::recall(routes), limit).await
    }

    async fn strand(&self, strand: &Strand<'_>) -> Result<u32> {
        let end = rollout::End::of(strand);
        // Looked for beside the writer: a look that finds nothing holds nobody up.
        if !end.finds_any(self.reads(), self.clock().now()).await? {
            return Ok(0);
        }
        self.writer().write(end).await
    }

    async fn publish(&self, build: &BuildId, manifest: &str) -> Result<()> {
        let (build, manifest) = (build.clone(), manifest.to_owned());
        self.writer().write(rollout::Publish { build, manifest }).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        let take_back = TakeBack::new(sweep, self.observer(), self.inner.known.clone());
        self.writer().write(take_back).await?.answer()
    }

    async fn take_duty(&self, duty: Duty, worker: WorkerId) -> Result<bool> {
        self.writer().write(ChangeDuty::take(duty, worker)).await
    }

    async fn give_back_duty(&self, duty: Duty, worker: WorkerId) -> Result<()> {
        self.writer().write(ChangeDuty::give_back(duty, worker)).await.map(drop)
    }

    async fn prune(&self, retention: Retention, limit: u32) -> Result<u32> {
        self.upkeep(Prune { retention, limit }, Many::Prune(retention), limit).await
    }

    /// By its size alone, which tells that a reader has stayed for long.
    async fn warnings(&self, _: Duration) -> Result<Vec<String>> {
        let most = self.inner.options.wal_warning_bytes;
        Ok(wal::warning(self.database(), most).into_iter().collect())
    }

    fn wake(&self) -> Box<dyn Wake> {
        Box::new(Listener::new(Arc::clone(&self.inner.bell)))
    }
}
