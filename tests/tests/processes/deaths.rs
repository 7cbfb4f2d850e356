//! Jobs whose worker is gone without a trace.

use super::*;

const LEASE: Duration = Duration::from_millis(1_500);

/// A lease, a sweep and the start of a process.
const RECOVERY: Duration = Duration::from_secs(8);

#[tokio::test]
async fn jobs_whose_holder_left_no_trace_are_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
    let jobs = Jobs::open(&setup.url).await.unwrap();
    let killed = jobs.enqueue(Work { millis: 2_000 }).await.unwrap().id();
    let first = setup.start("w1");
    until_state(&jobs, killed, State::Running, RECOVERY).await;
    first.kill();
    let mut shell = shell(&setup).await;
    // What the registry's retention may do before a sweep comes by.
    let forgotten = sqlx::query("DELETE FROM jobs_worker WHERE name = 'w1'").execute(&mut shell);
    assert_eq!(forgotten.await.unwrap().rows_affected(), 1);
    // What a person, or a restored backup, may leave: running, held by nobody or by who never was.
    let mut unheld = Vec::new();
    for holder in ["NULL", "0", "-1", "4711", "9223372036854775807"] {
        let id = jobs.enqueue(Work { millis: 0 }).await.unwrap().id();
        let update =
            format!("UPDATE jobs_job SET state = 'running', worker_id = {holder} WHERE id = {id}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(update)).execute(&mut shell).await.unwrap();
        unheld.push(id);
    }
    // The same name again: a name is no identity, so it keeps nothing of the dead one alive.
    let second = setup.start("w1");
    for id in unheld.into_iter().chain([killed]) {
        let record = until_state(&jobs, id, State::Succeeded, RECOVERY).await;
        assert_eq!((record.counters.failures, record.counters.crashes), (0, 1), "job {id}");
    }
    assert_each_succeeded_once(&jobs, &setup, 6).await;
    second.signal(Signal::TERM);
    assert!(second.wait().success());
}
