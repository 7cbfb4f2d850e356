//! The one writer of a process: it gathers writes while a transaction is on its way to the disk.
//!
//! 1. A write is answered after the commit that made it durable, and is never half done: it runs
//!    here, where nobody's cancellation reaches it.
//! 2. A write that fails is answered alone; the others of its transaction are run again without it.
//! 3. The write lock is held for at most [`LONGEST_HOLD`] and whoever waits for it gets a turn: writers of
//!    other processes one after another in a [`line`](super::line), others between two of them.
//! 4. A write that panics is one that failed: the others go on, on a new connection.
//! 5. What was queued when the last handle of the store is dropped is still done, and the log is then
//!    folded into the file: the drop waits for that, for a moment, so that a process which ends right
//!    after it leaves one file that is whole by itself.
//! 6. While it has nothing to do, a write of one statement is made by its caller, on its connection:
//!    see [`loan`](super::loan).
//!
//! Why no savepoints: a statement that fails undoes itself, but SQLite ends the whole transaction for
//! some errors, so running the others again must work anyhow. It is then all that is needed, and the
//! path on which nothing fails has no extra statements.

mod desk;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use jobs_core::{Clock, StoreError, StoreErrorKind, Timestamp};
use sqlx::SqliteConnection;
use tokio::sync::{Mutex, mpsc, oneshot};

use self::desk::Desk;
use super::connect::Connect;
use super::error::{Result, panicked};
use super::file::OpenFile;
use super::line::Line;
use super::loan::Loan;
use super::turn::Turn;
use super::wake::Bell;
use super::wal::Wal;

/// The write lock is held for at most this long before others get a turn; a single write that takes
/// longer is not cut.
pub(super) const LONGEST_HOLD: Duration = Duration::from_millis(50);
/// At most this many writes share a transaction.
const LARGEST_BATCH: usize = 256;
/// This many writes may queue before callers wait to queue theirs.
const QUEUE: usize = 1024;

/// A write: it may be run several times, until the transaction that it is part of commits.
#[async_trait]
pub(super) trait Write: Send + 'static {
    /// What its caller gets after the commit.
    type Answer: Send + 'static;

    /// Makes the write.
    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Self::Answer>;

    /// Whether jobs may have become ready or due by it.
    fn wakes(&self, answer: &Self::Answer) -> bool;

    /// Whether a single statement writes all of it, at most a few rows, which needs no transaction around it
    /// where it is alone: whatever it says, all of it was done or nothing.
    fn is_one_statement(&self) -> bool {
        false
    }

    /// Makes the write alone, with no transaction around it, where a single statement writes all of it.
    async fn run_alone(
        &mut self,
        connection: &mut SqliteConnection,
        now: Timestamp,
    ) -> Result<Self::Answer> {
        self.run(connection, now).await
    }

    /// Whether an attempt that has just failed is to be made again, in another way: not an error of
    /// the caller's. The others of the transaction are run again with it.
    fn is_to_be_repeated(&self) -> bool {
        false
    }

    /// Keeps what must be kept in this process once the write is everyone's.
    fn committed(&mut self, _answer: &Self::Answer) {}
}

/// A drop of the store waits at most this long for the writer's end.
const LONGEST_END: Duration = Duration::from_secs(2);

/// The end of the writer, waited for by the drop of this, which comes after that of the way to it.
#[derive(Debug)]
pub(super) struct End(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl Drop for End {
    fn drop(&mut self) {
        let over = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Either its end, or too late: a stranger keeps the file locked, and its log is kept with it.
        let _ = over.recv_timeout(LONGEST_END);
    }
}

/// The way to the writer. Dropping the last handle ends it, after what is queued.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Queued>>,
    parts: Arc<Parts>,
}

impl Writer {
    /// Starts the writer's thread.
    pub(super) fn start(parts: Parts, line: Line) -> Result<(Self, End)> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(started)?;
        let (queue, writes) = mpsc::channel(QUEUE);
        let parts = Arc::new(parts);
        let desk = parts.clone();
        let (alive, over) = std::sync::mpsc::channel();
        let serve = move || {
            runtime.block_on(async { Desk::new(desk, line, writes).serve().await });
            drop(alive);
        };
        let name = "jobs-sqlite-writer".to_owned();
        std::thread::Builder::new().name(name).spawn(serve).map_err(started)?;
        Ok((Self { queue, parts }, End(std::sync::Mutex::new(over))))
    }

    /// Makes a write and answers after its commit.
    ///
    /// # Cancel safety
    /// A dropped call happens as a whole or not at all.
    pub(super) async fn write<W: Write>(&self, mut write: W) -> Result<W::Answer> {
        self.parts.file.check()?;
        if write.is_one_statement()
            && let Some(borrowed) = self.parts.loan.take()
            && let Some(answer) = self.parts.alone(borrowed, &mut write).await
        {
            return answer;
        }
        let (reply, answer) = oneshot::channel();
        let slot = Slot { write, answer: None, reply };
        self.queue.send(Box::new(slot)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

fn started(error: std::io::Error) -> StoreError {
    let text = "the writer's thread can't be started: check the limits of threads and open files";
    StoreError::new(StoreErrorKind::Unavailable, text).because(error)
}

fn ended() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the store's writer has ended")
}

/// What the writer works with.
pub(super) struct Parts {
    pub(super) file: OpenFile,
    pub(super) connect: Connect,
    pub(super) turn: Turn,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) bell: Arc<Bell>,
    pub(super) wal: Mutex<Wal>,
    pub(super) loan: Arc<Loan>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl Parts {
    /// Looks after the size of the log, between two transactions.
    pub(super) async fn check_size(&self, connection: &mut SqliteConnection) {
        // Whoever is at it already will have done it.
        if let Ok(mut wal) = self.wal.try_lock() {
            wal.check(connection, self.clock.elapsed()).await;
        }
    }
}

/// A write whose type is forgotten, so that all kinds share a queue.
#[async_trait]
trait Queued: Send + std::fmt::Debug {
    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<()>;
    async fn run_alone(&mut self, connection: &mut SqliteConnection, now: Timestamp) -> Result<()>;
    fn wakes(&self) -> bool;
    fn is_one_statement(&self) -> bool;
    fn is_to_be_repeated(&self) -> bool;
    fn answer(self: Box<Self>, committed: Result<()>);
}

struct Slot<W: Write> {
    write: W,
    answer: Option<W::Answer>,
    reply: oneshot::Sender<Result<W::Answer>>,
}

impl<W: Write> std::fmt::Debug for Slot<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::any::type_name::<W>())
    }
}

#[async_trait]
impl<W: Write> Queued for Slot<W> {
    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<()> {
        self.answer = Some(self.write.run(tx, now).await?);
        Ok(())
    }

    async fn run_alone(&mut self, connection: &mut SqliteConnection, now: Timestamp) -> Result<()> {
        self.answer = Some(self.write.run_alone(connection, now).await?);
        Ok(())
    }

    fn wakes(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| self.write.wakes(answer))
    }

    fn is_one_statement(&self) -> bool {
        self.write.is_one_statement()
    }

    fn is_to_be_repeated(&self) -> bool {
        self.write.is_to_be_repeated()
    }

    fn answer(mut self: Box<Self>, committed: Result<()>) {
        let answer = committed.and_then(|()| self.answer.take().ok_or_else(ended));
        if let Ok(answer) = &answer {
            self.write.committed(answer);
        }
        // Nobody may be waiting any more; the write holds all the same.
        drop(self.reply.send(answer));
    }
}

/// How a write failed.
pub(super) enum Failure {
    Error(StoreError),
    Panic(StoreError),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Error(error) | Failure::Panic(error) => error,
        }
    }
}

/// Runs a write; the clock is read inside, so that its panics are caught too.
pub(super) async fn caught<T>(run: impl Future<Output = Result<T>>) -> Result<T, Failure> {
    // What a write has changed of itself is not used again after a panic: it is only answered.
    match AssertUnwindSafe(run).catch_unwind().await {
        Ok(ran) => ran.map_err(Failure::Error),
        Err(panic) => Err(Failure::Panic(panicked(panic.as_ref()))),
    }
}
