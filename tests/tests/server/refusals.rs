//! A server that takes no writes for a while: its disk is full, or it is a standby.

use jobs_runtime::{ErrorKind, Jobs, State, StoreErrorKind, chain};
use rustix::process::Signal;
use sqlx::AssertSqlSafe;
use tests::cluster::Cluster;
use tests::process::Setup;
use tests::{Work, ledger, until};

use crate::crew::{Crew, SOON, Told, all, count, shell, until_idle, worker};

/// Every write of a job fails, as it does on a full disk or a standby. Real ones need a mount or take
/// the server away.
fn refuse(how: &str) -> String {
    format!(
        "CREATE FUNCTION jobs.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE 'not now' USING ERRCODE = '{how}';
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON jobs.job
            FOR EACH STATEMENT EXECUTE FUNCTION jobs.refuse()"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_fails_no_job_floods_no_log_and_passes() {
    refuse_for_a_while("disk_full", StoreErrorKind::Full, "the server's disk is full").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_turns_read_only_fails_no_job_floods_no_log_and_passes() {
    let code = "read_only_sql_transaction";
    refuse_for_a_while(code, StoreErrorKind::ReadOnly, "the server takes no writes").await;
}

async fn refuse_for_a_while(code: &str, kind: StoreErrorKind, hint: &str) {
    let cluster = Cluster::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup {
        url: cluster.url(),
        ..Setup::over_sqlite(env!("CARGO_BIN_EXE_worker-process"), folder.path())
    };
    let jobs = setup.open().await;
    let added = jobs.enqueue_all((0..30).map(|_| Work { millis: 300 })).await.unwrap();
    let process = setup.start("worker");
    until("handlers run", SOON, async || count(&jobs, State::Running).await == Some(10)).await;
    let mut shell = shell(&cluster.url()).await;
    sqlx::raw_sql(AssertSqlSafe(refuse(code))).execute(&mut shell).await.unwrap();
    let error = jobs.enqueue(Work { millis: 0 }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store(kind));
    assert!(chain(&error).contains(hint), "{}", chain(&error));
    let ended = || ledger::read(&setup.ledger).into_values().flatten().collect::<Vec<_>>();
    until("the handlers have ended", SOON, async || {
        let runs = ended();
        runs.len() >= 10 && runs.iter().all(|(_, run)| run.ended_us.is_some())
    })
    .await;
    // The server logs what it refused.
    until("claims and settlements were refused again and again", SOON, async || {
        let log = cluster.read_log();
        let refused = |what| log.matches(what).count() >= 3;
        refused("SET state = 'running'") && refused("SET state = 'succeeded'")
    })
    .await;
    sqlx::raw_sql("DROP FUNCTION jobs.refuse CASCADE").execute(&mut shell).await.unwrap();
    until_idle(&jobs).await;
    let records = all(&jobs).await;
    assert_eq!(records.len(), added.len());
    for record in records {
        let counters = record.counters;
        assert_eq!((record.state, counters.failures), (State::Succeeded, 0), "job {}", record.id);
        // What had ended while it took no writes was settled late, and not run again.
        assert_eq!((record.claim.0, counters.interruptions), (1, 0), "job {}", record.id);
    }
    let log = process.log();
    let lines = log.lines().filter(|line| line.contains(hint)).count();
    assert!((1..=4).contains(&lines), "{lines} lines: {log}");
    process.signal(Signal::TERM);
    assert!(process.wait().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_needs_a_newer_build_drains_the_worker() {
    let cluster = Cluster::start(&[]).await;
    let (jobs, told) = (Jobs::open(&cluster.url()).await.unwrap(), Told::default());
    let id = jobs.enqueue(Work { millis: 2_000 }).await.unwrap().id();
    let crew = Crew::start([worker(&jobs, &told)]);
    until("the job runs", SOON, async || count(&jobs, State::Running).await == Some(1)).await;
    let mut shell = shell(&cluster.url()).await;
    sqlx::raw_sql("UPDATE jobs.meta SET min_reader = 9").execute(&mut shell).await.unwrap();
    crew.ended().await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.claim.0), (State::Succeeded, 1), "its handler could finish");
    let workers = jobs.inspect().workers().await.unwrap();
    assert!(workers[0].drained.is_some_and(|drained| drained.settled == 1), "{workers:?}");
}
