//! Encrypted ways to the server, and what is said where there is none.

use std::net::Ipv4Addr;

use jobs_runtime::prelude::*;
use jobs_runtime::{ErrorKind, StoreErrorKind, chain};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use sqlx::AssertSqlSafe;
use tests::Work;
use tests::cluster::Cluster;

use crate::crew::*;

/// An address of this machine that no other test of it has: servers encrypt no socket in a folder.
fn own_address() -> String {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high.max(1), middle, low.max(2)).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_run_over_an_encrypted_way_and_who_is_not_vouched_for_is_refused() {
    let address = own_address();
    let cluster = Cluster::start(&[&format!("listen_addresses = '{address}'")]).await;
    let url = |mode: &str| format!("postgres://jobs@{address}/postgres?sslmode={mode}");

    let error = Jobs::open(&url("require")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::Configuration));
    assert!(!error.is_transient());
    let told = chain(&error);
    assert!(told.contains("`ssl = on`") && told.contains("does not support TLS"), "{told}");

    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([address.clone()]).expect("a certificate");
    let certificate = cluster.give("server.crt", &cert.pem());
    let key = cluster.give("server.key", &signing_key.serialize_pem());
    let encrypt = [
        "ALTER SYSTEM SET ssl = on".to_owned(),
        format!("ALTER SYSTEM SET ssl_cert_file = '{}'", certificate.display()),
        format!("ALTER SYSTEM SET ssl_key_file = '{}'", key.display()),
        "SELECT pg_reload_conf()".to_owned(),
    ];
    let mut shell = shell(&cluster.url()).await;
    for statement in encrypt {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut shell).await.unwrap();
    }
    tests::until("the server encrypts", SOON, async || Jobs::open(&url("require")).await.is_ok())
        .await;

    // Nobody vouches for a certificate that the server signed itself, but who was given it.
    let error = Jobs::open(&url("verify-full")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::Configuration));
    assert!(chain(&error).contains("`sslrootcert`"), "{}", chain(&error));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.crt");
    std::fs::write(&root, cert.pem()).unwrap();
    let vouched = format!("{}&sslrootcert={}", url("verify-full"), root.display());
    let jobs = Jobs::open(&vouched).await.unwrap();
    let told = Told::default();
    let crew = Crew::start([worker(&jobs, &told)]);
    jobs.enqueue(Work { millis: 0 }).await.unwrap();
    until_succeeded(&jobs, 1).await;

    // Statements, heartbeats and wake-ups alike.
    let plain = "SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) \
                 WHERE client_addr IS NOT NULL AND NOT ssl";
    let plain: i64 = sqlx::query_scalar(plain).fetch_one(&mut shell).await.unwrap();
    assert_eq!(plain, 0);
    crew.stop().await;
}
