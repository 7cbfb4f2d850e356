//! `jobs watch`, open all day.

use std::process::Stdio;
use std::time::Duration;

use jobs_runtime::Jobs;
use sqlx::{Connection as _, SqliteConnection};

use crate::postgres_support::block_on;
use crate::session::{jobs, sqlite_url};

const MIB: u64 = 1024 * 1024;

/// About so many MiB of jobs, by statements of 1 MiB, and how large the log was at most.
async fn enqueue(jobs: &Jobs, log: &std::path::Path, mib: u64) -> u64 {
    let mut largest = 0;
    for _ in 0..mib {
        let mail = || super::looks::Mail { to: "x".repeat(64 * 1024) };
        jobs.enqueue_all((0..16).map(|_| mail())).await.unwrap();
        largest = largest.max(std::fs::metadata(log).unwrap().len());
    }
    largest
}

#[test]
fn a_watch_pins_no_log_and_the_log_shrinks_once_a_stranger_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(folder.path());
    let log = folder.path().join("jobs.db-wal");
    block_on(async {
        let jobs_open =
            Jobs::builder().sqlite(|options| options.wal_warning_bytes(48 * MIB)).open(&url);
        let store = jobs_open.await.unwrap();
        let mut watch = jobs();
        watch.args(["watch", "--interval", "100ms", "--json"]).env("JOBS_URL", &url);
        let mut watch = watch.stdout(Stdio::null()).spawn().unwrap();
        // The log is folded at 16 MiB; a pinned one would hold all of it.
        let beside_watch = enqueue(&store, &log, 100).await;
        assert!(beside_watch < 64 * MIB, "the log grew to {beside_watch} bytes");
        assert!(watch.try_wait().unwrap().is_none(), "it still watches");
        let mut stranger = SqliteConnection::connect(&url).await.unwrap();
        sqlx::query("BEGIN").execute(&mut stranger).await.unwrap();
        let look = sqlx::query("SELECT count(*) FROM jobs_job");
        look.fetch_one(&mut stranger).await.unwrap();
        let pinned = enqueue(&store, &log, 100).await;
        assert!(pinned > 80 * MIB, "a stranger's reader pins the log: {pinned} bytes");
        drop(stranger);
        let shrunk = async {
            while std::fs::metadata(&log).unwrap().len() > 20 * MIB {
                enqueue(&store, &log, 1).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), shrunk).await.expect("the log shrinks");
        watch.kill().unwrap();
        watch.wait().unwrap();
    });
}
