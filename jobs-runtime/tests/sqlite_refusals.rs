//! What the SQLite store refuses to live on, and what it says then.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::error::Error;
use std::sync::Arc;

use jobs_core::{ManualClock, StoreError, StoreErrorKind};
use jobs_runtime::store::sqlite::SqliteStore;
use sqlite_scene::{START, Scene, job, options, runtime, shell};
use sqlx::sqlite::SqlitePoolOptions;

async fn refused(address: &str) -> StoreError {
    let clock = Arc::new(ManualClock::new(START));
    SqliteStore::open(address, options(&clock, 1)).await.expect_err("it is refused")
}

/// What is said, with the changing part of the paths taken out.
fn told(error: &StoreError, folder: &std::path::Path) -> String {
    let folder = folder.canonicalize().expect("a folder");
    let text = format!("{:?}: {error}", error.kind());
    text.replace(&*folder.to_string_lossy(), "FOLDER")
}

#[test]
fn a_database_in_memory_is_refused() {
    runtime().block_on(async {
        for address in
            ["", ":memory:", "sqlite::memory:", "sqlite://:memory:", "sqlite://a.db?mode=memory"]
        {
            let error = refused(address).await;
            assert_eq!(error.kind(), StoreErrorKind::Configuration, "{address:?}");
            assert!(error.to_string().contains("name a file"), "{address:?}: {error}");
        }
        let pool = SqlitePoolOptions::new().connect("sqlite::memory:").await.expect("a pool");
        let clock = Arc::new(ManualClock::new(START));
        let error = SqliteStore::from_pool(&pool, options(&clock, 1)).await.expect_err("refused");
        assert!(error.to_string().contains("name a file"), "{error}");
    });
}

#[test]
fn every_refusal_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("letter.txt"), "Dear reader, this is not a database. ".repeat(50))
        .expect("a letter");
    std::fs::write(at("kept.db"), "").expect("a file");
    let mut rights = std::fs::metadata(at("kept.db")).expect("a file").permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(at("kept.db"), rights).expect("rights");
    std::fs::write(at("taken.db-workers"), "").expect("a file");
    runtime().block_on(async {
        let mut all = String::new();
        for name in
            ["", "missing/jobs.db", "letter.txt", "kept.db", "taken.db", "letter.txt/jobs.db"]
        {
            let error = refused(&at(name).to_string_lossy()).await;
            all.push_str(&told(&error, folder.path()));
            all.push('\n');
        }
        for address in ["sqlite://jobs.db?mode=ro", "sqlite://jobs.db?fast=yes"] {
            let error = refused(address).await;
            all.push_str(&told(&error, folder.path()));
            all.push('\n');
        }
        insta::assert_snapshot!(all);
    });
    assert!(!at("letter.txt-workers").exists(), "nothing is left beside what is no database");
}

#[test]
fn a_schema_that_this_build_can_not_work_with_is_refused() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let newer = "UPDATE jobs_meta SET schema_version = 9, min_reader = 8";
        sqlx::query(newer).execute(&mut scene.shell().await).await.expect("a newer build");
        let error = refused(&scene.database().to_string_lossy()).await;
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        insta::assert_snapshot!(error.to_string());
    });
}

#[test]
fn a_newer_schema_that_vouches_for_this_build_is_used() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let newer = "UPDATE jobs_meta SET schema_version = 9";
        sqlx::query(newer).execute(&mut scene.shell().await).await.expect("a newer build");
        let again = scene.neighbour(2).await;
        assert_eq!(jobs_core::store::Store::id(&again), jobs_core::store::Store::id(&scene.store));
    });
}

#[test]
fn a_damaged_file_is_told_from_a_busy_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.db");
    std::fs::write(&path, "").expect("an empty file");
    runtime().block_on(async {
        let mut connection = shell(&path).await;
        let create = "CREATE TABLE mine (text); INSERT INTO mine VALUES (zeroblob(100000))";
        sqlx::raw_sql(create).execute(&mut connection).await.expect("a table");
        sqlx::Connection::close(connection).await.expect("a file");
        let mut bytes = std::fs::read(&path).expect("a file");
        bytes[100..4096].fill(0xff);
        std::fs::write(&path, bytes).expect("a file");
        let error = refused(&path.to_string_lossy()).await;
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
        assert!(error.source().is_some());
    });
}

#[test]
fn a_link_and_its_file_are_one_store() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let link = scene.folder.path().join("link.db");
        std::os::unix::fs::symlink(scene.database(), &link).expect("a link");
        let linked = SqliteStore::open(&link.to_string_lossy(), options(&scene.clock, 2)).await;
        linked.expect("the same file");
        assert!(!scene.folder.path().join("link.db-workers").exists());
    });
}

#[test]
fn a_link_to_a_file_that_is_yet_to_be_made_is_that_file() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("volume")).expect("a folder");
        std::os::unix::fs::symlink("hop.db", at("link.db")).expect("a link");
        std::os::unix::fs::symlink(at("volume/jobs.db"), at("hop.db")).expect("a link");
        let clock = Arc::new(ManualClock::new(START));
        let store = SqliteStore::open(&at("link.db").to_string_lossy(), options(&clock, 1)).await;
        let store = store.expect("a store");
        let mut tx = SqliteStore::begin(&store).await.expect("a transaction");
        store.enqueue_in(&mut tx, &[job("{}")]).await.expect("it is of the same file");
        tx.commit().await.expect("a commit");
        assert!(at("volume/jobs.db-workers").exists() && !at("link.db-workers").exists());
    });
}
