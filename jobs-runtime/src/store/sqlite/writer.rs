//! The one writer of a process: it gathers writes while a transaction is on its way to the disk.
//!
//! 1. A write is answered after the commit that made it durable, and is never half done: it runs
//!    here, where nobody's cancellation reaches it.
//! 2. A write that fails is answered alone; the others of its transaction are run again without it.
//! 3. The write lock is held for at most [`LONGEST_HOLD`] and whoever waits for it gets a turn.
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

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use jobs_core::{Clock, StoreError, StoreErrorKind, Timestamp};
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::connect::Connect;
use super::error::{During, Result, Shared, panicked};
use super::finish::finish;
use super::loan::Loan;
use super::sql;
use super::turn::{LONGEST_WAIT, Turn};
use super::wake::{Bell, POLL};
use super::wal::{self, Wal};

/// The write lock is held for at most this long before others get a turn; a single write that takes
/// longer is not cut.
const LONGEST_HOLD: Duration = Duration::from_millis(50);
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

    /// Whether it is a single statement about a single row, which needs no transaction around it where
    /// it is alone: whatever it says, all of it was done or nothing.
    fn is_one_statement(&self) -> bool {
        false
    }

    /// Makes the write alone, with no transaction around it, where it is a single statement.
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
    pub(super) fn start(parts: Parts) -> Result<(Self, End)> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(started)?;
        let (queue, writes) = mpsc::channel(QUEUE);
        let parts = Arc::new(parts);
        let desk = parts.clone();
        let (alive, over) = std::sync::mpsc::channel();
        let serve = move || {
            runtime.block_on(async { Desk::new(desk, writes).serve().await });
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

/// The writer itself.
struct Desk {
    parts: Arc<Parts>,
    writes: mpsc::Receiver<Box<dyn Queued>>,
    waiting: VecDeque<Box<dyn Queued>>,
    connection: Option<SqliteConnection>,
    /// The number of the last commit of another connection, as this connection sees it.
    heard: Option<i64>,
    poll: Interval,
}

impl Desk {
    fn new(parts: Arc<Parts>, writes: mpsc::Receiver<Box<dyn Queued>>) -> Self {
        let mut poll = interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { parts, writes, waiting: VecDeque::new(), connection: None, heard: None, poll }
    }

    async fn serve(mut self) {
        self.listen().await;
        while self.gather().await {
            match self.transaction().await {
                Ok(()) => self.parts.turn.give_way().await,
                Err(error) => self.refuse(error),
            }
        }
        if let Some(mut connection) = self.connection {
            // Other connections of this process may outlive this one and die with the process, so the
            // log is not left to the last one; a failure is for the next to fix.
            wal::fold(&mut connection).await;
            drop(connection.close().await);
        }
    }

    /// Waits for work, listening for other connections' commits while someone waits for them. False
    /// when there will never be any more.
    async fn gather(&mut self) -> bool {
        if self.parts.bell.is_awaited() && self.poll.tick().now_or_never().is_some() {
            self.listen().await;
        }
        while self.waiting.is_empty() {
            if let Some(connection) = self.connection.take() {
                self.parts.loan.offer(connection);
            }
            let is_awaited = self.parts.bell.is_awaited();
            tokio::select! {
                biased;
                write = self.writes.recv() => {
                    self.connection = self.parts.loan.call_back().await;
                    match write {
                        Some(write) => self.waiting.push_back(write),
                        None => return false,
                    }
                }
                _ = self.poll.tick(), if is_awaited => {
                    // A write that is under way wakes by itself; the next look is soon enough.
                    if self.parts.loan.is_free() {
                        self.connection = self.parts.loan.call_back().await;
                        self.listen().await;
                    }
                }
                () = self.parts.bell.awaited(), if !is_awaited => {}
            }
        }
        while self.waiting.len() < LARGEST_BATCH
            && let Ok(write) = self.writes.try_recv()
        {
            self.waiting.push_back(write);
        }
        true
    }

    /// Rings for commits of other connections. The writer's own do not change this number for it; a
    /// new connection can't tell what it missed.
    async fn listen(&mut self) {
        let is_new = self.connection.is_none();
        let Ok(connection) = connected(&mut self.connection, &self.parts).await else {
            return;
        };
        match sqlx::query_scalar(sql::DATA_VERSION).fetch_one(connection).await {
            Ok(version) => {
                if self.heard.replace(version) != Some(version) || is_new {
                    self.parts.bell.ring();
                }
            }
            Err(_) => self.connection = None,
        }
    }

    /// Runs what waits, in one transaction, and answers it.
    ///
    /// # Errors
    /// Nothing was done, and what waits still does.
    async fn transaction(&mut self) -> Result<()> {
        if self.waiting.len() == 1
            && let Some(write) = self.waiting.pop_front_if(|write| write.is_one_statement())
        {
            self.alone(write).await;
            return Ok(());
        }
        let Self { parts, connection, waiting, writes, .. } = self;
        let tx = connected(connection, parts).await?;
        if let Err(error) = parts.turn.begin(tx).await {
            if error.kind() != StoreErrorKind::Busy {
                *connection = None;
            }
            return Err(error);
        }
        let mut done = Vec::new();
        let failed = run(tx, parts.clock.as_ref(), waiting, writes, &mut done).await;
        let end = if failed.is_none() { sql::COMMIT } else { sql::ROLLBACK };
        let ended = finish(tx, sqlx::query(end)).await.during("ending a transaction");
        if ended.is_err() {
            // Closing a connection undoes what it has not committed.
            *connection = None;
        }
        match (failed, ended) {
            (None, Ok(_)) => {
                self.answer(done);
                self.check_size().await;
            }
            (Some((write, failure)), _) => {
                if matches!(failure, Failure::Panic(_)) {
                    // It may have been left in the middle of anything.
                    *connection = None;
                }
                if write.is_to_be_repeated() {
                    waiting.push_front(write);
                } else {
                    write.answer(Err(failure.into()));
                }
                done.into_iter().rev().for_each(|write| waiting.push_front(write));
            }
            (None, Err(error)) => {
                let error = Shared::from(error);
                for write in done {
                    write.answer(Err(error.clone().into()));
                }
            }
        }
        Ok(())
    }

    /// Runs a write of one statement, which SQLite commits itself, and answers it: a `BEGIN` and a
    /// `COMMIT` would be two more trips to the driver's thread.
    async fn alone(&mut self, mut write: Box<dyn Queued>) {
        let ended = {
            let Self { parts, connection, .. } = self;
            let mut patience = parts.turn.patience("waiting for the write lock", LONGEST_WAIT);
            loop {
                let tx = match connected(connection, parts).await {
                    Ok(tx) => tx,
                    Err(error) => break Err(error),
                };
                let clock = parts.clock.as_ref();
                match caught(async { write.run_alone(tx, clock.now()).await }).await {
                    Err(Failure::Error(error)) if error.kind() == StoreErrorKind::Busy => {
                        if let Err(error) = patience.wait().await {
                            break Err(error);
                        }
                    }
                    ended => break ended.map_err(StoreError::from),
                }
            }
        };
        match ended {
            Ok(()) => {
                self.answer(vec![write]);
                self.check_size().await;
            }
            // Not by one statement then: it is the first of the next transaction.
            Err(_) if write.is_to_be_repeated() => self.waiting.push_front(write),
            Err(error) => {
                // Of a statement that failed nothing is left, but of its connection who knows.
                if error.kind() != StoreErrorKind::Busy {
                    self.connection = None;
                }
                write.answer(Err(error));
            }
        }
    }

    fn answer(&self, done: Vec<Box<dyn Queued>>) {
        let wakes = done.iter().any(|write| write.wakes());
        for write in done {
            write.answer(Ok(()));
        }
        if wakes {
            self.parts.bell.ring();
        }
    }

    async fn check_size(&mut self) {
        if let Some(connection) = &mut self.connection {
            self.parts.check_size(connection).await;
        }
    }

    /// Answers everything that waits with one error.
    fn refuse(&mut self, error: StoreError) {
        let error = Shared::from(error);
        self.waiting.drain(..).for_each(|write| write.answer(Err(error.clone().into())));
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

/// Runs writes until one fails, none is left, or the time is up. What is queued meanwhile goes with
/// them: a settlement and the claim that it makes room for come within microseconds of each other, and
/// the flush to disk is what either costs.
async fn run(
    tx: &mut SqliteConnection,
    clock: &dyn Clock,
    waiting: &mut VecDeque<Box<dyn Queued>>,
    writes: &mut mpsc::Receiver<Box<dyn Queued>>,
    done: &mut Vec<Box<dyn Queued>>,
) -> Option<(Box<dyn Queued>, Failure)> {
    let begun = clock.elapsed();
    while let Some(mut write) = waiting.pop_front().or_else(|| writes.try_recv().ok()) {
        if let Err(failure) = attempt(write.as_mut(), tx, clock).await {
            return Some((write, failure));
        }
        done.push(write);
        let is_full = done.len() >= LARGEST_BATCH;
        if is_full || clock.elapsed().saturating_sub(begun) >= LONGEST_HOLD {
            break;
        }
    }
    None
}

/// Runs a write once.
async fn attempt(
    write: &mut dyn Queued,
    tx: &mut SqliteConnection,
    clock: &dyn Clock,
) -> Result<(), Failure> {
    caught(async { write.run(tx, clock.now()).await }).await
}

/// Runs a write; the clock is read inside, so that its panics are caught too.
pub(super) async fn caught<T>(run: impl Future<Output = Result<T>>) -> Result<T, Failure> {
    // What a write has changed of itself is not used again after a panic: it is only answered.
    match AssertUnwindSafe(run).catch_unwind().await {
        Ok(ran) => ran.map_err(Failure::Error),
        Err(panic) => Err(Failure::Panic(panicked(panic.as_ref()))),
    }
}

async fn connected<'a>(
    connection: &'a mut Option<SqliteConnection>,
    parts: &Parts,
) -> Result<&'a mut SqliteConnection> {
    let open = match connection.take() {
        Some(open) => open,
        None => parts.connect.writing(&parts.turn).await?,
    };
    Ok(connection.insert(open))
}
