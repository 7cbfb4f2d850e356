//! Who waits for whom, on a real server: rows and keys that transactions of applications hold.
#![cfg(feature = "postgres")]

mod postgres_support;

use std::time::Duration;

use jobs_core::store::{
    Author, Cancelled, Claim, Claimed, Enqueued, Head, Inspect, Leaving, Operate, Retention, Saved,
    Standing, Store, Sweep,
};
use jobs_core::{
    BuildId, Fence, JobId, NewJob, Notes, QueueName, State, UniqueKey, UniqueWhile, WorkerId,
};
use jobs_runtime::store::postgres::PostgresOptions;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor};

use postgres_support::{
    TestStore, claimed, connect, drain, job, quoted, save, with_schema, with_store, worker,
};

#[test]
fn a_row_locked_by_an_application_is_stepped_over() {
    with_store(async |subject| {
        subject.store.enqueue(&[job(), job(), job()]).await.unwrap();
        let mut tx = subject.outside.begin().await.unwrap();
        let lock =
            format!("SELECT FROM {}.job ORDER BY id LIMIT 1 FOR UPDATE", quoted(&subject.schema));
        tx.execute(sqlx::raw_sql(AssertSqlSafe(lock.as_str()))).await.unwrap();
        let jobs = claimed(&subject.store, 2).await;
        assert_eq!(jobs.iter().map(|job| job.fence.job.0).collect::<Vec<_>>(), [2, 3]);
        tx.rollback().await.unwrap();
    });
}

/// A prune whose transaction is open has its rows locked and deleted, and is nobody else's business.
#[test]
fn a_prune_that_has_not_ended_keeps_nobody_from_claiming_and_settling() {
    with_store(async |subject| {
        subject.store.enqueue(&vec![job(); 30]).await.unwrap();
        assert_eq!(drain(&subject.store).await, 30);
        let texts = subject.store.statement_texts();
        let prune = texts.into_iter().find(|(name, ..)| *name == "prune").unwrap().2;
        let mut pruning = connect().await;
        pruning.execute("BEGIN").await.unwrap();
        let prune = sqlx::query_scalar::<_, i64>(AssertSqlSafe(prune));
        let prune = prune.bind(0_i64).bind(0_i64).bind(0_i64).bind(20_i64);
        assert_eq!(prune.fetch_one(&mut pruning).await.unwrap(), 20);

        subject.store.enqueue(&vec![job(); 30]).await.unwrap();
        assert_eq!(drain(&subject.store).await, 30, "all of it while the prune is under way");
        let kept = Duration::ZERO;
        let others = Retention { succeeded: kept, cancelled: kept, dead: kept };
        assert_eq!(subject.store.prune(others, 1_000).await.unwrap(), 40, "but what it holds");
        pruning.execute("COMMIT").await.unwrap();
        let left = subject.number("SELECT count(*) FROM {schema}.job").await;
        assert_eq!(left, 0);
    });
}

#[test]
fn a_checkpoint_of_a_row_that_stays_locked_is_told_apart_from_those_beside_it() {
    with_schema(async |schema| {
        let options = PostgresOptions::default().schema(&schema);
        let options = options.patience(Duration::from_millis(50));
        let subject = TestStore::open_with(options, &schema).await;
        subject.store.enqueue(&[job(), job(), job()]).await.unwrap();
        let runs = claimed(&subject.store, 3).await;
        let mut tx = subject.outside.begin().await.unwrap();
        let held = runs[1].fence.job.0;
        let lock =
            format!("SELECT FROM {}.job WHERE id = {held} FOR UPDATE", quoted(&subject.schema));
        tx.execute(sqlx::raw_sql(AssertSqlSafe(lock.as_str()))).await.unwrap();
        let saves: Vec<_> = runs.iter().map(|run| save(run.fence, "[1]")).collect();
        let answers = subject.store.checkpoint(&saves).await.unwrap();
        let is_saved = Saved::Answered(Standing::Held);
        assert_eq!(answers, [is_saved, Saved::Locked, is_saved]);
        assert_eq!(subject.store.checkpoint(&saves[1..2]).await.unwrap(), [Saved::Locked]);
        let stored = "SELECT count(*) FROM {schema}.checkpoint";
        assert_eq!(subject.number(stored).await, 2);
        tx.rollback().await.unwrap();
        assert_eq!(subject.store.checkpoint(&saves).await.unwrap(), [is_saved; 3]);
        assert_eq!(subject.number(stored).await, 3);
    });
}

#[test]
fn a_finish_in_a_transaction_waits_for_a_sweep_and_is_lost_where_that_commits() {
    with_store(async |subject| {
        let store = &subject.store;
        for (commits, standing) in [(true, Standing::Lost), (false, Standing::Held)] {
            store.enqueue(&[job()]).await.unwrap();
            let run = claimed(store, 1).await[0].fence;
            let mut tx = store.begin().await.unwrap();
            let notes = Notes::default();
            let done = store.done_in(&mut tx, run, &notes);
            let done = beside_a_taking_back(&subject, run, commits, done).await;
            assert_eq!(done.unwrap(), standing);
            tx.commit().await.unwrap();
            let state = store.job(run.job).await.unwrap().unwrap().state;
            assert_eq!(state, if commits { State::Ready } else { State::Succeeded });
            store.cancel(&[run.job]).await.unwrap();
        }
    });
}

#[test]
fn a_checkpoint_in_a_transaction_waits_for_a_sweep_and_is_lost_where_that_commits() {
    with_store(async |subject| {
        let store = &subject.store;
        for (commits, standing) in [(true, Standing::Lost), (false, Standing::Held)] {
            store.enqueue(&[job()]).await.unwrap();
            let run = claimed(store, 1).await[0].fence;
            let mut tx = store.begin().await.unwrap();
            let save = save(run, "[1]");
            let saved = store.checkpoint_in(&mut tx, &save);
            let saved = beside_a_taking_back(&subject, run, commits, saved).await;
            assert_eq!(saved.unwrap(), standing);
            tx.commit().await.unwrap();
            let is_saved = store.job(run.job).await.unwrap().unwrap().checkpoint.is_some();
            assert_eq!(is_saved, !commits);
            store.cancel(&[run.job]).await.unwrap();
        }
    });
}

/// A transaction of the application may hold a run's row for longer than a drain has time.
#[test]
fn a_run_whose_row_is_held_while_its_worker_closes_is_given_up() {
    with_store(async |subject| {
        let store = &subject.store;
        let ids: Vec<_> =
            store.enqueue(&[job(), job()]).await.unwrap().into_iter().map(Enqueued::id).collect();
        let worker = store.register(&worker()).await.unwrap();
        let by = Author { worker: Some(worker), build: BuildId::new("b").unwrap() };
        let routes = store.routes(&[QueueName::default()]).await.unwrap();
        let heads: Vec<Head> = routes.into_iter().map(|listed| listed.head(2)).collect();
        let taken = store.claim(Claim { worker, heads: &heads, limit: 2 }).await.unwrap();
        let Claimed::Jobs(jobs) = taken else { panic!("the worker is open") };
        let mut tx = store.begin().await.unwrap();
        let held = jobs.iter().find(|job| job.fence.job == ids[0]).unwrap().fence;
        store.done_in(&mut tx, held, &Notes::default()).await.unwrap();
        let mut heartbeat = store.heartbeat().await.unwrap();
        let given_back = heartbeat.close(worker, &by, &Leaving::default()).await.unwrap();
        assert_eq!(given_back, ids[1..]);
        tx.rollback().await.unwrap();
        let sweep = Sweep { by, grace: Duration::ZERO, limit: 10, draw: 0 };
        assert_eq!(store.sweep(&sweep).await.unwrap().jobs, [(ids[0], State::Ready)]);
        let record = store.job(ids[0]).await.unwrap().unwrap();
        assert_eq!((record.counters.interruptions, record.counters.crashes), (1, 0));
        let events = store.events(ids[0]).await.unwrap();
        assert_eq!(events.iter().map(|it| it.class.as_str()).collect::<Vec<_>>(), ["given_up"]);
    });
}

#[test]
fn runs_whose_keys_are_held_while_their_worker_closes_are_given_up() {
    with_store(async |subject| {
        let store = &subject.store;
        let (ids, worker, tx) = runs_beside_held_keys(&subject).await;
        let by = Author { worker: Some(worker), build: BuildId::new("b").unwrap() };
        let mut heartbeat = store.heartbeat().await.unwrap();
        let leaving = Leaving::default();
        let close = heartbeat.close(worker, &by, &leaving);
        let given_back = tokio::time::timeout(Duration::from_secs(2), close).await;
        assert_eq!(given_back.expect("a drain has no time").unwrap(), ids[..4]);
        tx.rollback().await.unwrap();
        let sweep = Sweep { by, grace: Duration::ZERO, limit: 99, draw: 0 };
        let swept = store.sweep(&sweep).await.unwrap().jobs;
        assert_eq!(swept, ids[4..].iter().map(|id| (*id, State::Ready)).collect::<Vec<_>>());
        for id in &ids[4..] {
            let record = store.job(*id).await.unwrap().unwrap();
            assert_eq!((record.counters.interruptions, record.counters.crashes), (1, 0));
        }
    });
}

#[test]
fn runs_whose_keys_are_held_keep_no_other_from_being_taken_back() {
    with_store(async |subject| {
        let store = &subject.store;
        let (ids, _, tx) = runs_beside_held_keys(&subject).await;
        subject.sql("UPDATE {schema}.worker SET expires_at_us = 1").await;
        let by = Author { worker: None, build: BuildId::new("b").unwrap() };
        let sweep = Sweep { by, grace: Duration::ZERO, limit: 99, draw: 0 };
        let swept = store.sweep(&sweep).await.unwrap();
        let ready = |ids: &[JobId]| ids.iter().map(|id| (*id, State::Ready)).collect::<Vec<_>>();
        assert_eq!((swept.workers.len(), swept.jobs), (1, ready(&ids[..4])));
        assert_eq!(store.sweep(&sweep).await.unwrap().jobs, []);
        tx.rollback().await.unwrap();
        assert_eq!(store.sweep(&sweep).await.unwrap().jobs, ready(&ids[4..]));
        let record = store.job(ids[4]).await.unwrap().unwrap();
        assert_eq!((record.counters.interruptions, record.counters.crashes), (1, 1));
    });
}

#[test]
fn a_key_that_binds_a_run_may_be_enqueued_where_the_run_finishes() {
    with_store(async |subject| {
        let store = &subject.store;
        let keyed = NewJob {
            unique_key: Some(UniqueKey::new("k").unwrap()),
            unique_while: UniqueWhile::Running,
            ..job()
        };
        store.enqueue(std::slice::from_ref(&keyed)).await.unwrap();
        let run = claimed(store, 1).await[0].fence;
        let mut tx = store.begin().await.unwrap();
        // Who looks for a deadlock first is its victim.
        tx.execute("SET LOCAL deadlock_timeout = '10ms'").await.unwrap();
        let holder = backend(&mut tx).await;
        assert_eq!(store.done_in(&mut tx, run, &Notes::default()).await.unwrap(), Standing::Held);
        let finish = async {
            waited_for(&subject, holder).await;
            let next = store.enqueue_in(&mut tx, std::slice::from_ref(&keyed)).await.unwrap();
            tx.commit().await.unwrap();
            next[0].id()
        };
        let beside = store.enqueue(std::slice::from_ref(&keyed));
        let both = async { tokio::join!(beside, finish) };
        let (beside, next) = tokio::time::timeout(Duration::from_secs(8), both).await.unwrap();
        assert_eq!(beside.unwrap(), [Enqueued::AlreadyThere(next)]);
    });
}

/// An enqueue of unique jobs locks those that are there in order of key: what waits for a row holds none that
/// the enqueue may wait for.
#[test]
fn a_cancel_of_several_jobs_locks_them_in_order_of_key() {
    with_store(async |subject| {
        let keyed = |key: &str| NewJob { unique_key: Some(UniqueKey::new(key).unwrap()), ..job() };
        let last = subject.store.enqueue(&[keyed("b")]).await.unwrap()[0].id();
        let first = subject.store.enqueue(&[keyed("a")]).await.unwrap()[0].id();
        assert!(last < first);
        let schema = quoted(&subject.schema);
        let lock = |id: jobs_core::JobId| {
            AssertSqlSafe(format!("SELECT FROM {schema}.job WHERE id = {id} FOR UPDATE NOWAIT"))
        };
        let mut shell = subject.outside.begin().await.unwrap();
        shell.execute(lock(first)).await.unwrap();
        let holder = backend(&mut shell).await;
        let beside = async {
            waited_for(&subject, holder).await;
            shell.execute(lock(last)).await.expect("what waits for the first holds no other");
            shell.rollback().await.unwrap();
        };
        let ids = [last, first];
        let both = async { tokio::join!(subject.store.cancel(&ids), beside) };
        let (cancelled, ()) = tokio::time::timeout(Duration::from_secs(8), both).await.unwrap();
        assert_eq!(cancelled.unwrap(), [Cancelled::Cancelled; 2]);
    });
}

/// The number of the server's process that a connection speaks to.
async fn backend(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await.unwrap()
}

/// Returns once somebody waits for what that process holds.
async fn waited_for(subject: &TestStore, holder: i32) {
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
    let waiting = async || {
        let waiting = sqlx::query_scalar::<_, i64>(waits).bind(holder);
        waiting.fetch_one(&subject.outside).await.unwrap()
    };
    while waiting().await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What somebody does to a run's row in a transaction that stays open until a call waits for it.
async fn beside_a_taking_back<T>(
    subject: &TestStore,
    run: Fence,
    commits: bool,
    call: impl Future<Output = T>,
) -> T {
    let mut shell = subject.outside.begin().await.unwrap();
    let holder = backend(&mut shell).await;
    let back = format!(
        "UPDATE {}.job SET state = 'ready', claim_number = claim_number + 1, worker_id = NULL \
         WHERE id = {}",
        quoted(&subject.schema),
        run.job.0
    );
    shell.execute(AssertSqlSafe(back)).await.unwrap();
    let end = async {
        waited_for(subject, holder).await;
        if commits { shell.commit().await } else { shell.rollback().await }.unwrap();
    };
    let both = async { tokio::join!(call, end) };
    tokio::time::timeout(Duration::from_secs(8), both).await.expect("the call waits for the row").0
}

/// So many keys an open transaction holds.
const HELD: u32 = 40;

/// The runs of a worker: two without a key, two whose keys nobody holds, and then those that can't wait again
/// before a transaction has ended that has enqueued their keys.
async fn runs_beside_held_keys(
    subject: &TestStore,
) -> (Vec<JobId>, WorkerId, sqlx::Transaction<'static, sqlx::Postgres>) {
    let store = &subject.store;
    let keyed = |key: u32| {
        let key = UniqueKey::new(key.to_string()).unwrap();
        NewJob { unique_key: Some(key), ..job() }
    };
    let jobs: Vec<_> = [job(), job()].into_iter().chain((0..HELD + 2).map(keyed)).collect();
    let ids = store.enqueue(&jobs).await.unwrap().into_iter().map(Enqueued::id).collect();
    let worker = store.register(&worker()).await.unwrap();
    let routes = store.routes(&[QueueName::default()]).await.unwrap();
    let heads: Vec<Head> = routes.into_iter().map(|listed| listed.head(99)).collect();
    let taken = store.claim(Claim { worker, heads: &heads, limit: 99 }).await.unwrap();
    assert!(matches!(taken, Claimed::Jobs(runs) if runs.len() == jobs.len()));
    let mut tx = store.begin().await.unwrap();
    store.enqueue_in(&mut tx, &jobs[4..]).await.unwrap();
    (ids, worker, tx)
}
