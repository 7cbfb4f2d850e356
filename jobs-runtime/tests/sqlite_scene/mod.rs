//! A store in a file of its own, for the tests of the SQLite store.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::conformance::{RawRow, Subject, Tampering};
use jobs_core::store::{
    Author, Claim, Claimed, Inspect, NewWorker, Operate, Settled, Store, Sweep, Transactions,
};
use jobs_core::{
    Budget, BuildId, ClaimedJob, Due, Ending, JobId, Kind, Ladder, Lease, ManualClock, MinReader,
    NewJob, OnConflict, Priority, QueueName, Run, SeededRandom, Timestamp, UniqueWhile, Version,
    WorkerId, WorkerName, transition,
};
use jobs_runtime::store::sqlite::{SqliteOptions, SqliteStore, Synchronous};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tempfile::TempDir;

/// The instant at which every manual clock starts.
pub(crate) const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// A fresh store on a clock that stands still until it is advanced.
pub(crate) struct Scene {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: SqliteStore,
    pub(crate) folder: TempDir,
}

impl Scene {
    pub(crate) async fn fresh() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(ManualClock::new(START));
        let store = SqliteStore::open(&path(&folder), options(&clock, 1)).await;
        Self { clock, store: store.expect("a fresh store"), folder }
    }

    /// Another handle's worth of the same file: what another process would have.
    pub(crate) async fn neighbour(&self, seed: u64) -> SqliteStore {
        let store = SqliteStore::open(&path(&self.folder), options(&self.clock, seed)).await;
        store.expect("the same file")
    }

    pub(crate) fn database(&self) -> PathBuf {
        path(&self.folder).into()
    }

    /// A connection such as a person with a shell has.
    pub(crate) async fn shell(&self) -> SqliteConnection {
        shell(&self.database()).await
    }
}

pub(crate) fn path(folder: &TempDir) -> String {
    folder.path().join("jobs.db").to_string_lossy().into_owned()
}

/// Flushes are left out: these tests lose no power.
pub(crate) fn options(clock: &Arc<ManualClock>, seed: u64) -> SqliteOptions {
    SqliteOptions::new(clock.clone(), Arc::new(SeededRandom::new(seed)))
        .synchronous(Synchronous::Normal)
}

pub(crate) async fn shell(database: &std::path::Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(database).disable_statement_logging();
    let options = options.busy_timeout(Duration::from_secs(30));
    SqliteConnection::connect_with(&options).await.expect("a shell")
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A job that is due.
pub(crate) fn job(payload: &str) -> NewJob {
    NewJob {
        queue: QueueName::default(),
        kind: Kind::new("mail.send").expect("a kind"),
        version: Version::new(1, 0, 0),
        min_reader: MinReader { major: 1, minor: 0 },
        payload: payload.to_owned(),
        headers: None,
        priority: Priority::default(),
        due: Due::Unchanged,
        unique_key: None,
        unique_while: UniqueWhile::default(),
        on_conflict: OnConflict::default(),
        expires_in: None,
        budget: Budget::default(),
        build: None,
    }
}

/// A worker of the same name for all.
pub(crate) async fn register(store: &SqliteStore) -> WorkerId {
    let worker = NewWorker {
        name: WorkerName::new("w").expect("a name"),
        build: BuildId::new("shop 1").expect("a build"),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    store.register(&worker).await.expect("a lease")
}

/// Takes all that is ready in the usual queue.
pub(crate) async fn claim(store: &SqliteStore, worker: WorkerId) -> Vec<ClaimedJob> {
    let routes = store.routes(&[QueueName::default()]).await.expect("routes");
    let heads: Vec<_> = routes.into_iter().map(|listed| listed.head(1000)).collect();
    match store.claim(Claim { worker, heads: &heads, limit: 1000 }).await.expect("a claim") {
        Claimed::Jobs(jobs) => jobs,
        Claimed::WorkerEnded => panic!("the worker lives"),
    }
}

/// Ends runs well.
pub(crate) async fn finish(
    store: &SqliteStore,
    worker: WorkerId,
    jobs: &[ClaimedJob],
) -> Vec<Settled> {
    let done = |job| transition(&Run::from(job), &Ending::Done, &Ladder::default(), 0);
    let settlements: Vec<_> = jobs.iter().map(done).collect();
    store.settle(&author(worker), &settlements).await.expect("an answer")
}

/// Who writes for a worker.
pub(crate) fn author(worker: WorkerId) -> Author {
    Author { worker: Some(worker), build: BuildId::new("shop 1").expect("a build") }
}

/// A sweep by a worker that takes every lease that has ended.
pub(crate) fn sweep(by: WorkerId) -> Sweep {
    Sweep { by: author(by), grace: Duration::ZERO, limit: 1000, draw: 1 }
}

#[async_trait]
impl Subject for Scene {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn inspect(&self) -> &dyn Inspect {
        &self.store
    }

    fn operate(&self) -> &dyn Operate {
        &self.store
    }

    fn transactions(&self) -> &dyn Transactions {
        &self.store
    }

    async fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    async fn plant(&self, row: &RawRow) -> JobId {
        use jobs_core::Clock;
        let planted = sqlx::query(
            "INSERT INTO jobs_job (queue, kind, version, min_reader, payload, due_at_us)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .bind(row.queue.as_str())
        .bind(row.kind.as_str())
        .bind(row.version.as_str())
        .bind(row.min_reader.as_deref())
        .bind(row.payload.as_str())
        .bind(self.clock.now().as_micros())
        .execute(&mut self.shell().await)
        .await;
        JobId(planted.expect("a plain insert").last_insert_rowid())
    }

    async fn outgrow(&self) {
        let outgrow = sqlx::query("UPDATE jobs_meta SET schema_version = 99, min_reader = 99");
        outgrow.execute(&mut self.shell().await).await.expect("a newer build may do that");
    }

    async fn tamper(&self, job: JobId, tampering: &Tampering) {
        let statements: &[&'static str] = match tampering {
            Tampering::FillCounters => &[
                "UPDATE jobs_job SET failures = 9223372036854775807,
                 interruptions = 9223372036854775807, crashes = 9223372036854775807,
                 refusals = 9223372036854775807, snoozes = 9223372036854775807,
                 claim_number = 9223372036854775807, events = 9223372036854775807,
                 checkpoints = 9223372036854775807 WHERE id = ?1",
                "UPDATE jobs_checkpoint SET number = 9223372036854775807 WHERE job_id = ?1",
                "INSERT INTO jobs_event
                 (job_id, slot, number, at_us, claim_number, kind, class, text) VALUES (?1, 7,
                 9223372036854775807, 0, 9223372036854775807, 'failed', 'full', '')",
            ],
            Tampering::UnknownNames => {
                &["UPDATE jobs_event SET kind = 'foretold' WHERE job_id = ?1"]
            }
            Tampering::RunUnheld => {
                &["UPDATE jobs_job SET state = 'running', worker_id = NULL WHERE id = ?1"]
            }
        };
        if matches!(tampering, Tampering::UnknownNames) {
            let all = sqlx::query("UPDATE jobs_worker SET phase = 'dreaming'");
            all.execute(&mut self.shell().await).await.expect("a person may do that");
        }
        let mut shell = self.shell().await;
        for statement in statements {
            let tampered = sqlx::query(*statement).bind(job.0).execute(&mut shell).await;
            tampered.expect("a person may do that");
        }
    }
}
