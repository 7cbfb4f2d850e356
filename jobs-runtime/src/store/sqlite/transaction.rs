//! Writes that join a transaction of the user.
//!
//! 1. They exist if and only if the user's transaction commits.
//! 2. A connection to another file, or one that is in no transaction, is refused before any write.
//! 3. The fence holds at the commit: SQLite has one writer, and it is the user's transaction.

use async_trait::async_trait;
use jobs_core::store::{CheckpointSave, Enqueued, Standing, Transaction, Transactions};
use jobs_core::{BuildId, Fence, NewJob, Notes, StoreError, StoreErrorKind};
use sqlx::{Connection, Sqlite, SqliteConnection};

use super::checkpoint::{save, standings};
use super::enqueue::Enqueue;
use super::error::{During, Result, is_busy};
use super::rollout::Publish;
use super::turn::LONGEST_WAIT;
use super::writer::Write;
use super::{SqliteStore, sql};

impl SqliteStore {
    /// Opens a transaction that holds the write lock from the start, so that nothing in it can fail
    /// because others write.
    ///
    /// Every other write to the file waits for its end: keep it short, and make no call to the store
    /// in between but those that take this transaction.
    ///
    /// # Errors
    /// [`StoreErrorKind::Busy`] when others held the write lock for 30 s, or this process itself for
    /// 5 s.
    ///
    /// # Cancel safety
    /// A dropped call opens nothing.
    pub async fn begin(&self) -> Result<sqlx::Transaction<'static, Sqlite>> {
        const DOING: &str = "beginning a transaction";
        self.inner.file.check()?;
        let turn = self.turn()?;
        let mut patience = turn.patience(DOING, LONGEST_WAIT);
        patience.stand_behind_others().await?;
        loop {
            match self.transactions().begin_with(sql::BEGIN).await {
                Err(error) if is_busy(&error) => patience.wait().await?,
                tx => return tx.during(DOING),
            }
        }
    }

    /// As [`Store::enqueue`](jobs_core::store::Store::enqueue), within the caller's transaction.
    ///
    /// # Errors
    /// [`StoreErrorKind::Invalid`] for a connection to another file or one in no transaction.
    ///
    /// # Cancel safety
    /// After a dropped call roll the transaction back: it may hold some of the jobs.
    pub async fn enqueue_in(
        &self,
        connection: &mut SqliteConnection,
        jobs: &[NewJob],
    ) -> Result<Vec<Enqueued>> {
        self.check_transaction(connection).await?;
        let mut enqueue = Enqueue::new(jobs)?;
        let now = self.clock().now();
        atomic(connection, async |tx| enqueue.run(tx, now).await).await
    }

    /// As [`Store::publish`](jobs_core::store::Store::publish), within the caller's transaction: nobody else can
    /// write before it ends.
    pub(crate) async fn publish_in(
        &self,
        connection: &mut SqliteConnection,
        build: &BuildId,
        manifest: &str,
    ) -> Result<()> {
        self.check_transaction(connection).await?;
        let mut publish = Publish { build: build.clone(), manifest: manifest.to_owned() };
        publish.run(connection, self.clock().now()).await
    }

    /// As [`Store::checkpoint`](jobs_core::store::Store::checkpoint) for one run, within the caller's
    /// transaction.
    ///
    /// # Errors
    /// As [`enqueue_in`](Self::enqueue_in).
    ///
    /// # Cancel safety
    /// After a dropped call roll the transaction back.
    pub async fn checkpoint_in(
        &self,
        connection: &mut SqliteConnection,
        checkpoint: &CheckpointSave,
    ) -> Result<Standing> {
        self.check_transaction(connection).await?;
        let saves = std::slice::from_ref(checkpoint);
        let standings = atomic(connection, async |tx| save(tx, saves).await).await?;
        Ok(standings[0])
    }

    /// Writes a run's success, with its notes, within the caller's transaction. After its commit the row decides: ask
    /// [`Store::reread`](jobs_core::store::Store::reread).
    ///
    /// # Errors
    /// As [`enqueue_in`](Self::enqueue_in).
    ///
    /// # Cancel safety
    /// After a dropped call roll the transaction back.
    pub async fn done_in(
        &self,
        connection: &mut SqliteConnection,
        fence: Fence,
        notes: &Notes,
    ) -> Result<Standing> {
        self.check_transaction(connection).await?;
        let now = self.clock().now();
        let standings = standings(&mut *connection, &[fence]).await?;
        let done = sqlx::query(sql::DONE).bind(fence.job.0).bind(fence.claim.0);
        let done = done.bind(now.as_micros()).bind(&notes.progress).bind(&notes.result);
        done.execute(connection).await.during("settling a run")?;
        Ok(standings[0])
    }

    /// By the file and not by the store's identity, which a copy of the file has too.
    async fn check_transaction(&self, connection: &mut SqliteConnection) -> Result<()> {
        self.inner.file.check()?;
        let file = sqlx::query_scalar(sql::DATABASE_FILE).fetch_one(&mut *connection).await;
        let file: String = file.during("looking at a transaction")?;
        if !std::fs::canonicalize(&file).is_ok_and(|file| file == self.database()) {
            return Err(invalid(
                "the transaction is one of another database than the store's: open it by \
                 `begin()` of the store, or on a pool of the same file",
            ));
        }
        if !is_in_transaction(connection).await? {
            return Err(invalid(
                "the connection is in no transaction, so its writes would not be undone with the \
                 caller's: open one by `begin()` of the store",
            ));
        }
        Ok(())
    }
}

/// Whether a connection is inside a transaction, however that was begun.
async fn is_in_transaction(connection: &mut SqliteConnection) -> Result<bool> {
    if connection.is_in_transaction() {
        return Ok(true);
    }
    // Someone may have begun one by plain SQL, which the driver does not see; SQLite refuses a second.
    match sqlx::query("BEGIN").execute(&mut *connection).await {
        Ok(_) => {}
        Err(error) if is_second_begin(&error) => return Ok(true),
        Err(error) => return Err(error).during("looking for an open transaction"),
    }
    let end = sqlx::query(sql::ROLLBACK).execute(connection).await;
    end.map(|_| false).during("looking for an open transaction")
}

/// Whether SQLite refused to begin a transaction because there is one: by its words, since it has no
/// code of its own for that.
fn is_second_begin(error: &sqlx::Error) -> bool {
    let text = error.as_database_error().map(sqlx::error::DatabaseError::message);
    text.is_some_and(|text| text.contains("within a transaction"))
}

fn invalid(text: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, text)
}

/// Runs several statements so that a failure leaves none of them in the user's transaction.
async fn atomic<T>(
    connection: &mut SqliteConnection,
    run: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T>,
) -> Result<T> {
    const DOING: &str = "writing within a transaction";
    sqlx::query(sql::SAVEPOINT).execute(&mut *connection).await.during(DOING)?;
    let answer = run(&mut *connection).await;
    let end = if answer.is_ok() { sql::RELEASE } else { sql::UNDO };
    let ended = sqlx::raw_sql(end).execute(connection).await.during(DOING);
    let answer = answer?;
    ended.map(|_| answer)
}

/// A transaction as the conformance suite drives it.
struct Open {
    store: SqliteStore,
    tx: sqlx::Transaction<'static, Sqlite>,
}

#[async_trait]
impl Transactions for SqliteStore {
    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let tx = Self::begin(self).await?;
        Ok(Box::new(Open { store: self.clone(), tx }))
    }
}

#[async_trait]
impl Transaction for Open {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        self.store.enqueue_in(&mut self.tx, jobs).await
    }

    async fn checkpoint(&mut self, save: &CheckpointSave) -> Result<Standing> {
        self.store.checkpoint_in(&mut self.tx, save).await
    }

    async fn done(&mut self, fence: Fence, notes: &Notes) -> Result<Standing> {
        self.store.done_in(&mut self.tx, fence, notes).await
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.tx.commit().await.during("committing")
    }

    async fn rollback(self: Box<Self>) -> Result<()> {
        self.tx.rollback().await.during("rolling back")
    }
}
