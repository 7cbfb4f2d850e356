//! Jobs and helpers that the tests share.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Author, Leaving};
use jobs_runtime::{
    BuildId, DrainReport, Handlers, JobId, JobRecord, JobsBuilder, State, WorkerId,
};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::oneshot;

/// What the test handlers share.
#[derive(Debug, Clone, Default)]
pub(crate) struct App {
    pub(crate) runs: Arc<AtomicUsize>,
}

impl App {
    pub(crate) fn count(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) fn ran(&self) {
        self.runs.fetch_add(1, Ordering::SeqCst);
    }
}

/// A job that does what its text says.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.act", version = "1.0.0", max_failures = 1)]
pub(crate) struct Act {
    pub(crate) how: String,
}

pub(crate) fn act(how: &str) -> Act {
    Act { how: how.to_owned() }
}

/// A client on a fresh store, whose files or schema go when it is dropped.
pub(crate) struct Fresh {
    jobs: Jobs,
    folder: tempfile::TempDir,
    #[cfg(feature = "postgres")]
    schema: Option<Schema>,
}

impl Fresh {
    /// Another client of the same SQLite file: what another process would have.
    pub(crate) async fn neighbour(&self) -> Jobs {
        Jobs::open(&format!("sqlite://{}", self.database().display())).await.expect("it opens")
    }

    /// A connection such as a person with a shell has.
    pub(crate) async fn shell(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.database());
        let options = options.busy_timeout(Duration::from_secs(30)).disable_statement_logging();
        SqliteConnection::connect_with(&options).await.expect("the file opens")
    }

    /// Drops all tables of jobs behind the back of whoever uses them.
    pub(crate) async fn drop_tables(&self) {
        #[cfg(feature = "postgres")]
        if let Some(schema) = &self.schema {
            let drop = format!("DROP SCHEMA {} CASCADE", schema.name);
            let mut shell =
                sqlx::PgConnection::connect(&schema.server).await.expect("a connection");
            let dropped = sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&mut shell).await;
            dropped.expect("the schema is dropped");
            return;
        }
        let mut shell = self.shell().await;
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'jobs_*'";
        let tables: Vec<String> =
            sqlx::query_scalar(tables).fetch_all(&mut shell).await.expect("they are there");
        let drops = tables.iter().map(|table| format!("DROP TABLE {table};"));
        let drops = format!("PRAGMA foreign_keys = OFF; {}", drops.collect::<String>());
        let dropped = sqlx::raw_sql(sqlx::AssertSqlSafe(drops)).execute(&mut shell).await;
        dropped.expect("the tables are dropped");
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }
}

impl std::ops::Deref for Fresh {
    type Target = Jobs;

    fn deref(&self) -> &Jobs {
        &self.jobs
    }
}

/// The stores that are compiled in, by the beginnings of their addresses.
#[cfg(feature = "postgres")]
pub(crate) const SCHEMES: [&str; 3] = ["memory:", "sqlite://", "postgres://"];
#[cfg(not(feature = "postgres"))]
pub(crate) const SCHEMES: [&str; 2] = ["memory:", "sqlite://"];

/// One fresh client per store.
pub(crate) async fn open() -> Vec<Fresh> {
    let mut all = Vec::new();
    for scheme in SCHEMES {
        all.push(fresh(scheme, Jobs::builder()).await);
    }
    all
}

/// A client on a fresh SQLite file.
pub(crate) async fn open_sqlite() -> Fresh {
    fresh("sqlite://", Jobs::builder()).await
}

/// A client with settings of its own on a fresh store of this scheme.
pub(crate) async fn fresh(scheme: &str, builder: JobsBuilder) -> Fresh {
    let folder = tempfile::tempdir().expect("a folder");
    #[cfg(feature = "postgres")]
    if scheme.starts_with("postgres") {
        let schema = Schema::fresh();
        let name = schema.name.clone();
        let builder = builder.postgres(move |options| options.schema(name.clone()));
        let jobs = builder.open(&schema.server).await.expect("the store opens");
        return Fresh { jobs, folder, schema: Some(schema) };
    }
    let url = format!("{scheme}{}", folder.path().join("jobs.db").display());
    let jobs = builder.open(&url).await.expect("the store opens");
    Fresh {
        jobs,
        folder,
        #[cfg(feature = "postgres")]
        schema: None,
    }
}

/// A schema that no other test uses; it goes when this is dropped.
#[cfg(feature = "postgres")]
struct Schema {
    server: String,
    name: String,
}

#[cfg(feature = "postgres")]
impl Schema {
    fn fresh() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let server = std::env::var("JOBS_TEST_POSTGRES_URL").unwrap_or_else(|_| {
            panic!(
                "these tests need a PostgreSQL server: run them with `scripts/test`, or set \
                 JOBS_TEST_POSTGRES_URL to a server that they may use"
            )
        });
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { server, name: format!("jobs_worker_test_{}_{nth}", std::process::id()) }
    }
}

#[cfg(feature = "postgres")]
impl Drop for Schema {
    fn drop(&mut self) {
        let sql = format!(
            "SET lock_timeout = '10s'; SET client_min_messages = 'warning'; \
             DROP SCHEMA IF EXISTS {} CASCADE",
            self.name
        );
        let server = self.server.clone();
        let dropping = async move {
            let mut connection = sqlx::PgConnection::connect(&server).await?;
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await
        };
        // On a thread of its own: the test's runtime may be the one that runs this drop.
        let thread = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(dropping)
        });
        let dropped = thread.join().expect("the schema's end does not panic");
        // A second panic would hide the first one.
        assert!(dropped.is_ok() || std::thread::panicking(), "{dropped:?}");
    }
}

/// The size of a long test: small unless `JOBS_TEST_SIZE=full`.
pub(crate) fn sized<T>(small: T, full: T) -> T {
    match std::env::var("JOBS_TEST_SIZE").as_deref() {
        Ok("full") => full,
        Ok(other) => panic!("JOBS_TEST_SIZE is {other:?}; write `full`, or leave it unset"),
        Err(_) => small,
    }
}

/// A worker that runs in the background until it is told to stop.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    worker: tokio::task::JoinHandle<Result<DrainReport, jobs_runtime::Error>>,
}

impl Running {
    #[expect(clippy::disallowed_methods, reason = "the task is joined by `stop`")]
    pub(crate) fn start<S: Clone + Send + Sync + 'static>(worker: Worker<S>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let worker = tokio::spawn(worker.run_until(async {
            drop(stopped.await);
        }));
        Self { stop, worker }
    }

    pub(crate) async fn stop(self) -> DrainReport {
        self.stop.send(()).expect("the worker still waits");
        Self { stop: oneshot::channel().0, ..self }.left().await
    }

    /// Waits until it leaves by itself.
    pub(crate) async fn left(self) -> DrainReport {
        self.worker.await.expect("the worker does not panic").expect("the worker runs")
    }
}

/// A worker with fast timers.
pub(crate) fn worker<S: Clone + Send + Sync + 'static>(
    jobs: &Jobs,
    handlers: Handlers<S>,
    state: S,
) -> Worker<S> {
    Worker::new(jobs, handlers, state)
        .poll_interval(Duration::from_millis(50))
        .lease(Duration::from_secs(3))
        .grace_period(Duration::from_secs(5))
}

/// Ends a worker's lease behind its back, as another process could.
pub(crate) async fn close_behind(jobs: &Jobs, worker: WorkerId) {
    let by = Author { worker: None, build: BuildId::default() };
    let mut heartbeat = jobs.store().heartbeat().await.expect("the store answers");
    heartbeat.close(worker, &by, &Leaving::default()).await.expect("the store answers");
}

/// Waits for a job's end, but not for ever.
pub(crate) async fn ended(jobs: &Jobs, id: JobId) -> JobRecord {
    tokio::time::timeout(Duration::from_secs(20), jobs.wait(id))
        .await
        .expect("the job ends in time")
        .expect("the job can be read")
}

/// Waits until a job's record is as wanted, but not for ever.
pub(crate) async fn until(
    jobs: &Jobs,
    id: JobId,
    is_wanted: impl Fn(&JobRecord) -> bool,
) -> JobRecord {
    let look = async || {
        let record = jobs.job(id).await.expect("the store answers").expect("the job exists");
        is_wanted(&record).then_some(record)
    };
    seen(look).await
}

/// Looks every millisecond until there is an answer, but not for ever.
pub(crate) async fn seen<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let looks = async {
        loop {
            if let Some(answer) = look().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looks).await.expect("it comes to be seen")
}

pub(crate) fn is_running(record: &JobRecord) -> bool {
    record.state == State::Running
}
