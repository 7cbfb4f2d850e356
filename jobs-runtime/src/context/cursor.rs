//! The common shape of a long job: a cursor that moves on batch by batch.
//!
//! A cursor moves behind the work and never before it: a [`Batch`] can only be committed with its
//! next position, and is gone then.
//!
//! Not a closure a batch: rustc can't tell today that the future of one that borrows is `Send`.

use std::fmt;

use jobs_core::Versioned;
use jobs_core::store::Standing;

use super::{Interrupted, JobContext};
use crate::handler::JobError;
use crate::store::{StoreDatabase, UserTransaction};

/// Where a run is among its batches; made by [`JobContext::cursor`].
pub struct Cursor<'a, S, C> {
    cx: &'a JobContext<S, C>,
    /// `None`: at the end.
    at: Option<C>,
}

/// One batch: a transaction, and the position that it works from.
///
/// Dropping it undoes what was written in it.
#[must_use = "what a batch wrote is undone unless it is committed"]
pub struct Batch<'c, 'a, S, C, DB: StoreDatabase> {
    /// The transaction of the batch's rows.
    pub tx: sqlx::Transaction<'static, DB>,
    cursor: &'c mut Cursor<'a, S, C>,
}

impl<S, C: Versioned> JobContext<S, C> {
    /// A cursor at the saved checkpoint, or else at a first position. As
    /// [`resume_or`](Self::resume_or), only the first call sees the saved one.
    ///
    /// An export, exact whatever ends its runs and wherever:
    ///
    /// ```
    /// # use jobs_runtime::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # use sqlx::Sqlite;
    /// # #[derive(Serialize, Deserialize, Checkpoint)]
    /// # #[checkpoint(version = "1.0.0")]
    /// # struct After { id: i64 }
    /// # #[derive(Serialize, Deserialize, Job)]
    /// # #[job(kind = "reports.export", version = "1.0.0", checkpoint = After)]
    /// # struct Export;
    /// impl Handler<()> for Export {
    ///     async fn run(self, cx: JobContext<(), After>) -> Result<Outcome, JobError> {
    ///         let mut cursor = cx.cursor(After { id: 0 });
    ///         while let Some(mut batch) = cursor.begin::<Sqlite>().await? {
    ///             let copy = "INSERT INTO export SELECT * FROM entry WHERE id > ?1 \
    ///                         ORDER BY id LIMIT 500 RETURNING id";
    ///             let copy = sqlx::query_scalar(copy).bind(batch.at().id);
    ///             let ids: Vec<i64> = copy.fetch_all(&mut *batch.tx).await?;
    ///             batch.commit(ids.into_iter().max().map(|id| After { id })).await?;
    ///         }
    ///         Ok(Outcome::Done)
    ///     }
    /// }
    /// ```
    pub fn cursor(&self, first: C) -> Cursor<'_, S, C> {
        Cursor { cx: self, at: Some(self.resumed().unwrap_or(first)) }
    }
}

impl<'a, S, C: Versioned> Cursor<'a, S, C> {
    /// The position to work from; `None` at the end.
    pub fn at(&self) -> Option<&C> {
        self.at.as_ref()
    }

    /// Begins the next batch, in a transaction as of [`JobContext::begin`]; `None` at the end.
    ///
    /// # Errors
    /// As [`JobContext::begin`].
    pub async fn begin<DB: StoreDatabase>(
        &mut self,
    ) -> Result<Option<Batch<'_, 'a, S, C, DB>>, JobError> {
        if self.at.is_none() {
            return Ok(None);
        }
        let tx = self.cx.begin().await?;
        Ok(Some(Batch { tx, cursor: self }))
    }

    /// Saves the next position, or with `None` ends, after a batch whose work is in no transaction:
    /// a run that is interrupted repeats one batch at most, or as much as `checkpoint_every` allows.
    ///
    /// # Errors
    /// As [`JobContext::checkpoint`]; the cursor has moved all the same.
    pub async fn move_to(&mut self, next: Option<C>) -> Result<(), JobError> {
        self.at = next;
        match &self.at {
            Some(at) => self.cx.checkpoint(at).await,
            None => Ok(()),
        }
    }
}

impl<S, C: Versioned, DB: StoreDatabase> Batch<'_, '_, S, C, DB>
where
    sqlx::Transaction<'static, DB>: UserTransaction,
{
    /// The position to work from.
    #[expect(clippy::missing_panics_doc, reason = "a cursor at its end begins no batch")]
    pub fn at(&self) -> &C {
        self.cursor.at.as_ref().expect("a batch begins only before the end")
    }

    /// Commits the rows of the batch with the position behind it; or, with `None`, with the success
    /// of the job: then return [`Outcome::Done`](crate::Outcome::Done). Who has more to do after the
    /// last batch gives it a position of its own.
    ///
    /// # Errors
    /// An [`Interrupted`], to be passed on with `?`: for a lost lease nothing was committed, else the
    /// batch was. An infrastructure error when the store fails.
    ///
    /// # Cancel safety
    /// A dropped call has committed all of it or nothing.
    pub async fn commit(self, next: Option<C>) -> Result<(), JobError> {
        let Self { mut tx, cursor } = self;
        let cx = cursor.cx;
        let standing = match &next {
            Some(next) => cx.save_in(&mut tx, next).await?,
            None => cx.finish_in(&mut tx).await?,
        };
        if standing == Standing::Lost {
            return Err(Interrupted::LeaseLost.into());
        }
        tx.commit().await.map_err(|error| JobError::from(error).infrastructure())?;
        cursor.at = next;
        match cursor.at {
            Some(_) => cx.stand(standing),
            None => Ok(()),
        }
    }
}

impl<S, C: fmt::Debug> fmt::Debug for Cursor<'_, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<S, C: fmt::Debug, DB: StoreDatabase> fmt::Debug for Batch<'_, '_, S, C, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}
