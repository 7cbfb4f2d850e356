//! Work that a handler spawns, and that ends with its run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::JobContext;
use crate::handler::JobError;

impl<S, C> JobContext<S, C> {
    /// Spawns work that belongs to this run: what still runs when the handler has returned or was
    /// dropped is aborted, and the run ends, and frees its slot, only when it is gone. So nothing
    /// works on for a job that another worker may have already.
    ///
    /// Await what it answers for the result; dropping that lets the work go on.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Spawned<T> {
        let (done, result) = oneshot::channel();
        self.parts.signals.spawn(async move {
            // Nobody may want the result.
            drop(done.send(work.await));
        });
        Spawned(result)
    }
}

/// Work that was spawned by a handler; awaited, its result.
///
/// # Errors
/// A failure when the work panicked.
pub struct Spawned<T>(oneshot::Receiver<T>);

impl<T> Future for Spawned<T> {
    type Output = Result<T, JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(result.map_err(|_| JobError::new("work that the handler spawned panicked")))
    }
}

impl<T> fmt::Debug for Spawned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawned")
    }
}
