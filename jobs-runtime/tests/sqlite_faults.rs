//! The SQLite store in trouble: disks that fill, calls that are dropped, transactions that stay open,
//! readers that never leave, rows that no build of ours wrote.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jobs_core::store::{
    Author, Claim, Claimed, Enqueued, Filter, Head, Inspect, NewWorker, Phase, Retention, Settled,
    Store, Sweep, Transactions,
};
use jobs_core::{
    Budget, BuildId, ClaimedJob, Clock, Due, Ending, Fence, Kind, Ladder, Lease, ManualClock,
    MinReader, NewJob, Priority, QueueName, Random, Route, Run, SeededRandom, State,
    StoreErrorKind, Timestamp, Version, WorkerId, WorkerName, below, transition,
};
use jobs_runtime::store::sqlite::{SqliteOptions, SqliteStore};
use sqlite_scene::{Scene, options, runtime, shell};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions};

fn job(payload: &str) -> NewJob {
    NewJob {
        queue: QueueName::default(),
        kind: Kind::new("mail.send").expect("a kind"),
        version: Version::new(1, 0, 0),
        min_reader: MinReader { major: 1, minor: 0 },
        payload: payload.to_owned(),
        headers: None,
        priority: Priority::default(),
        due: Due::Unchanged,
        unique_key: None,
        budget: Budget::default(),
        build: None,
    }
}

async fn register(store: &SqliteStore) -> WorkerId {
    let worker = NewWorker {
        name: WorkerName::new("w").expect("a name"),
        build: BuildId::new("shop 1").expect("a build"),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    store.register(&worker).await.expect("a lease")
}

async fn claim(store: &SqliteStore, worker: WorkerId) -> Vec<ClaimedJob> {
    let routes = store.routes(&[QueueName::default()]).await.expect("routes");
    let head = |(queue, route)| Head { queue, route, after: None, limit: 1000 };
    let heads: Vec<_> = routes.into_iter().map(head).collect();
    match store.claim(Claim { worker, heads: &heads, limit: 1000 }).await.expect("a claim") {
        Claimed::Jobs(jobs) => jobs,
        Claimed::WorkerEnded => panic!("the worker lives"),
    }
}

async fn finish(store: &SqliteStore, worker: WorkerId, jobs: &[ClaimedJob]) -> Vec<Settled> {
    let done = |job| transition(&Run::from(job), &Ending::Done, &Ladder::default(), 0);
    let settlements: Vec<_> = jobs.iter().map(done).collect();
    let by = Author { worker: Some(worker), build: BuildId::new("shop 1").expect("a build") };
    store.settle(&by, &settlements).await.expect("an answer")
}

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
                    heartbeat.renew(worker, Phase::Working).await
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
fn a_row_that_is_no_text_stops_no_other() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let rows = "
            INSERT INTO jobs_job (kind, version, payload) VALUES ('mail.send', '1.0.0', '{}');
            INSERT INTO jobs_job (kind, version, payload, due_at_us)
                VALUES ('mail.send', '1.0.0', CAST(x'7b22ff227d' AS TEXT), 0);
            INSERT INTO jobs_job (kind, version, payload, priority, due_at_us)
                VALUES ('mail.send', '1.0.0', '{}', 9223372036854775807, -9223372036854775808);
            INSERT INTO jobs_job (kind, version, payload, max_failures, max_interruptions, events)
                VALUES ('mail.send', '1.0.0', '{}', -5, -5, 9223372036854775807);
            INSERT INTO jobs_job (kind, version, payload, refused_reason, refused_build, headers)
                VALUES ('mail.send', '1.0.0', '{}', CAST(x'ff' AS TEXT), CAST(x'fe' AS TEXT), '');
            INSERT INTO jobs_job (kind, version, payload, checkpoints)
                VALUES ('mail.send', '1.0.0', '{}', 9223372036854775807);
            INSERT INTO jobs_job (kind, version, payload, unique_key, state)
                VALUES ('mail.send', '1.0.0', '{}', CAST(x'ff' AS TEXT), 'running');
        ";
        sqlx::raw_sql(rows).execute(&mut scene.shell().await).await.expect("plain inserts");
        let jobs = claim(&scene.store, worker).await;
        assert_eq!(jobs.len(), 6);
        let bad = jobs.iter().find(|job| job.due_at.as_micros() == 0).expect("the payload's row");
        assert!(serde_json::from_str::<serde_json::Value>(&bad.payload).is_err());
        let settled = finish(&scene.store, worker, &jobs).await;
        assert_eq!(settled, vec![Settled::Applied(State::Succeeded); 6]);
        let all = scene.store.jobs(&Filter::default(), 100).await.expect("a listing");
        assert_eq!(all.len(), 7);
        let by = Author { worker: Some(worker), build: BuildId::new("shop 1").expect("a build") };
        let sweep = jobs_core::store::Sweep { by, grace: Lease::LONGEST, limit: 10, draw: 1 };
        assert_eq!(scene.store.sweep(&sweep).await.expect("a sweep").jobs.len(), 1);
    });
}

#[test]
fn values_of_a_wrong_type_do_not_get_in() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let mut shell = scene.shell().await;
        for row in [
            "INSERT INTO jobs_job (kind, version, payload) VALUES ('a', '1.0.0', x'00ff')",
            "INSERT INTO jobs_job (kind, version, payload) VALUES (NULL, '1.0.0', '{}')",
            "INSERT INTO jobs_job (kind, version, payload, due_at_us) VALUES ('a', '1', '{}', 'x')",
            "INSERT INTO jobs_job (kind, version, payload, state) VALUES ('a', '1', '{}', 'x')",
        ] {
            sqlx::query(row).execute(&mut shell).await.expect_err(row);
        }
    });
}

#[test]
fn a_route_of_the_table_is_the_route_of_the_library() {
    let parts = [
        "", ".", "..", "1", "1.", ".1", "1.2", "1.2.3", "1..2", "a\0b", "\0", "1.\0.2", "é.ü.ß",
        "1.2\0.3", "🦀", " 1.2.3 ", "'.\".;",
    ];
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let mut shell = scene.shell().await;
        for kind in ["", "a@b", "mail.send", "x\0y", "é"] {
            for version in parts {
                for reader in parts.map(Some).into_iter().chain([None]) {
                    let insert = "INSERT INTO jobs_job (kind, version, min_reader, payload)
                        VALUES (?1, ?2, ?3, '') RETURNING id";
                    let insert = sqlx::query_scalar(insert).bind(kind).bind(version).bind(reader);
                    let id: i64 = insert.fetch_one(&mut shell).await.expect("a row");
                    let route = sqlx::query_scalar("SELECT route FROM jobs_routed WHERE id = ?1");
                    let route: String =
                        route.bind(id).fetch_one(&mut shell).await.expect("a route");
                    let derived = Route::derive(kind, version, reader);
                    assert_eq!(route, derived.as_str(), "{kind:?} {version:?} {reader:?}");
                }
            }
        }
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
        let fence = Fence { job: jobs_core::JobId(1), claim: jobs_core::ClaimNumber(1) };
        let mut tx = SqliteStore::begin(&scene.store).await.expect("a transaction");
        scene.store.done_in(&mut tx, fence).await.expect("an answer");
        tx.commit().await.expect("a commit");
        assert_eq!(scene.store.jobs(&Filter::default(), 1).await.expect("a listing"), []);
        let _keep = Arc::clone(&scene.clock);
    });
}

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

fn sweep_of(worker: WorkerId) -> Sweep {
    let by = Author { worker: Some(worker), build: BuildId::new("shop 1").expect("a build") };
    Sweep { by, grace: Duration::ZERO, limit: 10, draw: 1 }
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
            let swept = store.sweep(&sweep_of(worker)).await.expect("a sweep");
            assert_eq!(swept.workers, [], "nobody is dead because a clock was turned");
        }
        scene.clock.advance(Duration::from_secs(29));
        assert_eq!(store.sweep(&sweep_of(worker)).await.expect("a sweep").workers, []);
        scene.clock.advance(Duration::from_secs(1));
        assert_eq!(store.sweep(&sweep_of(worker)).await.expect("a sweep").workers, [worker]);
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
        let sweep = sweep_of(worker);
        assert_eq!(far.sweep(&sweep).await.expect("a sweep").workers, [], "seen once");
        scene.clock.advance(Duration::from_secs(25));
        heartbeat.renew(worker, Phase::Working).await.expect("a renewal");
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
        assert_eq!(far.sweep(&sweep_of(worker)).await.expect("a sweep").workers, []);
        let another = register(&far).await;
        let tx = SqliteStore::begin(&far).await.expect("a transaction");
        tx.rollback().await.expect("its end");
        assert_eq!(scene.store.sweep(&sweep_of(another)).await.expect("a sweep").workers, []);
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
