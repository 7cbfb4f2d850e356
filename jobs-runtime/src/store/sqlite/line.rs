//! The line in which the writers of several processes stand for one file.
//!
//! 1. One of them writes, and when it leaves, the operating system wakes the next at once: between two
//!    transactions the file is not idle.
//! 2. Who leaves and comes back stands behind those who wait.
//! 3. It orders writers and guards nothing: the write lock is SQLite's. Who has stood for [`LONGEST_STAND`]
//!    goes on without a place, so a process that is stopped in its own holds others up once; so does
//!    who can't lock files.
//!
//! Two files make the line: `line` is locked by who writes, `next` by who comes after it. Since the next one
//! keeps `next` until it has `line`, nobody else can be quicker; and a lock of a process that dies, with
//! all that it forked, is dropped for it. Only writers that have work without end stand here. Everybody else asks SQLite by itself, and is
//! let in between two of them: see [`turn`](super::turn).
//!
//! Rejected: asking SQLite again and again. Its lock wakes nobody, so four processes spent a third of
//! their time asleep beside a file that was free.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::error::Result;
use super::turn::opened;

/// Longer than a writer ever waits for others that work.
const LONGEST_STAND: Duration = Duration::from_secs(1);

/// The names of the files.
pub(super) const LINE: &str = "line";
pub(super) const NEXT: &str = "next";

/// The place of one writer.
#[derive(Debug)]
pub(super) struct Line {
    files: Arc<Files>,
    is_inside: bool,
    /// Whether the thread that waits for locks runs.
    is_served: bool,
}

#[derive(Debug)]
struct Files {
    line: File,
    next: File,
    /// What the thread is to do, and has done. A file is locked by the thread or by the writer, never by both at a time.
    state: Mutex<State>,
    changed: Condvar,
    granted: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The thread has nothing to do.
    Idle,
    /// It waits for the locks.
    Standing,
    /// It waits for them, but nobody wants them any more.
    Unwanted,
    /// It has got them.
    Granted,
    /// The writer has ended.
    Over,
}

impl Line {
    /// # Errors
    /// Where the folder takes no files.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let files = Files {
            line: opened(folder, LINE)?,
            next: opened(folder, NEXT)?,
            state: Mutex::new(State::Idle),
            changed: Condvar::new(),
            granted: Notify::new(),
        };
        Ok(Self { files: Arc::new(files), is_inside: false, is_served: false })
    }

    /// Waits until this writer may write, but not for longer than [`LONGEST_STAND`].
    ///
    /// # Cancel safety
    /// None.
    pub(super) async fn enter(&mut self) {
        let files = &self.files;
        // The thread still waits for a place that came too late: this one would be behind it.
        if files.is(State::Unwanted) {
            return;
        }
        self.is_inside = match files.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) if self.is_served || serve(files) => {
                self.is_served = true;
                files.stand().await
            }
            Err(_) => {
                files.leave();
                false
            }
        };
    }

    /// Lets the next one in.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.is_inside) {
            self.files.leave();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.leave();
        *self.files.state() = State::Over;
        self.files.changed.notify_one();
    }
}

impl Files {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread wait for a place. Whether there is one now.
    async fn stand(&self) -> bool {
        self.turn(State::Idle, State::Standing);
        let answered = async {
            // An answer that came too late for the one before may have left its notice.
            while self.is(State::Standing) {
                self.granted.notified().await;
            }
        };
        if tokio::time::timeout(LONGEST_STAND, answered).await.is_err() {
            self.turn(State::Standing, State::Unwanted);
        }
        self.turn(State::Granted, State::Idle)
    }

    fn is(&self, state: State) -> bool {
        *self.state() == state
    }

    /// Goes from one state to another; false where it was not in the first.
    fn turn(&self, from: State, to: State) -> bool {
        let mut state = self.state();
        let is_from = *state == from;
        if is_from {
            *state = to;
            self.changed.notify_one();
        }
        is_from
    }

    /// Locks both files, or the one that is free, and lets those behind come closer.
    fn try_lock(&self) -> std::result::Result<(), TryLockError> {
        self.next.try_lock()?;
        self.line.try_lock()?;
        drop(self.next.unlock());
        Ok(())
    }

    fn lock(&self) -> std::io::Result<()> {
        self.next.lock()?;
        let locked = self.line.lock();
        drop(self.next.unlock());
        locked
    }

    fn leave(&self) {
        // Where it fails, the end of the process does it.
        drop(self.line.unlock());
        drop(self.next.unlock());
    }
}

/// Starts the thread that waits for locks, which nothing else can without asking again and again.
/// Whether that went well.
fn serve(files: &Arc<Files>) -> bool {
    let files = files.clone();
    let body = move || {
        loop {
            let mut state = files.state();
            while matches!(*state, State::Idle | State::Granted) {
                state = files.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            if files.is(State::Over) {
                return;
            }
            let locked = files.lock();
            let mut state = files.state();
            *state = match *state {
                State::Over => return files.leave(),
                State::Standing if locked.is_ok() => State::Granted,
                State::Standing | State::Unwanted => {
                    files.leave();
                    State::Idle
                }
                State::Idle | State::Granted => unreachable!("only this thread ends the standing"),
            };
            files.granted.notify_one();
        }
    };
    std::thread::Builder::new().name("jobs-sqlite-line".to_owned()).spawn(body).is_ok()
}

#[cfg(test)]
mod tests;
