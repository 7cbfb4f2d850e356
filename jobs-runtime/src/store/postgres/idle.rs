//! The connections that nobody uses, and whose turn it is to open another.
//!
//! All parts of a worker that starts ask for a connection at once, and most need it for a moment. So
//! one is opened at a time, and who waits for that takes what is given back meanwhile: a server has
//! few connections, and a new one is dear. Nobody waits for longer than [`MOMENT`]: where the server
//! is slow or away, opening is not one after another.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// About as long as it takes to open a connection nearby.
const MOMENT: Duration = Duration::from_millis(20);

/// Idle connections.
#[derive(Debug)]
pub(super) struct Idle<C> {
    connections: Mutex<Vec<C>>,
    given_back: Notify,
    opening: tokio::sync::Mutex<()>,
}

/// What who needs a connection gets.
#[derive(Debug)]
pub(super) enum Next<'a, C> {
    /// One that was idle.
    Idle(C),
    /// None: open another, and keep the turn while you do.
    Open(Turn<'a>),
}

/// The turn to open a connection, or the end of the wait for it.
pub(super) type Turn<'a> = Option<tokio::sync::MutexGuard<'a, ()>>;

impl<C> Default for Idle<C> {
    fn default() -> Self {
        let (connections, given_back) = (Mutex::default(), Notify::new());
        Self { connections, given_back, opening: tokio::sync::Mutex::default() }
    }
}

impl<C> Idle<C> {
    /// An idle connection, or the turn to open another.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub(super) async fn next(&self) -> Next<'_, C> {
        if let Some(connection) = self.take() {
            return Next::Idle(connection);
        }
        let mut moment = pin!(tokio::time::sleep(MOMENT));
        loop {
            let turn = tokio::select! {
                biased;
                () = self.given_back.notified() => None,
                turn = self.opening.lock() => Some(Some(turn)),
                () = &mut moment => Some(None),
            };
            match (self.take(), turn) {
                (Some(connection), _) => return Next::Idle(connection),
                (None, Some(turn)) => return Next::Open(turn),
                // Another was quicker.
                (None, None) => {}
            }
        }
    }

    /// Takes in a connection whose work has ended in good order.
    pub(super) fn give_back(&self, connection: C) {
        self.connections().push(connection);
        self.given_back.notify_one();
    }

    /// Drops all: after one connection broke, the others are doubtful too.
    pub(super) fn forget(&self) {
        self.connections().clear();
    }

    fn take(&self) -> Option<C> {
        self.connections().pop()
    }

    fn connections(&self) -> MutexGuard<'_, Vec<C>> {
        // A poisoned list is whole: no method panics between two of its changes.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
