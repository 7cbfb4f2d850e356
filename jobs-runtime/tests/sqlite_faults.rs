//! The SQLite store in trouble: disks that fill, calls that are dropped, readers that never leave.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jobs_core::store::{Enqueued, Filter, Inspect, Phase, Retention, Store};
use jobs_core::{Clock, ManualClock, Random, SeededRandom, StoreErrorKind, Timestamp, below};
use jobs_runtime::store::sqlite::{SqliteOptions, SqliteStore};
use sqlite_scene::{Scene, claim, finish, job, options, register, runtime, shell};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

#[test]
fn a_full_disk_refuses_a_write_whole_and_the_next_one_works() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let limited =
            SqliteConnectOptions::new().filename(scene.database()).pragma("max_page_count", "200");
        let pool = SqlitePoolOptions::new().connect_lazy_with(limited);
        let store = SqliteStore::from_pool(&pool, options(&scene.clock, 2)).await.expect("a store");
        let worker = register(&store).await;
        let mut stored = 0;
        let error = loop {
            match store.enqueue(&vec![job(&"x".repeat(2000)); 10]).await {
                Ok(added) => stored += added.len(),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
        assert!(error.is_transient());

        let all = store.jobs(&Filter::default(), u32::MAX).await.expect("a listing");
        assert_eq!(all.len(), stored, "a refused call leaves nothing");
        let claimed = claim(&store, worker).await;
        finish(&store, worker, &claimed).await;
        let at_once = Retention { succeeded: Duration::ZERO, ..Retention::default() };
        scene.clock.advance(Duration::from_secs(1));
        assert!(store.prune(at_once, 1000).await.expect("a prune") > 0);
        store.enqueue(&vec![job(&"x".repeat(2000)); 10]).await.expect("there is room again");
    });
}

#[test]
fn a_write_beside_one_that_does_not_fit_is_kept() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let limited =
            SqliteConnectOptions::new().filename(scene.database()).pragma("max_page_count", "100");
        let pool = SqlitePoolOptions::new().connect_lazy_with(limited);
        let store = SqliteStore::from_pool(&pool, options(&scene.clock, 2)).await.expect("a store");
        for _ in 0..20 {
            let large = [job(&"x".repeat(1_000_000))];
            let small = [job("{}")];
            // Polled together, so that they share a transaction.
            let (before, too_large, after) =
                tokio::join!(store.enqueue(&small), store.enqueue(&large), store.enqueue(&small));
            assert_eq!(too_large.expect_err("no room").kind(), StoreErrorKind::Full);
            before.expect("a small one fits");
            after.expect("a small one fits");
        }
        assert_eq!(store.jobs(&Filter::default(), 1000).await.expect("a listing").len(), 40);
    });
}

/// Polls a future some times, then drops it; whether it had ended.
fn drop_after<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return Some(answer);
        }
        // Lets the other threads get on, so that drops fall everywhere.
        std::thread::yield_now();
    }
    None
}

#[test]
fn dropped_calls_leave_no_connection_inside_a_transaction() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let scene = runtime.block_on(Scene::fresh());
    let random = SeededRandom::new(7);
    let worker = runtime.block_on(register(&scene.store));
    let mut acknowledged = Vec::new();
    for _ in 0..500 {
        let polls = below(random.draw(), 60);
        match below(random.draw(), 4) {
            0 => {
                if let Some(Ok(added)) = drop_after(scene.store.enqueue(&[job("{}")]), polls) {
                    acknowledged.extend(added.into_iter().map(Enqueued::id));
                }
            }
            1 => drop(drop_after(SqliteStore::begin(&scene.store), polls)),
            2 => {
                let renewal = async {
                    let mut heartbeat = scene.store.heartbeat().await?;
                    heartbeat.renew(worker, Phase::Working, std::time::Duration::from_secs(5)).await
                };
                drop(drop_after(renewal, polls));
            }
            _ => drop(drop_after(claim(&scene.store, worker), polls)),
        }
    }
    runtime.block_on(async {
        let mut shell = scene.shell().await;
        for id in acknowledged {
            let row = sqlx::query("SELECT 1 FROM jobs_job WHERE id = ?1").bind(id.0);
            row.fetch_one(&mut shell).await.expect("what was acknowledged is visible to others");
        }
        // A connection left inside a transaction would hold this up for ever.
        sqlx::query("BEGIN IMMEDIATE").execute(&mut shell).await.expect("the write lock is free");
        sqlx::query("ROLLBACK").execute(&mut shell).await.expect("it is given back");
        for _ in 0..40 {
            let tx = SqliteStore::begin(&scene.store).await.expect("every connection is usable");
            tx.rollback().await.expect("and in a transaction of its own");
        }
        scene.store.enqueue(&[job("{}")]).await.expect("the writer works");
    });
}

#[test]
fn a_caller_that_stands_still_half_way_holds_up_no_other() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let scene = runtime.block_on(Scene::fresh());
    let one = [job("{}")];
    runtime.block_on(scene.store.enqueue(&one)).expect("the writer has nothing to do after it");
    // A single job is stored by its caller, on the writer's connection. One that the driver answers within
    // the first look has not stood still: then the next one may.
    let mut context = Context::from_waker(Waker::noop());
    let mut enqueued = 1;
    let standing = loop {
        enqueued += 1;
        let mut call = Box::pin(scene.store.enqueue(&one));
        match call.as_mut().poll(&mut context) {
            Poll::Pending => break call,
            Poll::Ready(answer) => drop(answer.expect("it was stored")),
        }
    };
    runtime.block_on(async {
        scene.store.enqueue(&[job("{}"), job("{}")]).await.expect("the writer works on");
        standing.await.expect("and the caller goes on where it stood");
        scene.store.enqueue(&one).await.expect("so does the next one");
        let all = scene.store.jobs(&Filter::default(), 100).await.expect("a listing");
        assert_eq!(all.len(), enqueued + 3);
    });
}

#[test]
fn the_log_is_cut_as_soon_as_a_reader_that_pinned_it_has_left() {
    const LIMIT: u64 = 4 * 1024 * 1024;
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let bounded = options(&scene.clock, 2).wal_warning_bytes(LIMIT);
        let path = scene.database();
        let store = SqliteStore::open(&path.to_string_lossy(), bounded).await.expect("a store");
        let size = || {
            let log = format!("{}-wal", path.display());
            std::fs::metadata(log).map_or(0, |file| file.len())
        };
        let write = async || {
            scene.clock.advance(Duration::from_secs(2));
            store.enqueue(&vec![job(&"x".repeat(1000)); 1000]).await.expect("an enqueue");
        };
        let mut reader = shell(&path).await;
        sqlx::query("BEGIN").execute(&mut reader).await.expect("a transaction");
        let look = sqlx::query("SELECT count(*) FROM jobs_job");
        look.fetch_one(&mut reader).await.expect("a snapshot");
        while size() <= 2 * LIMIT {
            write().await;
        }
        sqlx::query("ROLLBACK").execute(&mut reader).await.expect("the reader leaves");
        write().await;
        write().await;
        assert!(size() <= LIMIT, "the log has {} bytes", size());
    });
}

#[test]
fn nothing_is_acknowledged_that_goes_to_a_file_which_is_no_longer_there() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let (path, away) = (scene.database(), scene.database().with_extension("away"));
        let worker = register(&scene.store).await;
        let mut tx = SqliteStore::begin(&scene.store).await.expect("a transaction");
        std::fs::rename(&path, &away).expect("it is moved");
        for is_replaced in [false, true] {
            if is_replaced {
                std::fs::write(&path, "").expect("another file");
            }
            let joined = scene.store.enqueue_in(&mut tx, &[job("{}")]).await.map(drop);
            let two = scene.store.enqueue(&[job("{}"), job("{}")]).await.map(drop);
            let one = scene.store.enqueue(&[job("{}")]).await.map(drop);
            let begun = SqliteStore::begin(&scene.store).await.map(drop);
            for refused in [joined, one, two, begun] {
                let error = refused.expect_err("it would be lost");
                assert_eq!(error.kind(), StoreErrorKind::Configuration, "{error}");
                assert!(error.to_string().contains("removed or replaced"), "{error}");
            }
        }
        tx.rollback().await.expect("the transaction ends");
        std::fs::rename(&away, &path).expect("it is back");
        scene.store.enqueue(&[job("{}")]).await.expect("and so is the store");
        assert_eq!(claim(&scene.store, worker).await.len(), 1);
    });
}

/// A clock that panics when it is told to.
#[derive(Debug)]
struct Flawed {
    clock: Arc<ManualClock>,
    panics: AtomicBool,
}

impl Clock for Flawed {
    fn now(&self) -> Timestamp {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "this clock is broken");
        self.clock.now()
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }
}

#[test]
fn a_panic_inside_a_write_fails_that_write_alone() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let clock = Flawed { clock: scene.clock.clone(), panics: AtomicBool::new(false) };
        let clock = Arc::new(clock);
        let options = SqliteOptions::new(clock.clone(), Arc::new(SeededRandom::new(3)));
        let path = scene.database().to_string_lossy().into_owned();
        let store = SqliteStore::open(&path, options).await.expect("a store");
        let one = [job("{}")];
        for _ in 0..3 {
            clock.panics.store(true, Ordering::SeqCst);
            // Polled together, so that they share a transaction.
            let (first, second) = tokio::join!(store.enqueue(&one), store.enqueue(&one));
            let error = first.expect_err("it met the panic");
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains("this clock is broken"), "{error}");
            second.expect("the others go on");
        }
        assert_eq!(store.jobs(&Filter::default(), 100).await.expect("a listing").len(), 3);
    });
}

/// A disk that the log has filled fails each write, and with it the writer's connection.
#[test]
fn a_connection_that_is_made_anew_after_a_failure_gives_back_the_room_of_the_log() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let clock = Flawed { clock: scene.clock.clone(), panics: AtomicBool::new(false) };
        let clock = Arc::new(clock);
        let options = SqliteOptions::new(clock.clone(), Arc::new(SeededRandom::new(3)));
        let path = scene.database();
        let store = SqliteStore::open(&path.to_string_lossy(), options).await.expect("a store");
        store.enqueue(&vec![job(&"x".repeat(1000)); 3000]).await.expect("an enqueue");
        let log = format!("{}-wal", path.display());
        let size = || std::fs::metadata(&log).map_or(0, |file| file.len());
        assert!(size() > 3_000_000, "the log has {} bytes", size());
        clock.panics.store(true, Ordering::SeqCst);
        store.enqueue(&[job("{}"), job("{}")]).await.expect_err("a failure");
        store.enqueue(&[job("{}"), job("{}")]).await.expect("on a new connection");
        assert!(size() < 1_000_000, "the log has {} bytes", size());
    });
}
