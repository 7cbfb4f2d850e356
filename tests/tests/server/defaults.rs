//! Databases, roles and ways to them that are set up otherwise than by default.

use std::collections::BTreeSet;

use jobs_runtime::prelude::*;
use jobs_runtime::store::postgres::PostgresOptions;
use jobs_runtime::{ErrorKind, StoreErrorKind, chain};
use sqlx::{AssertSqlSafe, PgConnection};
use tests::cluster::Cluster;
use tests::{Work, sized, until};

use crate::crew::*;

async fn run(shell: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(shell).await.expect(sql);
}

/// Four workers, plain jobs and unique ones that meet each other.
async fn run_a_mixed_load(open: impl AsyncFn() -> Jobs) {
    let told = Told::default();
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(open().await);
    }
    let crew = Crew::start(clients.iter().map(|jobs| worker(jobs, &told)));
    let mut acknowledged = BTreeSet::new();
    for round in 0..sized(30, 500) {
        let jobs = &clients[round % 4];
        let many = jobs.enqueue_all((0..20).map(|_| Work { millis: 0 })).await.unwrap();
        acknowledged.extend(many.iter().map(|added| added.id()));
        for twin in 0..2 {
            let twin = clients[(round + twin) % 4].enqueue(Work { millis: 1 });
            acknowledged.insert(twin.unique_key((round % 3).to_string()).await.unwrap().id());
        }
    }
    until_idle(&clients[0]).await;
    assert_each_succeeded_once(&clients[0], &acknowledged, &told).await;
    for record in all(&clients[0]).await {
        assert_eq!(record.counters, jobs_runtime::Counters::default(), "job {}", record.id);
    }
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_default_isolation_of_the_database_disturbs_a_run() {
    let cluster = Cluster::start(&[]).await;
    for isolation in ["repeatable read", "serializable"] {
        let mut shell = shell(&cluster.url()).await;
        let sql = format!(
            "DROP SCHEMA IF EXISTS jobs CASCADE; \
             ALTER DATABASE postgres SET default_transaction_isolation TO '{isolation}'"
        );
        run(&mut shell, &sql).await;
        let url = cluster.url();
        run_a_mixed_load(async || Jobs::open(&url).await.unwrap()).await;
        // The application's own pool brings no settings of ours along.
        let pool = sqlx::PgPool::connect(&url).await.unwrap();
        run(&mut shell, "DROP SCHEMA jobs CASCADE").await;
        run_a_mixed_load(async || Jobs::builder().from_postgres(&pool).await.unwrap()).await;
        pool.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_workers_poll_and_nothing_depends_on_a_session() {
    let cluster = Cluster::start(&["log_statement = 'all'"]).await;
    let open = async || {
        let builder = Jobs::builder().postgres(PostgresOptions::behind_pooler);
        builder.open(&cluster.url()).await.unwrap()
    };
    run_a_mixed_load(open).await;
    let log = cluster.read_log();
    assert!(log.contains("execute <unnamed>"), "statements are logged");
    // What a session would have to keep: listening, prepared statements, settings.
    let keeps = |line: &&str| {
        let sets = line.contains("statement: SET ") && !line.contains("statement: SET LOCAL ");
        sets || line.contains("LISTEN") || line.contains("execute sqlx")
    };
    assert_eq!(log.lines().find(keeps), None);
}

#[tokio::test]
async fn a_role_without_rights_is_told_which_grant_it_needs() {
    let cluster = Cluster::start(&[]).await;
    let mut shell = shell(&cluster.url()).await;
    run(&mut shell, "CREATE ROLE \"shop app\" LOGIN").await;
    let url = cluster.url().replace("jobs@", "shop%20app@");
    let error = Jobs::open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::ReadOnly));
    let told = chain(&error);
    let grant = "GRANT CREATE ON DATABASE \"postgres\" TO \"shop app\"";
    assert!(told.contains(grant), "{told}");
    // What another made, it may not use, and says so.
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let told = chain(&Jobs::open(&url).await.unwrap_err());
    assert!(told.contains("lacks a right"), "{told}");
    let usage = "GRANT USAGE ON SCHEMA jobs TO \"shop app\"; \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA jobs TO \"shop app\"";
    run(&mut shell, usage).await;
    let theirs = Jobs::open(&url).await.unwrap();
    let id = theirs.enqueue(Work { millis: 0 }).await.unwrap().id();
    assert!(jobs.job(id).await.unwrap().is_some());
    let told = Told::default();
    let crew = Crew::start([worker(&theirs, &told)]);
    until_succeeded(&jobs, 1).await;
    crew.stop().await;
}

#[tokio::test]
async fn a_server_that_is_read_only_by_default_says_so() {
    let cluster = Cluster::start(&[]).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let mut shell = shell(&cluster.url()).await;
    run(&mut shell, "ALTER DATABASE postgres SET default_transaction_read_only TO on").await;
    drop(jobs);
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let error = jobs.enqueue(Work { millis: 0 }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::ReadOnly));
    assert!(chain(&error).contains("takes no writes"), "{}", chain(&error));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_listener_in_a_transaction_holds_neither_jobs_nor_wake_ups_up() {
    let cluster = Cluster::start(&[]).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let told = Told::default();
    let poll = std::time::Duration::from_secs(30);
    let crew = Crew::start([worker(&jobs, &told).poll_interval(poll)]);
    let mut foreign = shell(&cluster.url()).await;
    // Two calls: in one, the transaction would be of the call, and nobody listens before it ends.
    run(&mut foreign, "LISTEN elsewhere").await;
    run(&mut foreign, "BEGIN; SELECT 1 FROM pg_class LIMIT 1").await;
    let elsewhere = Jobs::open(&cluster.url()).await.unwrap();
    for wanted in 1..=20 {
        elsewhere.enqueue(Work { millis: 0 }).await.unwrap();
        until_succeeded(&jobs, wanted).await;
    }
    let warned = async || {
        let warnings = jobs.warnings(std::time::Duration::from_mins(1)).await.unwrap();
        warnings.iter().any(|warning| warning.contains("queue of notifications"))
    };
    assert!(!warned().await);
    let mut shell = shell(&cluster.url()).await;
    // Small: the least that is told of. Full: more than that with which the store still notifies.
    let wanted = sized("0.01", "0.5");
    let fill = "SELECT pg_notify('elsewhere', repeat('x', 7900) || n || random()) FROM generate_series(1, 5000) AS n";
    let is_reached = format!("SELECT pg_notification_queue_usage() >= {wanted}");
    until("notifications pile up", SOON * 10, async || {
        run(&mut shell, fill).await;
        sqlx::query_scalar(AssertSqlSafe(is_reached.clone())).fetch_one(&mut shell).await.unwrap()
    })
    .await;
    assert!(warned().await);
    // Without a wake-up at the worst, and not failing.
    elsewhere.enqueue(Work { millis: 0 }).await.unwrap();
    until_succeeded(&jobs, 21).await;
    let shell = tokio::sync::Mutex::new(&mut shell);
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN \"jobs%' AND state \
                LIKE 'idle in transaction%'";
    let idle: i64 = sqlx::query_scalar(ours).fetch_one(&mut **shell.lock().await).await.unwrap();
    assert_eq!(idle, 0);
    drop(foreign);
    // Nobody else keeps the queue, our own listener neither. The server deletes its files in the first
    // of these calls, some hundred a second: fifty times as many where the queue was half full.
    until("notifications are trimmed again", SOON * sized(1, 5), async || {
        let usage = "SELECT pg_notification_queue_usage() < 0.01";
        sqlx::query_scalar(usage).fetch_one(&mut **shell.lock().await).await.unwrap()
    })
    .await;
    let heard = async {
        for wanted in 22..=30 {
            elsewhere.enqueue(Work { millis: 0 }).await.unwrap();
            until_succeeded(&jobs, wanted).await;
        }
    };
    let heard = tokio::time::timeout(poll, heard).await;
    assert!(heard.is_ok(), "wake-ups come again: nine jobs within one interval of polls");
    crew.stop().await;
}
