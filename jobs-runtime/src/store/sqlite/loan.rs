//! The writer's connection while the writer has nothing to do: whoever has a write of one statement
//! makes it there himself, and spares the trip through the writer's thread and back.
//!
//! 1. The writer waits for its connection no longer than [`LONGEST_LOAN`]; then it opens another one.
//!    So a runtime whose threads all block keeps a connection from the others, and no write.
//! 2. A call that is dropped half-way loses the connection: SQLite does its one statement as a whole
//!    or not at all, and what of its answer is still on the way reaches nobody else.
//! 3. Nobody overtakes: where writes are queued, the connection is the writer's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobs_core::StoreErrorKind;
use sqlx::SqliteConnection;
use tokio::sync::Notify;

use super::error::Result;
use super::writer::{Failure, Parts, Write, caught};

/// Longer than one statement about a few rows and its flush should take.
const LONGEST_LOAN: Duration = Duration::from_millis(100);

impl Parts {
    /// Makes a write of one statement for its caller; `None`: it was not done, and is to be queued.
    pub(super) async fn alone<W: Write>(
        &self,
        mut borrowed: Borrowed,
        write: &mut W,
    ) -> Option<Result<W::Answer>> {
        let connection = borrowed.connection();
        match caught(async { write.run_alone(connection, self.clock.now()).await }).await {
            Ok(answer) => {
                write.committed(&answer);
                self.check_size(connection).await;
                self.turn.give_way().await;
                // Before it rings: who is woken may have a write for this connection.
                borrowed.give_back();
                if write.wakes(&answer) {
                    self.bell.ring();
                }
                Some(Ok(answer))
            }
            // Whoever holds the lock, the writer waits for it.
            Err(Failure::Error(error)) if error.kind() == StoreErrorKind::Busy => {
                borrowed.give_back();
                None
            }
            Err(_) if write.is_to_be_repeated() => {
                borrowed.give_back();
                None
            }
            Err(failure) => Some(Err(failure.into())),
        }
    }
}

/// The connection, or who has it.
#[derive(Debug, Default)]
pub(super) struct Loan {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
enum State {
    /// The writer's, if there is one.
    #[default]
    Kept,
    Offered(SqliteConnection),
    Lent,
}

impl Loan {
    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned one is whole: no method panics between two changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers the writer's connection, until it is called back.
    pub(super) fn offer(&self, connection: SqliteConnection) {
        *self.state() = State::Offered(connection);
    }

    /// Whether nobody has it on loan.
    pub(super) fn is_free(&self) -> bool {
        !matches!(*self.state(), State::Lent)
    }

    /// Takes the connection back for the writer, where it has not been lost.
    pub(super) async fn call_back(&self) -> Option<SqliteConnection> {
        // A loan that ended before this one was called back may have left its notice.
        while !self.is_free() {
            if tokio::time::timeout(LONGEST_LOAN, self.ended.notified()).await.is_err() {
                break;
            }
        }
        match std::mem::take(&mut *self.state()) {
            State::Offered(connection) => Some(connection),
            State::Kept | State::Lent => None,
        }
    }

    /// The connection, where the writer offers it.
    pub(super) fn take(self: &Arc<Self>) -> Option<Borrowed> {
        let mut state = self.state();
        match std::mem::take(&mut *state) {
            State::Offered(connection) => {
                *state = State::Lent;
                Some(Borrowed { of: self.clone(), connection: Some(connection) })
            }
            other @ (State::Kept | State::Lent) => {
                *state = other;
                None
            }
        }
    }
}

/// The writer's connection on loan. Dropped, it is closed.
pub(super) struct Borrowed {
    of: Arc<Loan>,
    connection: Option<SqliteConnection>,
}

impl Borrowed {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        // Only `give_back` takes it, and ends this.
        self.connection.as_mut().expect("a loan has its connection until it ends")
    }

    /// Ends the loan in good order.
    pub(super) fn give_back(mut self) {
        self.end(|connection| connection.map_or(State::Kept, State::Offered));
    }

    fn end(&mut self, state: impl FnOnce(Option<SqliteConnection>) -> State) {
        let connection = self.connection.take();
        let mut now = self.of.state();
        // The writer may have given it up meanwhile, and have another one.
        if matches!(*now, State::Lent) {
            *now = state(connection);
        }
        drop(now);
        self.of.ended.notify_one();
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if self.connection.is_some() {
            self.end(|_| State::Kept);
        }
    }
}
