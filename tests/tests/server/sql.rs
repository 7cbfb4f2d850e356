//! What `docs/sql.md` tells other languages to write, as it stands there.

use std::process::{Command, Output};

use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{JobRecord, State};
use serde::{Deserialize, Serialize};
use tests::cluster::Cluster;

use crate::crew::{Crew, until_succeeded};

/// The job that the document's rows are.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "mail.send", version = "1.0.0")]
struct Mail {
    to: String,
}

async fn send(job: Mail, _: JobContext<()>) -> Result<(), JobError> {
    assert_eq!(job.to, "ada@example.com");
    Ok(())
}

/// The statements that the document has for a database, in its order.
fn statements(database: &str) -> Vec<&'static str> {
    let document = include_str!("../../../docs/sql.md");
    let fence = format!("```sql {database}\n");
    let blocks = document.split(fence.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().expect("a first part")).collect()
}

/// What stands in the rows after the statements ran, the one with the key twice.
async fn assert_rows_run(jobs: &Jobs) {
    let rows = jobs.inspect().jobs(&Filter::default(), 10).await.unwrap();
    let of = |is: fn(&&JobRecord) -> bool| rows.iter().filter(is).count();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(of(|row| row.state == State::Scheduled && row.queue.as_str() == "mail"), 1);
    assert_eq!(of(|row| row.unique_key.as_deref() == Some("ada")), 1);
    let later = rows.iter().find(|row| row.state == State::Scheduled).unwrap().id;
    // The row vouches for readers of 1.0, so a build of that version may run it.
    assert_eq!(jobs.operate().run_now(&[later]).await.unwrap(), [true]);
    let handlers = Registry::new().handle(send).build().unwrap();
    let crew = Crew::start([Worker::new(jobs, handlers, ()).queue("default").queue("mail")]);
    until_succeeded(jobs, 3).await;
    crew.stop().await;
}

fn assert_well(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_written_by_psql_as_documented_run() {
    let cluster = Cluster::start(&[]).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let all = statements("postgres");
    let [now, later, unique, grants] = all[..] else { panic!("{all:?}") };
    for sql in [grants, now, later, unique, unique] {
        // All but the grants by the role that they are for.
        let role = if sql == grants { "SELECT 1" } else { "SET ROLE mail_writer" };
        assert_well(&cluster.psql(&[role, sql]));
    }
    assert_rows_run(&jobs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_written_by_sqlite3_as_documented_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let jobs = Jobs::open(&format!("sqlite://{}", file.display())).await.unwrap();
    let all = statements("sqlite");
    let [now, later, unique] = all[..] else { panic!("{all:?}") };
    for sql in [now, later, unique, unique] {
        let mut sqlite3 = Command::new("sqlite3");
        if let Ok(output) = sqlite3.arg(&file).arg(".timeout 30000").arg(sql).output() {
            assert_well(&output);
        } else {
            // Without the program the statements run all the same, through the driver.
            let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display())).await;
            sqlx::raw_sql(sql).execute(&pool.unwrap()).await.unwrap();
        }
    }
    assert_rows_run(&jobs).await;
}
