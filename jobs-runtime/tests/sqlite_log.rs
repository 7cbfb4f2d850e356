//! What the SQLite store tells operators without being asked.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::time::Duration;

use jobs_core::store::{Operate, Store};
use jobs_runtime::store::sqlite::SqliteStore;
use sqlite_scene::{Scene, options, runtime, shell};

const MINUTE: Duration = Duration::from_mins(1);

/// Two writes, a while after the ones before.
async fn write(scene: &Scene, store: &SqliteStore) {
    scene.clock.advance(Duration::from_secs(2));
    let queue = jobs_core::QueueName::new("q").expect("a name");
    store.pause(&queue, "ann", "a write").await.expect("a write");
    store.resume(&queue).await.expect("a write");
}

/// Writes until the warnings are as wanted. The log is looked at behind a write, whose answer does not
/// wait for that.
async fn until(
    scene: &Scene,
    store: &SqliteStore,
    is_wanted: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    for _ in 0..1_000 {
        write(scene, store).await;
        let told = store.warnings(MINUTE).await.expect("an answer");
        if is_wanted(&told) {
            return told;
        }
    }
    panic!("the log never gets there");
}

#[test]
fn a_log_that_a_reader_pins_is_told_of_until_the_reader_has_left() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let path = scene.database();
        let bounded = options(&scene.clock, 2).wal_warning_bytes(100 * 1024);
        let store = SqliteStore::open(&path.to_string_lossy(), bounded).await.expect("a store");
        let mut reader = shell(&path).await;
        sqlx::query("BEGIN").execute(&mut reader).await.expect("a transaction");
        let look = sqlx::query("SELECT count(*) FROM jobs_job");
        look.fetch_one(&mut reader).await.expect("a snapshot");
        let told = until(&scene, &store, |told| !told.is_empty()).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("the write-ahead log"), "{told:?}");
        // Writes do not end it for as long as the reader stays.
        write(&scene, &store).await;
        assert_eq!(store.warnings(MINUTE).await.expect("an answer").len(), 1);
        let small = scene.store.warnings(MINUTE).await.expect("an answer");
        assert_eq!(small, [] as [String; 0], "its bound is the usual one");

        sqlx::query("ROLLBACK").execute(&mut reader).await.expect("its end");
        until(&scene, &store, <[String]>::is_empty).await;
    });
}
