//! Who may import whom: the walls that ARCHITECTURE.md draws.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The Rust files of a folder or one file, with their text, without tests and doc comments.
fn sources(place: &str) -> Vec<(PathBuf, String)> {
    let place = root().join(place);
    let mut found = Vec::new();
    let mut left = vec![place.clone()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.push((path, code.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(!found.is_empty(), "{} holds no Rust file: the wall guards nothing", place.display());
    found
}

fn assert_never_names(places: &[&str], forbidden: &[&str]) {
    for (path, code) in places.iter().flat_map(|place| sources(place)) {
        for word in forbidden {
            assert!(!code.contains(word), "{} names {word}", path.display());
        }
    }
}

#[test]
fn the_core_knows_no_runtime_no_sql_and_no_clock() {
    assert_never_names(
        &["jobs-core/src"],
        &["tokio", "sqlx", "SystemTime::now", "Instant::now", "getrandom", "std::thread"],
    );
}

#[test]
fn a_store_knows_no_worker_no_handler_and_no_registry() {
    assert_never_names(
        &["jobs-core/src/store", "jobs-runtime/src/store"],
        &["crate::worker", "crate::handler", "crate::registry", "crate::context", "crate::run"],
    );
}

#[test]
fn dispatch_and_handlers_know_no_store() {
    assert_never_names(
        &[
            "jobs-runtime/src/handler.rs",
            "jobs-runtime/src/judge.rs",
            "jobs-runtime/src/registry.rs",
            "jobs-runtime/src/registry",
            "jobs-runtime/src/worker/dispatch.rs",
            "jobs-runtime/src/worker/dispatch",
            "jobs-runtime/src/run.rs",
        ],
        &["sqlx", "SqliteStore", "PostgresStore", "MemoryStore", "crate::store"],
    );
}

#[test]
fn the_loops_of_the_worker_know_the_contract_and_no_store() {
    assert_never_names(
        &["jobs-runtime/src/worker.rs", "jobs-runtime/src/worker"],
        &["sqlx", "SqliteStore", "PostgresStore", "MemoryStore", "crate::store"],
    );
}

#[test]
fn the_command_line_inspects_and_operates_and_never_claims_or_settles() {
    assert_never_names(
        &["jobs-runtime/src/cli.rs", "jobs-runtime/src/cli"],
        &[
            "sqlx",
            ".store()",
            "crate::worker",
            "crate::context",
            ".claim(",
            ".settle(",
            "Heartbeat",
        ],
    );
}

#[test]
fn the_sql_stores_never_import_each_other() {
    assert_never_names(&["jobs-runtime/src/store/sqlite"], &["store::postgres", "PgConnection"]);
    assert_never_names(
        &["jobs-runtime/src/store/postgres"],
        &["store::sqlite", "SqliteConnection"],
    );
}

#[test]
fn only_the_clock_module_reads_the_clock_and_only_the_random_module_reads_entropy() {
    for (path, code) in sources("jobs-runtime/src") {
        let is = |name: &str| path.ends_with(name);
        for word in ["SystemTime::now", "Instant::now", "clock_gettime"] {
            assert!(
                !code.contains(word) || is("src/clock.rs"),
                "{} reads the clock",
                path.display()
            );
        }
        assert!(!code.contains("getrandom") || is("src/random.rs"), "{}", path.display());
    }
}
