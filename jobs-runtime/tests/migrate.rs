//! `jobs migrate`, as a person or a pipeline runs it.

mod postgres_support;

use std::process::{Command, Output};

use jobs_runtime::Jobs;
use sqlx::AssertSqlSafe;

use postgres_support::{connect, server_url, with_schema};

fn jobs(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobs"));
    command.args(["migrate", "--url"]).args(arguments).output().expect("the binary runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Done, as told, and nothing on standard output.
fn assert_migrated(output: &Output, told: &str) {
    assert!(output.stdout.is_empty() && output.status.success(), "{}", said(output));
    assert!(said(output).contains(told), "{}", said(output));
}

async fn assert_opens(schema: &str) {
    let name = schema.to_owned();
    let builder =
        Jobs::builder().postgres(move |options| options.schema(name.clone()).require_migrated());
    builder.open(&server_url()).await.expect("the schema is up to date");
}

#[test]
fn a_migrated_schema_needs_no_more_rights_to_open_and_a_second_run_changes_nothing() {
    with_schema(async |schema| {
        for told in ["made schema 1 in ", " is at schema 1, as this build needs it"] {
            let output = jobs(&[&server_url(), "--schema", &schema]);
            assert_migrated(&output, told);
        }
        assert_opens(&schema).await;
    });
}

#[test]
fn the_sql_of_a_dry_run_makes_the_schema_that_opening_makes() {
    with_schema(async |schema| {
        let output = jobs(&[&server_url(), "--schema", &schema, "--dry-run"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let sql = String::from_utf8(output.stdout).unwrap();
        let ran = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connect().await).await;
        ran.expect("the printed SQL runs");
        assert_opens(&schema).await;
    });
}

#[test]
fn a_dry_run_connects_to_nothing() {
    let output = jobs(&["postgres://nobody@127.0.0.1:1/none", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("CREATE SCHEMA IF NOT EXISTS \"jobs\""));
}

#[tokio::test]
async fn a_sqlite_file_is_migrated_by_the_command_or_by_what_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("sqlite://{}", folder.path().join(name).display());
    let output = jobs(&[&url("by-command.db")]);
    assert_migrated(&output, "made schema 1 in ");
    let output = jobs(&[&url("by-hand.db"), "--dry-run"]);
    let sql = String::from_utf8(output.stdout).unwrap();
    assert!(!folder.path().join("by-hand.db").exists());
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(folder.path().join("by-hand.db"))
        .create_if_missing(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.expect("the printed SQL runs");
    pool.close().await;
    for name in ["by-command.db", "by-hand.db"] {
        let jobs = Jobs::open(&url(name)).await.unwrap();
        assert!(jobs.inspect().counts().await.unwrap().is_empty());
    }
}

#[test]
fn the_exit_status_says_what_to_do_and_no_message_shows_a_password() {
    let cases = [
        // Away: nobody listens there.
        ("postgres://me:hunter2@127.0.0.1:1/shop", None, 75),
        ("postgres://me:hunter2@127.0.0.1:notaport/shop", None, 3),
        ("mysql://me:hunter2@127.0.0.1/shop", None, 2),
        ("me:hunter2@127.0.0.1/shop", None, 2),
        ("sqlite://hunter2.db", Some("jobs"), 2),
        ("postgres://me:hunter2@127.0.0.1:1/shop", Some(""), 3),
    ];
    for (url, schema, status) in cases {
        let schema = schema.map(|name| ["--schema", name]);
        let arguments: Vec<&str> = [url].into_iter().chain(schema.into_iter().flatten()).collect();
        let output = jobs(&arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(status), "{url}: {said}");
        assert!(said.starts_with("jobs: ") && !said.contains("hunter2"), "{said}");
    }
}
