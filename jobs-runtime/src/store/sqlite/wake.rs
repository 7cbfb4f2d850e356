//! Waking those who wait for jobs.
//!
//! A commit of this process's writer rings at once. Commits of other connections, in this process or
//! another, are found by `PRAGMA data_version` within [`POLL`], and only while someone waits. The
//! number is asked for on the writer's connection, where the writer's own commits do not change it,
//! so that a busy process does not wake itself up all the time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::Wake;
use tokio::sync::watch;

/// How often other processes' commits are looked for while someone waits: cheap enough to do all the
/// time (some 20 µs each), and a wake-up within 60 ms almost always.
pub(super) const POLL: Duration = Duration::from_millis(25);

/// What rings.
#[derive(Debug)]
pub(super) struct Bell {
    changes: watch::Sender<u64>,
    /// How many wait.
    listeners: watch::Sender<usize>,
}

impl Bell {
    pub(super) fn new() -> Self {
        let (changes, _) = watch::channel(0);
        let (listeners, _) = watch::channel(0);
        Self { changes, listeners }
    }

    pub(super) fn ring(&self) {
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Whether anyone waits.
    pub(super) fn is_awaited(&self) -> bool {
        *self.listeners.borrow() > 0
    }

    /// Returns when someone waits.
    pub(super) async fn awaited(&self) {
        let mut listeners = self.listeners.subscribe();
        // It fails only when the sender is gone, which is borrowed here.
        drop(listeners.wait_for(|waiting| *waiting > 0).await);
    }
}

/// Hears of changes from when it was made.
#[derive(Debug)]
pub(super) struct Listener {
    bell: Arc<Bell>,
    changes: watch::Receiver<u64>,
}

impl Listener {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        let changes = bell.changes.subscribe();
        Self { bell, changes }
    }
}

#[async_trait]
impl Wake for Listener {
    async fn changed(&mut self) {
        let _waiting = Waiting::new(&self.bell);
        // The sender lives as long as the bell that is held here.
        drop(self.changes.changed().await);
    }
}

/// Counts one who waits.
struct Waiting<'a>(&'a Bell);

impl<'a> Waiting<'a> {
    fn new(bell: &'a Bell) -> Self {
        bell.listeners.send_modify(|waiting| *waiting += 1);
        Self(bell)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.listeners.send_modify(|waiting| *waiting -= 1);
    }
}
