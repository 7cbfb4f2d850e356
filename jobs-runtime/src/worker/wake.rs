//! Passes the store's wake-ups on to the loops that wait for them.

use std::sync::Arc;

use super::shared::Shared;

/// Listens until the worker is over.
pub(super) async fn wake_loop<S>(shared: Arc<Shared<S>>) {
    let mut wake = shared.store().wake();
    loop {
        tokio::select! {
            biased;
            () = shared.over.cancelled() => return,
            () = wake.changed() => {
                shared.ready.notify_one();
                shared.scheduled.notify_one();
            }
        }
    }
}
