//! Transactions of users in the SQLite store.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use jobs_core::store::{Enqueued, Filter, Inspect, Operate, Retention, Store, Transactions};
use jobs_core::{ClaimNumber, Fence, JobId, ManualClock, Notes, StoreErrorKind};
use jobs_runtime::store::sqlite::SqliteStore;
use sqlite_scene::{Scene, job, options, runtime, shell};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions};

#[test]
fn a_write_that_waits_for_its_own_process_says_so() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let tx = SqliteStore::begin(&scene.store).await.expect("a transaction");
        let error = scene.store.enqueue(&[job("{}")]).await.expect_err("it waits for itself");
        assert_eq!(error.kind(), StoreErrorKind::Busy);
        assert!(error.to_string().contains("this process itself"), "{error}");
        tx.commit().await.expect("a commit");
        scene.store.enqueue(&[job("{}")]).await.expect("the way is free");
    });
}

/// Who ends one transaction and begins the next at once is the quickest every time that the lock is free.
#[test]
fn transactions_that_follow_one_another_let_the_writes_of_another_process_in() {
    const LOOPS: u64 = 4;
    const WRITES: usize = 30;
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let begun = Arc::new(AtomicUsize::new(0));
        let mut loops = tokio::task::JoinSet::new();
        for n in 2..2 + LOOPS {
            let store = scene.neighbour(n).await;
            let begun = begun.clone();
            loops.spawn(async move {
                loop {
                    let mut tx = SqliteStore::begin(&store).await.expect("a transaction");
                    begun.fetch_add(1, Ordering::Relaxed);
                    store.enqueue_in(&mut tx, &[job("{}")]).await.expect("an enqueue");
                    tx.commit().await.expect("a commit");
                }
            });
        }
        for _ in 0..WRITES {
            scene.store.enqueue(&[job("{}"), job("{}")]).await.expect("an enqueue");
        }
        loops.abort_all();
        let begun = begun.load(Ordering::Relaxed);
        assert!(begun <= 10 * WRITES, "{begun} transactions beside {WRITES} writes");
    });
}

/// A prune has work without end, and between two of its transactions the file is free for microseconds.
#[test]
fn a_prune_lets_transactions_of_applications_in_between_its_own() {
    const OLD: usize = 20_000;
    const BATCH: u32 = 5;
    let cancelled =
        Retention { succeeded: Duration::MAX, cancelled: Duration::ZERO, dead: Duration::MAX };
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let added = scene.store.enqueue(&vec![job("{}"); OLD]).await.expect("an enqueue");
        let ids: Vec<JobId> = added.into_iter().map(Enqueued::id).collect();
        scene.store.cancel(&ids).await.expect("their end");
        scene.clock.advance(Duration::from_secs(1));
        let neighbour = scene.neighbour(2).await;
        let calls = OLD / BATCH as usize;
        let prune = join_all((0..calls).map(|_| scene.store.prune(cancelled, BATCH)));
        let begin = async {
            for begun in 0.. {
                let mut tx = SqliteStore::begin(&neighbour).await.expect("a transaction");
                let left: i64 = sqlx::query_scalar("SELECT count(*) FROM jobs_job")
                    .fetch_one(&mut *tx)
                    .await
                    .expect("a count");
                tx.commit().await.expect("a commit");
                if left == 0 {
                    return begun;
                }
            }
            unreachable!("there is an end")
        };
        let (pruned, begun) = join(prune, begin).await;
        assert!(pruned.into_iter().all(|pruned| pruned.expect("a prune") == BATCH));
        // At most 256 calls share a transaction, and each of those is followed by one of the application's.
        let least = calls / 256 / 2;
        assert!(begun >= least, "{begun} began meanwhile, not {least} or more");
    });
}

#[test]
fn a_transaction_of_a_pool_is_joined_and_one_of_another_file_is_not() {
    runtime().block_on(async {
        let (scene, other) = (Scene::fresh().await, Scene::fresh().await);
        let options_of = SqliteConnectOptions::new().filename(scene.database());
        let pool = SqlitePoolOptions::new().connect_with(options_of).await.expect("a pool");
        let store = SqliteStore::from_pool(&pool, options(&scene.clock, 3)).await.expect("a store");
        assert_eq!(store.id(), scene.store.id());

        let mut tx = pool.begin().await.expect("a transaction");
        let create = sqlx::query("CREATE TABLE mine (text TEXT)");
        create.execute(&mut *tx).await.expect("a table of the user");
        let added = store.enqueue_in(&mut tx, &[job("{}")]).await.expect("an enqueue");
        assert_eq!(store.job(added[0].id()).await.expect("a look"), None, "not committed yet");
        tx.commit().await.expect("a commit");
        assert!(store.job(added[0].id()).await.expect("a look").is_some());

        let mut tx = pool.begin().await.expect("a transaction");
        let error = other.store.enqueue_in(&mut tx, &[job("{}")]).await.expect_err("another file");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert!(error.to_string().contains("another database"), "{error}");
        drop(tx);

        let mut plain = pool.acquire().await.expect("a connection");
        let error = store.enqueue_in(&mut plain, &[job("{}")]).await.expect_err("no transaction");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *plain).await.expect("a plain transaction");
        store.enqueue_in(&mut plain, &[job("{}")]).await.expect("it counts as one");
        sqlx::query("ROLLBACK").execute(&mut *plain).await.expect("its end");
        let all = store.jobs(&Filter::default(), 10).await.expect("a listing");
        assert_eq!(all.len(), 1);
    });
}

#[test]
fn a_connection_in_trouble_does_not_pass_for_one_in_a_transaction() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let options_of = SqliteConnectOptions::new().filename(scene.database());
        let pool = SqlitePoolOptions::new().connect_with(options_of).await.expect("a pool");
        // Interrupts the one step of whatever runs then: sooner or later it is that of the `BEGIN`.
        for nth in 0..100 {
            let mut plain = pool.acquire().await.expect("a connection");
            let mut steps = 0;
            let goes_on = move || {
                steps += 1;
                steps != nth
            };
            plain.lock_handle().await.expect("a handle").set_progress_handler(1, goes_on);
            let asked = scene.store.enqueue_in(&mut plain, &[job("{}")]).await;
            asked.expect_err("the connection is in no transaction");
            plain.lock_handle().await.expect("a handle").remove_progress_handler();
        }
        let all = scene.store.jobs(&Filter::default(), 10).await.expect("a listing");
        assert_eq!(all, [], "nothing was written");
    });
}

#[test]
fn a_commit_of_a_user_wakes_those_who_wait() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let mut wake = scene.store.wake();
        let mut tx = SqliteStore::begin(&scene.store).await.expect("a transaction");
        scene.store.enqueue_in(&mut tx, &[job("{}")]).await.expect("an enqueue");
        tokio::join!(wake.changed(), async { tx.commit().await.expect("a commit") });
        let far = scene.neighbour(2).await;
        let mut wake = scene.store.wake();
        tokio::join!(wake.changed(), async {
            far.enqueue(&[job("{}")]).await.expect("an enqueue of another process");
        });
    });
}

#[test]
fn a_transaction_that_is_dropped_frees_the_lock() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        for _ in 0..50 {
            let mut tx = Transactions::begin(&scene.store).await.expect("a transaction");
            tx.enqueue(&[job("{}")]).await.expect("an enqueue");
            drop(tx);
        }
        let fence = Fence { job: JobId(1), claim: ClaimNumber(1) };
        let mut tx = SqliteStore::begin(&scene.store).await.expect("a transaction");
        scene.store.done_in(&mut tx, fence, &Notes::default()).await.expect("an answer");
        tx.commit().await.expect("a commit");
        assert_eq!(scene.store.jobs(&Filter::default(), 1).await.expect("a listing"), []);
    });
}

#[test]
fn a_pool_that_was_opened_otherwise_makes_no_other_store() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let options_of = SqliteConnectOptions::new()
            .filename(sqlite_scene::path(&folder))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Delete)
            .locking_mode(SqliteLockingMode::Exclusive);
        let pool = SqlitePoolOptions::new().connect_lazy_with(options_of);
        let clock = Arc::new(ManualClock::new(sqlite_scene::START));
        let store = SqliteStore::from_pool(&pool, options(&clock, 3)).await.expect("a store");
        store.enqueue(&[job("\0")]).await.expect("an enqueue");
        let jobs = store.jobs(&Filter::default(), 10).await.expect("a listing");
        assert_eq!(jobs[0].payload, "\0");
        let mut shell = shell(&folder.path().join("jobs.db")).await;
        let mode = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut shell);
        let mode: String = mode.await.expect("a mode");
        assert_eq!(mode, "wal");
    });
}
