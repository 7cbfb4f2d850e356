//! A server to test on, and a schema for each test.
//!
//! `scripts/postgres run -- cargo nextest run` provides the server.

#![allow(dead_code, reason = "each test crate uses its part")]

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use jobs_core::store::conformance::{RawRow, Subject, Tampering};
use jobs_core::store::{
    Author, CheckpointSave, Claim, Claimed, Head, Inspect, NewWorker, Operate, Settled, Store,
    Transactions,
};
use jobs_core::{
    Budget, BuildId, ClaimedJob, Due, Ending, Fence, JobId, Kind, Ladder, Lease, MinReader, NewJob,
    OnConflict, Priority, QueueName, Run, State, UniqueWhile, Version, WorkerName, transition,
};
use jobs_runtime::store::postgres::{PostgresOptions, PostgresStore};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row as _};

/// The URL of the server that the tests may use.
pub(crate) fn server_url() -> String {
    std::env::var("JOBS_TEST_POSTGRES_URL").unwrap_or_else(|_| {
        panic!(
            "these tests need a PostgreSQL server: run them with `scripts/postgres run -- cargo \
             nextest run`, or set JOBS_TEST_POSTGRES_URL to a server that they may use"
        )
    })
}

/// Where that server is, taken apart.
pub(crate) fn server() -> PgConnectOptions {
    server_url().parse().expect("JOBS_TEST_POSTGRES_URL is the address of a server")
}

/// The server's address with a part changed, whatever form the rest has.
pub(crate) fn server_url_with(change: impl FnOnce(PgConnectOptions) -> PgConnectOptions) -> String {
    change(server()).to_url_lossy().to_string()
}

/// Runs a test to its end.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(test)
}

/// A name that no other test uses on this server.
pub(crate) fn fresh_name(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nth = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{what} \"{}\" {nth}", std::process::id())
}

/// A name as an identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Runs a test on a schema of its own, and drops that whatever happens.
pub(crate) fn with_schema<F: Future<Output = ()>>(test: impl FnOnce(String) -> F) {
    block_on(async {
        let schema = fresh_name("jobs test");
        let ended = AssertUnwindSafe(test(schema.clone())).catch_unwind().await;
        let mut connection = connect().await;
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(&schema));
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut connection).await.unwrap();
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
    });
}

/// Runs a test on a store of its own.
pub(crate) fn with_store<F: Future<Output = ()>>(test: impl FnOnce(TestStore) -> F) {
    with_schema(async |schema| test(TestStore::open(&schema).await).await);
}

/// A connection that knows nothing of any store.
pub(crate) async fn connect() -> PgConnection {
    PgConnection::connect(&server_url()).await.expect("the test server takes connections")
}

/// A store with a way around it.
pub(crate) struct TestStore {
    pub(crate) store: PostgresStore,
    pub(crate) schema: String,
    pub(crate) outside: PgPool,
}

impl TestStore {
    pub(crate) async fn open(schema: &str) -> Self {
        Self::open_with(PostgresOptions::default().schema(schema), schema).await
    }

    pub(crate) async fn open_with(options: PostgresOptions, schema: &str) -> Self {
        let store = PostgresStore::open(&server_url(), options).await.expect("the store opens");
        Self::around(store, schema)
    }

    pub(crate) fn around(store: PostgresStore, schema: &str) -> Self {
        let outside = PgPoolOptions::new()
            .max_connections(2)
            .connect_lazy(&server_url())
            .expect("the server's URL is well formed");
        Self { store, schema: schema.to_owned(), outside }
    }

    /// Runs SQL of a test; `{schema}` stands for the schema.
    pub(crate) async fn sql(&self, sql: &str) -> Vec<PgRow> {
        let sql = sql.replace("{schema}", &quoted(&self.schema));
        sqlx::query(AssertSqlSafe(sql)).fetch_all(&self.outside).await.expect("the test's SQL runs")
    }

    /// One number.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.sql(sql).await[0].get(0)
    }
}

#[async_trait]
impl Subject for TestStore {
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
        let us = i64::try_from(span.as_micros()).unwrap();
        let moved = |table: &str, columns: &[&str]| {
            let earlier = |column: &&str| {
                format!(
                    "{column} = CASE WHEN {column} < -9223372036854775807 + {us} \
                     THEN -9223372036854775807 ELSE {column} - {us} END"
                )
            };
            let columns: Vec<String> = columns.iter().map(earlier).collect();
            format!("UPDATE {{schema}}.{table} SET {}", columns.join(", "))
        };
        let job =
            ["due_at_us", "enqueued_at_us", "claimed_at_us", "finished_at_us", "expires_at_us"];
        let worker = ["started_at_us", "expires_at_us", "ended_at_us"];
        self.sql(&moved("job", &job)).await;
        self.sql(&moved("worker", &worker)).await;
        self.sql(&moved("event", &["at_us"])).await;
        self.sql(&moved("pause", &["paused_at_us"])).await;
        self.sql(&moved("schedule", &["next_at_us", "last_at_us"])).await;
        self.sql(&moved("schedule_declaration", &["since_us"])).await;
        self.sql(&moved("schedule_tick", &["at_us"])).await;
        self.sql(&moved("build", &["seen_at_us"])).await;
    }

    async fn plant(&self, row: &RawRow) -> JobId {
        let sql = format!(
            "INSERT INTO {}.job (queue, kind, version, min_reader, payload) \
             VALUES ($1, $2, $3, $4, $5::json) RETURNING id",
            quoted(&self.schema)
        );
        let planted = sqlx::query(AssertSqlSafe(sql))
            .bind(&row.queue)
            .bind(&row.kind)
            .bind(&row.version)
            .bind(&row.min_reader)
            .bind(&row.payload)
            .fetch_one(&self.outside)
            .await;
        JobId(planted.expect("the schema takes the row").get(0))
    }

    async fn outgrow(&self) {
        self.sql("UPDATE {schema}.meta SET schema_version = 99, min_reader = 99").await;
    }

    async fn tamper(&self, job: JobId, tampering: &Tampering) {
        let statements: &[&str] = match tampering {
            Tampering::FillCounters => &[
                "UPDATE {schema}.job SET claim_number = 9223372036854775807, \
                 failures = 2147483647, interruptions = 2147483647, crashes = 2147483647, \
                 refusals = 2147483647, snoozes = 2147483647, events = 9223372036854775807, \
                 checkpoints = 9223372036854775807 WHERE id = {job}",
                "UPDATE {schema}.checkpoint SET number = 9223372036854775807 WHERE job_id = {job}",
                "INSERT INTO {schema}.event \
                 (job_id, slot, number, at_us, claim_number, kind, class, text) VALUES ({job}, 7, \
                 9223372036854775807, 0, 9223372036854775807, 'failed', 'full', '')",
            ],
            Tampering::UnknownNames => &[
                "UPDATE {schema}.event SET kind = 'foretold' WHERE job_id = {job}",
                "UPDATE {schema}.worker SET phase = 'dreaming'",
            ],
            Tampering::RunUnheld => {
                &["UPDATE {schema}.job SET state = 'running', worker_id = NULL WHERE id = {job}"]
            }
        };
        for statement in statements {
            self.sql(&statement.replace("{job}", &job.0.to_string())).await;
        }
    }
}

pub(crate) fn job() -> NewJob {
    NewJob {
        queue: QueueName::default(),
        kind: Kind::new("a").unwrap(),
        version: Version::new(1, 0, 0),
        min_reader: MinReader { major: 1, minor: 0 },
        payload: "{}".to_owned(),
        headers: None,
        priority: Priority::default(),
        due: Due::In(Duration::ZERO),
        unique_key: None,
        unique_while: UniqueWhile::default(),
        on_conflict: OnConflict::default(),
        expires_in: None,
        budget: Budget::default(),
        build: None,
    }
}

pub(crate) fn worker() -> NewWorker {
    NewWorker {
        name: WorkerName::new("w").unwrap(),
        build: BuildId::new("b").unwrap(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    }
}

/// What a new worker claims of the default queue.
pub(crate) async fn claimed(store: &PostgresStore, limit: u32) -> Vec<ClaimedJob> {
    let worker = store.register(&worker()).await.unwrap();
    let routes = store.routes(&[QueueName::default()]).await.unwrap();
    let heads: Vec<Head> = routes.into_iter().map(|listed| listed.head(limit)).collect();
    match store.claim(Claim { worker, heads: &heads, limit }).await.unwrap() {
        Claimed::Jobs(jobs) => jobs,
        Claimed::WorkerEnded => panic!("the worker is open"),
    }
}

pub(crate) fn save(fence: Fence, text: &str) -> CheckpointSave {
    let (version, min_reader) = (Version::new(1, 0, 0), MinReader { major: 1, minor: 0 });
    CheckpointSave { fence, version, min_reader, text: text.to_owned(), keeps_failures: false }
}

/// Claims and finishes until nothing is ready; answers how many.
pub(crate) async fn drain(store: &PostgresStore) -> usize {
    let worker = store.register(&worker()).await.unwrap();
    let by = Author { worker: Some(worker), build: BuildId::new("b").unwrap() };
    let mut done = 0;
    loop {
        let routes = store.routes(&[QueueName::default()]).await.unwrap();
        let heads: Vec<Head> = routes.into_iter().map(|listed| listed.head(50)).collect();
        let claim = Claim { worker, heads: &heads, limit: 50 };
        let Claimed::Jobs(jobs) = store.claim(claim).await.unwrap() else {
            panic!("the worker is open")
        };
        if heads.is_empty() {
            return done;
        }
        let settle = |job| transition(&Run::from(job), &Ending::Done, &Ladder::default(), 0);
        let settlements: Vec<_> = jobs.iter().map(settle).collect();
        let settled = store.settle(&by, &settlements).await.unwrap();
        assert!(settled.iter().all(|it| *it == Settled::Applied(State::Succeeded)), "{settled:?}");
        done += jobs.len();
    }
}
