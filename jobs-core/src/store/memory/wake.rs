//! Waking: a count of the changes, and an event for those who have seen them all.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use event_listener::Event;

use super::super::Wake;
use super::MemoryStore;

#[derive(Debug, Default)]
pub(super) struct Bell {
    changes: AtomicU64,
    event: Event,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.event.notify(usize::MAX);
    }
}

/// Hears of the changes that come after it was made.
#[derive(Debug)]
pub(super) struct Listener {
    store: MemoryStore,
    seen: u64,
}

impl Listener {
    pub(super) fn new(store: MemoryStore) -> Self {
        let seen = store.shared.bell.changes.load(Ordering::SeqCst);
        Self { store, seen }
    }
}

#[async_trait]
impl Wake for Listener {
    async fn changed(&mut self) {
        let bell = &self.store.shared.bell;
        loop {
            // Listening starts before the count is read, so no change falls in between.
            let rung = bell.event.listen();
            let changes = bell.changes.load(Ordering::SeqCst);
            if changes != self.seen {
                self.seen = changes;
                return;
            }
            rung.await;
        }
    }
}
