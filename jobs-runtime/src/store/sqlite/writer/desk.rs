//! The writer's thread: gathers what is queued, makes it in one transaction, and answers.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use jobs_core::{Clock, StoreError, StoreErrorKind};
use sqlx::{Connection, SqliteConnection};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::super::error::{During, Result, Shared};
use super::super::finish::finish;
use super::super::line::Line;
use super::super::sql;
use super::super::turn::LONGEST_WAIT;
use super::super::wake::POLL;
use super::super::wal;
use super::{Failure, LARGEST_BATCH, LONGEST_HOLD, Parts, Queued, caught};

/// The writer itself.
pub(super) struct Desk {
    parts: Arc<Parts>,
    line: Line,
    writes: mpsc::Receiver<Box<dyn Queued>>,
    waiting: VecDeque<Box<dyn Queued>>,
    connection: Option<SqliteConnection>,
    /// The number of the last commit of another connection, as this connection sees it.
    heard: Option<i64>,
    poll: Interval,
}

impl Desk {
    pub(super) fn new(
        parts: Arc<Parts>,
        line: Line,
        writes: mpsc::Receiver<Box<dyn Queued>>,
    ) -> Self {
        let mut poll = interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { parts, line, writes, waiting: VecDeque::new(), connection: None, heard: None, poll }
    }

    pub(super) async fn serve(mut self) {
        self.listen().await;
        while self.gather().await {
            self.line.enter().await;
            match self.transaction().await {
                // Other writers stay in line meanwhile, so that those who are in none get in.
                Ok(()) => self.parts.turn.give_way().await,
                Err(error) => self.refuse(error),
            }
            self.line.leave();
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
