//! Who is dead, in the SQLite store: nobody for a clock, and nobody too early.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jobs_core::store::{Phase, Renewed, Store};
use jobs_core::{Clock, Lease, ManualClock, SeededRandom, StoreErrorKind, Timestamp};
use jobs_runtime::store::sqlite::{SqliteOptions, SqliteStore};
use sqlite_scene::{Scene, register, runtime, sweep};

/// A clock whose hands a person can turn while time goes on.
#[derive(Debug)]
struct Turned {
    clock: Arc<ManualClock>,
    by_us: AtomicI64,
}

impl Clock for Turned {
    fn now(&self) -> Timestamp {
        let turned = self.by_us.load(Ordering::SeqCst);
        Timestamp::from_micros(self.clock.now().as_micros() + turned)
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }
}

#[test]
fn a_clock_that_is_turned_neither_frees_nor_freezes_a_lease() {
    const HOUR_US: i64 = 3_600_000_000;
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let turned = Arc::new(Turned { clock: scene.clock.clone(), by_us: AtomicI64::new(0) });
        let random = Arc::new(SeededRandom::new(9));
        let path = scene.database().to_string_lossy().into_owned();
        let of_turned = SqliteOptions::new(turned.clone(), random);
        let store = SqliteStore::open(&path, of_turned).await.expect("a store");
        let worker = register(&scene.store).await;
        for by_us in [HOUR_US, -HOUR_US] {
            turned.by_us.store(by_us, Ordering::SeqCst);
            let swept = store.sweep(&sweep(worker)).await.expect("a sweep");
            assert_eq!(swept.workers, [], "nobody is dead because a clock was turned");
        }
        scene.clock.advance(Duration::from_secs(29));
        assert_eq!(store.sweep(&sweep(worker)).await.expect("a sweep").workers, []);
        scene.clock.advance(Duration::from_secs(1));
        assert_eq!(store.sweep(&sweep(worker)).await.expect("a sweep").workers, [worker]);
    });
}

#[test]
fn a_living_worker_is_taken_back_only_by_one_who_saw_it_silent_for_a_lease() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let mut heartbeat = scene.store.heartbeat().await.expect("a heartbeat");
        scene.clock.advance(Duration::from_mins(10));
        let far = scene.neighbour(2).await;
        let sweep = sweep(worker);
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [], "seen once");
        scene.clock.advance(Duration::from_secs(25));
        heartbeat.renew(worker, Phase::Working, Lease::LONGEST).await.expect("a renewal");
        scene.clock.advance(Duration::from_secs(25));
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [], "it was renewed");
        scene.clock.advance(Duration::from_secs(30));
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [worker]);
    });
}

#[test]
fn a_cleared_folder_of_lock_files_frees_no_living_worker() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let far = scene.neighbour(2).await;
        let folder = scene.folder.path().join("jobs.db-workers");
        std::fs::remove_dir_all(&folder).expect("someone cleans up");
        assert_eq!(far.sweep(&sweep(worker)).await.expect("a sweep").workers, []);
        let another = register(&far).await;
        let tx = SqliteStore::begin(&far).await.expect("a transaction");
        tx.rollback().await.expect("its end");
        assert_eq!(scene.store.sweep(&sweep(another)).await.expect("a sweep").workers, []);
    });
}

#[test]
fn an_undecided_renewal_is_seen_by_every_observer() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let mut heartbeat = scene.store.heartbeat().await.expect("a heartbeat");
        let far = scene.neighbour(2).await;
        let sweep = sweep(worker);
        let mut shell = scene.shell().await;
        let mut renew = async || {
            // Someone holds the lock whenever the worker asks, and never when the observer does.
            sqlx::query("BEGIN IMMEDIATE").execute(&mut shell).await.expect("the lock");
            let renewed = heartbeat.renew(worker, Phase::Working, Duration::from_millis(5)).await;
            sqlx::query("ROLLBACK").execute(&mut shell).await.expect("the lock is free");
            renewed
        };
        for _ in 0..8 {
            assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, []);
            scene.clock.advance(Duration::from_secs(10));
            assert_eq!(renew().await.expect("an answer"), Renewed::Undecided);
        }
        let folder = scene.folder.path().join("jobs.db-workers");
        std::fs::remove_dir_all(&folder).expect("someone cleans up");
        let error = renew().await.expect_err("nobody could see it, so it does not count");
        assert_eq!(error.kind(), StoreErrorKind::Busy);
    });
}

#[test]
fn an_observer_that_slept_starts_counting_anew() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let far = scene.neighbour(2).await;
        let sweep = sweep(worker);
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [], "seen once");
        scene.clock.advance(Duration::from_mins(10));
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [], "it slept");
        scene.clock.advance(Duration::from_secs(29));
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, []);
        scene.clock.advance(Duration::from_secs(1));
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [worker]);
    });
}

#[test]
fn an_observer_that_looks_rarely_still_takes_back() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let far = scene.neighbour(2).await;
        let sweep = sweep(worker);
        for _ in 0..2 {
            assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, []);
            assert_eq!(far.sweep(&sweep).await.expect("at once again").workers, []);
            scene.clock.advance(Duration::from_mins(10));
        }
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [worker]);
    });
}

#[test]
fn the_lock_file_of_a_worker_that_is_open_no_more_goes_with_a_sweep() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let far = scene.neighbour(2).await;
        let here = register(&far).await;
        let (taken_back, deleted) = (register(&scene.store).await, register(&scene.store).await);
        let left = || {
            let folder = scene.folder.path().join("jobs.db-workers");
            std::fs::read_dir(folder).expect("a folder").count()
        };
        assert_eq!(left(), 6, "one each and the three files of turns");
        let mut shell = scene.shell().await;
        let gone = sqlx::query("DELETE FROM jobs_worker WHERE id = ?1").bind(deleted.0);
        gone.execute(&mut shell).await.expect("a person may do that");
        let mut heartbeat = far.heartbeat().await.expect("a heartbeat");
        far.sweep(&sweep(here)).await.expect("a sweep");
        scene.clock.advance(Duration::from_secs(30));
        heartbeat.renew(here, Phase::Working, Lease::LONGEST).await.expect("a renewal");
        assert_eq!(far.sweep(&sweep(here)).await.expect("a sweep").workers, [taken_back]);
        assert_eq!(left(), 6, "others hold them");
        scene.store.sweep(&sweep(here)).await.expect("a sweep");
        assert_eq!(left(), 4, "whoever held them has let go");
    });
}
