//! Faults that real systems shipped, on a real server.
#![cfg(feature = "postgres")]

#[path = "worker/lines.rs"]
mod lines;
mod postgres_support;

use std::time::Duration;

use jobs_core::store::conformance::{MemorySubject, model};
use jobs_core::store::{Author, Enqueued, Inspect, Store, Sweep, Swept};
use jobs_core::{Budget, BuildId, NewJob, QueueName, State, StoreErrorKind, UniqueKey};
use jobs_runtime::store::postgres::{PostgresOptions, PostgresStore};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, Row};
use tokio::task::JoinSet;

use lines::Lines;
use postgres_support::{
    TestStore, block_on, claimed, connect, drain, fresh_name, job, quoted, save, server_url,
    server_url_with, with_schema, with_store, worker,
};

#[test]
fn a_plain_insert_of_another_language_is_a_job() {
    with_store(async |subject| {
        let insert = format!(
            "INSERT INTO {}.job (kind, version, payload) VALUES ('mail.send', '1.2.3', '{{\"to\": 1}}')",
            quoted(&subject.schema)
        );
        let psql = tokio::task::spawn_blocking(move || {
            std::process::Command::new("psql")
                .args(["--no-psqlrc", "-c", &insert, &server_url()])
                .output()
        });
        match psql.await.unwrap() {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => panic!("psql is part of the server's package: {error}"),
        }
        let jobs = subject.store.jobs(&jobs_core::store::Filter::default(), 10).await.unwrap();
        let [job] = &jobs[..] else { panic!("one job: {jobs:?}") };
        assert_eq!(
            (job.state, job.queue.as_str(), job.budget),
            (State::Ready, "default", Budget::default())
        );
        assert_eq!(job.payload, "{\"to\": 1}");
        assert_eq!(drain(&subject.store).await, 1);
    });
}

/// A wake-up carries nothing that could be too long.
#[test]
fn no_payload_and_no_queue_is_too_much_for_a_notification() {
    with_store(async |subject| {
        let mut wake = subject.store.wake();
        wake.changed().await;
        let big = NewJob { payload: format!("\"{}\"", "x".repeat(50_000)), ..job() };
        subject.store.enqueue(&[big]).await.unwrap();
        wake.changed().await;
        let queue = |n: usize| QueueName::new(format!("{}\"'{}", "é".repeat(60), n % 300)).unwrap();
        let many: Vec<NewJob> = (0..5_000).map(|n| NewJob { queue: queue(n), ..job() }).collect();
        let mut tx = subject.store.begin().await.unwrap();
        subject.store.enqueue_in(&mut tx, &many).await.unwrap();
        tx.commit().await.unwrap();
        wake.changed().await;
        assert_eq!(subject.number("SELECT count(*) FROM {schema}.job").await, 5_001);
    });
}

/// The listener is never inside a transaction, and hears again after its connection died.
#[test]
fn a_listener_is_idle_and_heals() {
    with_store(async |subject| {
        let mut wake = subject.store.wake();
        wake.changed().await;
        let listen = format!("LISTEN \"{}\"", subject.store.channel());
        let state = "SELECT state FROM pg_stat_activity WHERE query = $1";
        let state = sqlx::query(state).bind(&listen).fetch_one(&subject.outside).await.unwrap();
        assert_eq!(state.get::<&str, _>(0), "idle");
        for _ in 0..3 {
            let ended =
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = $1";
            sqlx::query(ended).bind(&listen).fetch_one(&subject.outside).await.unwrap();
            // It returns once it listens again: what came in between is looked for then.
            tokio::time::timeout(Duration::from_secs(20), wake.changed()).await.unwrap();
            subject.store.enqueue(&[job()]).await.unwrap();
            tokio::time::timeout(Duration::from_secs(20), wake.changed()).await.unwrap();
        }
    });
}

#[test]
fn a_connection_for_wake_ups_that_comes_and_goes_is_told_once_and_so_is_its_end() {
    with_store(async |subject| {
        let lines = Lines::default();
        let _guard = tracing::subscriber::set_default(lines.clone());
        let mut wake = subject.store.wake();
        wake.changed().await;
        let listen = format!("LISTEN \"{}\"", subject.store.channel());
        let ended =
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = $1";
        for _ in 0..5 {
            sqlx::query(ended).bind(&listen).fetch_one(&subject.outside).await.unwrap();
            tokio::time::timeout(Duration::from_secs(20), wake.changed()).await.unwrap();
        }
        let none = "no connection for wake-ups; until it is back, workers poll";
        assert_eq!(lines.of(none), 1, "{:?}", lines.all());
        let back = "the connection for wake-ups is back";
        assert_eq!(lines.of(back), 0, "{:?}", lines.all());
        // Calls that are dropped, as those of a worker with other things to do, put nothing off.
        for _ in 0..400 {
            drop(tokio::time::timeout(Duration::from_millis(50), wake.changed()).await);
            if lines.of(back) > 0 {
                break;
            }
        }
        assert_eq!((lines.of(back), lines.of(none)), (1, 1), "{:?}", lines.all());
    });
}

/// Calls dropped at any moment leave no transaction open and lose nothing that was answered.
#[test]
fn dropped_calls_leave_no_transaction_behind() {
    with_schema(async |schema| {
        let options = PostgresOptions::default().schema(&schema).connections(1);
        let subject = TestStore::open_with(options, &schema).await;
        let keyed = NewJob { unique_key: Some(UniqueKey::new("k").unwrap()), ..job() };
        let worker = subject.store.register(&worker()).await.unwrap();
        let by = Author { worker: Some(worker), build: BuildId::new("b").unwrap() };
        let mut answered = Vec::new();
        for us in (0..500).map(|nth| 30 * (nth % 100)) {
            let limit = Duration::from_micros(us);
            let two = [job(), keyed.clone()];
            if let Ok(added) = tokio::time::timeout(limit, subject.store.enqueue(&two)).await {
                answered.extend(added.unwrap().into_iter().map(Enqueued::id));
            }
            drop(tokio::time::timeout(limit, subject.store.begin()).await);
            drop(tokio::time::timeout(limit, subject.store.promote(10)).await);
            let sweep = Sweep { by: by.clone(), grace: Duration::ZERO, limit: 10, draw: 0 };
            drop(tokio::time::timeout(limit, subject.store.sweep(&sweep)).await);
        }
        let more = subject.store.enqueue(&[job()]).await.unwrap();
        answered.extend(more.into_iter().map(Enqueued::id));
        for id in answered {
            let there = format!("SELECT count(*) FROM {{schema}}.job WHERE id = {id}");
            assert_eq!(subject.number(&there).await, 1, "job {id} was acknowledged");
        }
        let open = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' \
                    AND query LIKE '%' || $1 || '%'";
        let open = sqlx::query(open).bind(&subject.schema).fetch_one(&subject.outside).await;
        assert_eq!(open.unwrap().get::<i64, _>(0), 0);
    });
}

/// The database's own isolation level does not reach the store.
#[test]
fn a_stricter_default_isolation_disturbs_nothing() {
    let database = fresh_name("jobs strict");
    block_on(async {
        let run = async |sql: String| {
            connect().await.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
        };
        run(format!("CREATE DATABASE {}", quoted(&database))).await;
        run(format!(
            "ALTER DATABASE {} SET default_transaction_isolation = serializable",
            quoted(&database)
        ))
        .await;
        let url = server_url_with(|server| server.database(&database));
        let pool = PgPoolOptions::new().max_connections(6).connect(&url).await.unwrap();
        let current = "SELECT current_database()::text || current_setting('transaction_isolation')";
        let current: String = sqlx::query_scalar(current).fetch_one(&pool).await.unwrap();
        assert_eq!(current, format!("{database}serializable"));
        let own = PostgresStore::open(&url, PostgresOptions::default()).await.unwrap();
        let borrowed =
            PostgresStore::from_pool(pool.clone(), PostgresOptions::default()).await.unwrap();
        for store in [own, borrowed] {
            let jobs: Vec<NewJob> = (0..2_000).map(|_| job()).collect();
            store.enqueue(&jobs).await.unwrap();
            let mut workers = JoinSet::new();
            for _ in 0..4 {
                let store = store.clone();
                workers.spawn(async move { drain(&store).await });
            }
            for _ in 0..50 {
                let keyed = NewJob { unique_key: Some(UniqueKey::new("k").unwrap()), ..job() };
                store.enqueue(&[keyed]).await.unwrap();
            }
            let done: usize = workers.join_all().await.into_iter().sum();
            let rest = drain(&store).await;
            assert!((2_001..=2_050).contains(&(done + rest)), "{done} and {rest}");
        }
        pool.close().await;
        run(format!("DROP DATABASE {} WITH (FORCE)", quoted(&database))).await;
    });
}

/// Through a pooler's one-transaction sessions, and over the application's own pool.
#[test]
fn borrowed_and_pooled_connections_keep_the_contract() {
    for (seed, is_pooled) in [(1, true), (2, false)] {
        with_schema(async |schema| {
            let pool =
                PgPoolOptions::new().max_connections(4).connect(&server_url()).await.unwrap();
            let options = PostgresOptions::default().schema(&schema);
            let options = if is_pooled { options.behind_pooler() } else { options };
            let store = PostgresStore::from_pool(pool, options).await.unwrap();
            let subject = TestStore::around(store, &schema);
            model::compare(seed, 120, &subject, &MemorySubject::new(!seed)).await;
        });
    }
}

#[test]
fn a_transaction_on_another_database_is_told_apart() {
    with_store(async |subject| {
        let mut elsewhere = connect().await;
        let other = fresh_name("jobs other");
        let options = PostgresOptions::default().schema(&other);
        let store = PostgresStore::open(&server_url(), options).await.unwrap();
        connect()
            .await
            .execute(sqlx::raw_sql(AssertSqlSafe(format!(
                "DROP SCHEMA {} CASCADE",
                quoted(&other)
            ))))
            .await
            .unwrap();
        let error = store.enqueue_in(&mut elsewhere, &[job()]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Configuration);
        subject.sql("UPDATE {schema}.meta SET store_id = 'another'").await;
        let error = subject.store.enqueue_in(&mut elsewhere, &[job()]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Configuration);
        assert!(error.to_string().contains("another database"), "{error}");
    });
}

#[test]
fn an_error_behind_a_saved_checkpoint_does_not_say_that_nothing_was_done() {
    with_store(async |subject| {
        subject.store.enqueue(&[job()]).await.unwrap();
        let run = &claimed(&subject.store, 1).await[0];
        let refused = save(run.fence, "[\0]");
        let error = subject.store.checkpoint(std::slice::from_ref(&refused)).await.unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (StoreErrorKind::Invalid, false));
        let both = [save(run.fence, "[1]"), refused];
        let error = subject.store.checkpoint(&both).await.unwrap_err();
        assert!(error.is_ambiguous(), "{error}");
        assert_eq!(subject.number("SELECT number FROM {schema}.checkpoint").await, 1);
    });
}

/// Workers sweep all the time, and nearly always there is nothing.
#[test]
fn a_sweep_that_finds_nothing_writes_nothing() {
    with_store(async |subject| {
        let store = &subject.store;
        store.enqueue(&[job()]).await.unwrap();
        let worker = store.register(&worker()).await.unwrap();
        assert_eq!(claimed(store, 1).await.len(), 1);
        let mut shell = subject.outside.begin().await.unwrap();
        let schema = quoted(&subject.schema);
        let lock = format!("LOCK TABLE {schema}.worker, {schema}.job IN SHARE MODE");
        shell.execute(AssertSqlSafe(lock)).await.unwrap();
        let by = Author { worker: Some(worker), build: BuildId::new("b").unwrap() };
        let sweep = Sweep { by, grace: Duration::ZERO, limit: 10, draw: 0 };
        assert_eq!(store.sweep(&sweep).await.unwrap(), Swept::default());
    });
}
