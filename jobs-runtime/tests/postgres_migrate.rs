//! Opening a PostgreSQL store: migrations by many at once and cut off half-way, missing rights,
//! other versions, servers that take no writes.
#![cfg(feature = "postgres")]

mod postgres_support;

use std::collections::BTreeSet;
use std::time::Duration;

use jobs_core::store::{Inspect, NewWorker, Phase, Store};
use jobs_core::{BuildId, Lease, StoreErrorKind, WorkerName, chain};
use jobs_runtime::store::postgres::{PostgresOptions, PostgresStore};
use sqlx::{AssertSqlSafe, Executor};
use tokio::task::JoinSet;

use postgres_support::{
    TestStore, block_on, connect, fresh_name, quoted, server, server_url, server_url_with,
    with_schema,
};

fn options(schema: &str) -> PostgresOptions {
    PostgresOptions::default().schema(schema).connections(1)
}

async fn run(sql: &str) {
    connect().await.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
}

#[test]
fn twenty_that_migrate_at_once_open_one_store() {
    for _ in 0..3 {
        with_schema(async |schema| {
            let mut opening = JoinSet::new();
            for _ in 0..20 {
                let schema = schema.clone();
                opening.spawn(async move {
                    let store = PostgresStore::open(&server_url(), options(&schema)).await;
                    store.unwrap().id().clone()
                });
            }
            let ids = opening.join_all().await;
            assert_eq!(ids.iter().map(|id| &id.0).collect::<BTreeSet<_>>().len(), 1);
            assert_eq!(ids[0].0.len(), 32);
        });
    }
}

#[test]
fn a_migration_that_is_cut_off_blocks_no_other() {
    with_schema(async |schema| {
        for us in (0..40_000).step_by(1_000) {
            let url = server_url();
            let opening = PostgresStore::open(&url, options(&schema));
            let cut = tokio::time::timeout(Duration::from_micros(us), opening).await;
            drop(cut);
            let open = PostgresStore::open(&url, options(&schema));
            let store = tokio::time::timeout(Duration::from_secs(20), open).await;
            let store = store.expect("nothing blocks the next one").unwrap();
            assert!(store.counts().await.unwrap().is_empty());
            run(&format!("DROP SCHEMA {} CASCADE", quoted(&schema))).await;
        }
    });
}

#[test]
fn a_role_that_may_not_create_is_told_what_to_grant() {
    with_schema(async |schema| {
        let role = fresh_name("jobs role");
        run(&format!("CREATE ROLE {} LOGIN PASSWORD 'a word'", quoted(&role))).await;
        let url = server_url_with(|server| server.username(&role).password("a word"));
        let refused = PostgresStore::open(&url, options(&schema)).await;
        run(&format!("DROP ROLE {}", quoted(&role))).await;
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::ReadOnly);
        let database = server().get_database().expect("a database").to_owned();
        let grant = format!("GRANT CREATE ON DATABASE {} TO {}", quoted(&database), quoted(&role));
        assert!(error.to_string().contains(&grant), "{error}");
    });
}

#[test]
fn a_store_that_requires_a_migrated_schema_makes_none() {
    with_schema(async |schema| {
        let required = options(&schema).require_migrated();
        let error = PostgresStore::open(&server_url(), required.clone()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        assert!(error.to_string().contains("jobs migrate"), "{error}");
        run(&PostgresStore::migration_sql(&schema)).await;
        PostgresStore::open(&server_url(), required).await.unwrap();
    });
}

#[test]
fn a_newer_schema_is_used_for_as_long_as_it_allows() {
    with_schema(async |schema| {
        let subject = TestStore::open(&schema).await;
        let worker = NewWorker {
            name: WorkerName::new("w").unwrap(),
            build: BuildId::new("b").unwrap(),
            manifest: "{}".to_owned(),
            lease: Lease::default(),
        };
        let worker = subject.store.register(&worker).await.unwrap();
        let mut heartbeat = subject.store.heartbeat().await.unwrap();
        subject.sql("UPDATE {schema}.meta SET schema_version = 9").await;
        PostgresStore::open(&server_url(), options(&schema)).await.unwrap();
        heartbeat.renew(worker, Phase::Working, Duration::ZERO).await.unwrap();
        subject.sql("UPDATE {schema}.meta SET min_reader = 9").await;
        for error in [
            PostgresStore::open(&server_url(), options(&schema)).await.unwrap_err(),
            heartbeat.renew(worker, Phase::Working, Duration::ZERO).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), StoreErrorKind::Schema);
            assert!(error.to_string().contains("deploy the newer build"), "{error}");
        }
    });
}

#[test]
fn a_server_that_takes_no_writes_is_named() {
    with_schema(async |schema| {
        let server = server_url_with(|server| server);
        let read_only = format!("{server}&options=-c%20default_transaction_read_only%3Don");
        let error = PostgresStore::open(&read_only, options(&schema)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::ReadOnly);
        assert!(error.to_string().contains("takes no writes"), "{error}");
    });
}

#[test]
fn a_database_that_lacks_most_characters_is_refused() {
    let database = fresh_name("jobs latin");
    block_on(async {
        let name = quoted(&database);
        run(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"))
            .await;
        let url = server_url_with(|server| server.database(&database));
        let error = PostgresStore::open(&url, PostgresOptions::default()).await.unwrap_err();
        run(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
        assert_eq!(error.kind(), StoreErrorKind::Configuration);
        assert!(
            error.to_string().contains("LATIN1") && error.to_string().contains("UTF8"),
            "{error}"
        );
    });
}

#[test]
fn an_address_that_leads_nowhere_is_an_error_without_its_password() {
    block_on(async {
        let url = "postgres://me:hunter2@localhost:1/shop";
        let error = PostgresStore::open(url, PostgresOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(!format!("{error:?} {}", chain(&error)).contains("hunter2"));
        let url = server_url_with(|server| server.database("no such database"));
        let error = PostgresStore::open(&url, PostgresOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Configuration);
    });
}

#[test]
fn a_schemas_name_is_any_text_that_the_server_keeps() {
    for name in ["plain", "Mit Grün", "a\"b'c;--", "{schema}", &"x".repeat(63)] {
        block_on(async {
            let schema = format!("{}{}", &name[..name.len().min(50)], std::process::id() % 1000);
            let store = PostgresStore::open(&server_url(), options(&schema)).await.unwrap();
            assert!(store.counts().await.unwrap().is_empty());
            run(&format!("DROP SCHEMA {} CASCADE", quoted(&schema))).await;
        });
    }
    for name in ["", "a\0b", &"x".repeat(64)] {
        let opened = block_on(PostgresStore::open(&server_url(), options(name)));
        assert_eq!(opened.unwrap_err().kind(), StoreErrorKind::Configuration);
    }
}
