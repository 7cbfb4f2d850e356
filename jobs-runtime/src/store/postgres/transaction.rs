//! Writes that join a transaction of the application.
//!
//! What they lock stays locked until that transaction ends; everyone else steps over it. Each first
//! asks whether the connection reaches this store, so that a transaction on another database is an
//! error and not a job in the wrong place.

use async_trait::async_trait;
use jobs_core::store::{CheckpointSave, Enqueued, Standing, Transaction, Transactions};
use jobs_core::{BuildId, Fence, NewJob, Notes, StoreError, StoreErrorKind};
use sqlx::postgres::{PgConnection, Postgres};

use super::PostgresStore;
use super::checkpoint;
use super::error::{Attempt, Trouble, cause, is_parting};
use super::row::Columns;
use super::settle::fences;

impl PostgresStore {
    /// Opens a transaction on the pool for the application, at the database's own isolation level.
    ///
    /// # Errors
    /// As the pool's: no connection, or none free in time.
    ///
    /// # Cancel safety
    /// A dropped call leaves no transaction open: it is begun where the drop can't reach, and
    /// rolled back there.
    pub async fn begin(&self) -> Result<sqlx::Transaction<'static, Postgres>, StoreError> {
        let begun = self.run_to_end(begin(self.pool().clone())).await;
        begun
            .and_then(|begun| begun.map_err(|error| self.lanes().unreached(error.into())))
            .map_err(|trouble| trouble.during("begin a transaction"))
    }

    /// As [`Store::enqueue`](jobs_core::store::Store::enqueue), within a transaction of the caller:
    /// the jobs exist when it commits.
    ///
    /// # Errors
    /// [`StoreErrorKind::Configuration`] when the connection reaches another store. After any
    /// error the transaction has failed and can only be rolled back.
    pub async fn enqueue_in(
        &self,
        connection: &mut PgConnection,
        jobs: &[NewJob],
    ) -> Result<Vec<Enqueued>, StoreError> {
        let enqueued = async {
            self.check_same(connection).await?;
            self.enqueue_within(connection, jobs).await
        };
        enqueued.await.map_err(|trouble| trouble.during("enqueue within the transaction"))
    }

    /// As [`Store::publish`](jobs_core::store::Store::publish), on a connection of its own and in the
    /// background: within a transaction of the application it would lock a row that all processes of the
    /// build write.
    pub(crate) fn publish_in_background(&self, build: &BuildId, manifest: &str) {
        let (store, build, manifest) = (self.clone(), build.clone(), manifest.to_owned());
        self.in_background(async move {
            if let Err(trouble) = store.publish_manifest(&build, &manifest).await {
                let error = jobs_core::chain(&trouble.during("publish a manifest"));
                tracing::warn!(error, "can't publish what this build produces");
            }
        });
    }

    /// As [`Store::checkpoint`](jobs_core::store::Store::checkpoint) for one run, within a
    /// transaction of the caller; locks the job's row until it ends, so that the fence holds at the
    /// commit.
    ///
    /// # Errors
    /// As [`enqueue_in`](Self::enqueue_in).
    pub async fn checkpoint_in(
        &self,
        connection: &mut PgConnection,
        save: &CheckpointSave,
    ) -> Result<Standing, StoreError> {
        let saved = async {
            self.check_same(connection).await?;
            self.hold(connection, save.fence).await?;
            let statement = self.prepared(checkpoint::bound(self.statements(), &[save]));
            checkpoint::answer(&statement.fetch_all(connection).await?)
        };
        saved.await.map_err(|trouble| trouble.during("save a checkpoint within the transaction"))
    }

    /// Writes a run's success, with its notes, within a transaction of the caller; locks the job's row until it
    /// ends.
    ///
    /// # Errors
    /// As [`enqueue_in`](Self::enqueue_in).
    pub async fn done_in(
        &self,
        connection: &mut PgConnection,
        fence: Fence,
        notes: &Notes,
    ) -> Result<Standing, StoreError> {
        let done = async {
            self.check_same(connection).await?;
            self.hold(connection, fence).await?;
            let (jobs, claims) = fences([fence].into_iter());
            let statement = self.prepared(self.statements().standing().bind(jobs).bind(claims));
            let standing = checkpoint::answer(&statement.fetch_all(&mut *connection).await?)?;
            let write = self.statements().done().bind(fence.job.0).bind(fence.claim.0);
            let write = write.bind(notes.progress.clone()).bind(notes.result.clone());
            let written = self.prepared(write).fetch_all(connection).await?;
            Ok(if written.is_empty() { Standing::Lost } else { standing })
        };
        done.await.map_err(|trouble: Trouble| trouble.during("finish within the transaction"))
    }

    async fn check_same(&self, connection: &mut PgConnection) -> Attempt<()> {
        let statement = self.prepared(self.statements().same_store().bind(self.store_id()));
        let other = |refusal: Option<sqlx::Error>| {
            let what = "the transaction is on another database than the store of jobs: begin it \
                        on this store, or open the store on that database";
            let error = StoreError::new(StoreErrorKind::Configuration, what);
            Trouble::Store(match refusal {
                Some(refusal) => error.because(cause(refusal)),
                None => error,
            })
        };
        match statement.fetch_all(connection).await {
            Ok(rows) => {
                let is_same = rows.first().map(|row| Columns::of(row).next()).transpose()?;
                if is_same.unwrap_or(false) { Ok(()) } else { Err(other(None)) }
            }
            Err(error) => {
                let trouble = Trouble::from(error);
                let is_elsewhere = matches!(trouble.code().as_deref(), Some("42P01" | "3F000"));
                match trouble {
                    Trouble::Sql(error) if is_elsewhere => Err(other(Some(error))),
                    trouble => Err(trouble),
                }
            }
        }
    }

    /// Waits for the job's row and locks it: what the next statement finds there stands until the caller's
    /// transaction ends.
    async fn hold(&self, connection: &mut PgConnection, fence: Fence) -> Attempt<()> {
        let hold = self.prepared(self.statements().hold().bind(fence.job.0));
        hold.fetch_all(connection).await?;
        Ok(())
    }
}

/// Begins on the first connection that still lives. The pool asks none before it hands it out, and
/// after the server was restarted all that it kept are dead; none of them began anything.
async fn begin(pool: sqlx::PgPool) -> Result<sqlx::Transaction<'static, Postgres>, sqlx::Error> {
    let mut kept = pool.size();
    loop {
        match pool.begin().await {
            Err(error) if kept > 0 && is_parting(&error) => kept -= 1,
            begun => return begun,
        }
    }
}

/// An open transaction of the suite.
struct Open {
    store: PostgresStore,
    transaction: sqlx::Transaction<'static, Postgres>,
}

#[async_trait]
impl Transactions for PostgresStore {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        let transaction = PostgresStore::begin(self).await?;
        Ok(Box::new(Open { store: self.clone(), transaction }))
    }
}

#[async_trait]
impl Transaction for Open {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.store.enqueue_in(&mut self.transaction, jobs).await
    }

    async fn checkpoint(&mut self, save: &CheckpointSave) -> Result<Standing, StoreError> {
        self.store.checkpoint_in(&mut self.transaction, save).await
    }

    async fn done(&mut self, fence: Fence, notes: &Notes) -> Result<Standing, StoreError> {
        self.store.done_in(&mut self.transaction, fence, notes).await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let ended = self.transaction.commit().await;
        ended.map_err(|error| Trouble::from(error).during("commit"))
    }

    async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
        let ended = self.transaction.rollback().await;
        ended.map_err(|error| Trouble::from(error).during("roll back"))
    }
}
