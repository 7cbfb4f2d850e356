//! What the SQLite store tells operators without being asked.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_core::Clock;
use jobs_runtime::store::sqlite::SqliteStore;
use sqlite_scene::{Scene, options, runtime, shell};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the messages of warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Message<'a>(&'a Warnings);
        impl Visit for Message<'_> {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                if field.name() == "message" {
                    self.0.0.lock().expect("a list").push(format!("{value:?}"));
                }
            }
        }
        event.record(&mut Message(self));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_log_that_a_reader_pins_is_warned_of_once_a_minute() {
    let warnings = Warnings::default();
    tracing::subscriber::set_global_default(warnings.clone()).expect("the first in this process");
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let path = scene.database();
        let bounded = options(&scene.clock, 2).wal_warning_bytes(0);
        let store = SqliteStore::open(&path.to_string_lossy(), bounded).await.expect("a store");
        let mut reader = shell(&path).await;
        sqlx::query("BEGIN").execute(&mut reader).await.expect("a transaction");
        let look = sqlx::query("SELECT count(*) FROM jobs_job");
        look.fetch_one(&mut reader).await.expect("a snapshot");
        let began = scene.clock.elapsed();
        while scene.clock.elapsed() < began + Duration::from_secs(90) {
            scene.clock.advance(Duration::from_secs(2));
            let queue = jobs_core::QueueName::new("q").expect("a name");
            let operate: &dyn jobs_core::store::Operate = &store;
            operate.pause(&queue, "ann", "a write").await.expect("a write");
            operate.resume(&queue).await.expect("a write");
        }
        let told = warnings.0.lock().expect("a list");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("the write-ahead log grows"), "{told:?}");
    });
}
