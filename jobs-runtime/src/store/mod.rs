//! The stores behind one name, and the transactions that applications may pass in.
//!
//! Everything else speaks to a store through the contract; only what must join a transaction of
//! the application needs to know which database that is. The SQL stores never import each other.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod poison;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use jobs_core::store::*;

use std::sync::Arc;

use jobs_core::store::memory::MemoryStore;
use jobs_core::{BuildId, Fence, NewJob, Notes, StoreError};

use crate::client::Jobs;
use crate::error::{Error, ErrorKind};

/// The store that a client was opened on.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    Memory(MemoryStore),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::SqliteStore),
    #[cfg(feature = "postgres")]
    Postgres(postgres::PostgresStore),
    Other(Arc<dyn AnyStore>),
}

/// All that a client asks of a store.
pub(crate) trait AnyStore: Store + Inspect + Operate {}

impl<T: Store + Inspect + Operate> AnyStore for T {}

/// The connection of a transaction that an application opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransactionConnection<'a> {
    /// Of a SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite(&'a mut sqlx::SqliteConnection),
    /// Of a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Postgres(&'a mut sqlx::PgConnection),
    /// Of neither; keeps the lifetime in use where no SQL store is compiled in.
    #[doc(hidden)]
    None(std::marker::PhantomData<&'a mut ()>),
}

/// A transaction of the application: `sqlx::Transaction` of SQLite or of PostgreSQL.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transaction that jobs can join",
    label = "expected a `sqlx::Transaction`, of `Sqlite` with the feature `sqlite` (on by default) \
             or of `Postgres` with the feature `postgres`"
)]
pub trait UserTransaction: Send + sealed::Sealed {
    /// Its connection.
    fn connection(&mut self) -> TransactionConnection<'_>;
}

mod sealed {
    use super::{Error, Jobs};

    pub trait Sealed {}

    pub trait SealedDatabase: sqlx::Database {
        fn begin(
            jobs: &Jobs,
        ) -> impl Future<Output = Result<sqlx::Transaction<'static, Self>, Error>> + Send;
    }
}

#[cfg(feature = "sqlite")]
impl sealed::Sealed for sqlx::Transaction<'_, sqlx::Sqlite> {}

#[cfg(feature = "sqlite")]
#[diagnostic::do_not_recommend]
impl UserTransaction for sqlx::Transaction<'_, sqlx::Sqlite> {
    fn connection(&mut self) -> TransactionConnection<'_> {
        TransactionConnection::Sqlite(self)
    }
}

#[cfg(feature = "postgres")]
impl sealed::Sealed for sqlx::Transaction<'_, sqlx::Postgres> {}

#[cfg(feature = "postgres")]
#[diagnostic::do_not_recommend]
impl UserTransaction for sqlx::Transaction<'_, sqlx::Postgres> {
    fn connection(&mut self) -> TransactionConnection<'_> {
        TransactionConnection::Postgres(self)
    }
}

/// A database that jobs can be kept in: `sqlx::Sqlite` or `sqlx::Postgres`.
#[diagnostic::on_unimplemented(
    message = "jobs are not kept in `{Self}`",
    label = "expected `sqlx::Sqlite` or `sqlx::Postgres`",
    note = "the database's feature of jobs-runtime must be on: `sqlite` (the default) or `postgres`"
)]
pub trait StoreDatabase: sqlx::Database + sealed::SealedDatabase {}

#[cfg(feature = "sqlite")]
impl StoreDatabase for sqlx::Sqlite {}

#[cfg(feature = "sqlite")]
impl sealed::SealedDatabase for sqlx::Sqlite {
    async fn begin(jobs: &Jobs) -> Result<sqlx::Transaction<'static, Self>, Error> {
        let Backend::Sqlite(store) = jobs.backend() else {
            return Err(elsewhere(jobs.backend(), "SQLite file"));
        };
        Ok(store.begin().await?)
    }
}

#[cfg(feature = "postgres")]
impl StoreDatabase for sqlx::Postgres {}

#[cfg(feature = "postgres")]
impl sealed::SealedDatabase for sqlx::Postgres {
    async fn begin(jobs: &Jobs) -> Result<sqlx::Transaction<'static, Self>, Error> {
        let Backend::Postgres(store) = jobs.backend() else {
            return Err(elsewhere(jobs.backend(), "PostgreSQL server"));
        };
        Ok(store.begin().await?)
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn elsewhere(backend: &Backend, wanted: &str) -> Error {
    let what = format!("there is no {wanted}: the jobs are kept {}", backend.name());
    Error::new(ErrorKind::WrongTransaction, what)
}

/// Sends a call to the store that a transaction belongs to.
macro_rules! joined {
    ($backend:expr, $tx:expr, $method:ident($($argument:expr),*)) => {
        match ($backend, $tx) {
            #[cfg(feature = "sqlite")]
            (Backend::Sqlite(store), TransactionConnection::Sqlite(connection)) => {
                store.$method(connection, $($argument),*).await.map_err(Error::from)
            }
            #[cfg(feature = "postgres")]
            (Backend::Postgres(store), TransactionConnection::Postgres(connection)) => {
                store.$method(connection, $($argument),*).await.map_err(Error::from)
            }
            (backend, tx) => Err(wrong(backend, &tx)),
        }
    };
}

impl Backend {
    /// Leaves the store in a state in which it may be copied or moved, now that a worker has ended.
    pub(crate) async fn rest(&self) {
        #[cfg(feature = "sqlite")]
        if let Self::Sqlite(store) = self {
            store.rest().await;
        }
    }

    /// Where the store is, for people: a file, or a server without user and password.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Memory(_) => "a store in memory".to_owned(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => store.place(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.place(),
            Self::Other(store) => format!("the store {}", store.id()),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => store,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store,
            Self::Other(store) => store.as_ref(),
        }
    }

    pub(crate) fn inspect(&self) -> &dyn Inspect {
        match self {
            Self::Memory(store) => store,
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => store,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store,
            Self::Other(store) => store.as_ref(),
        }
    }

    pub(crate) fn operate(&self) -> &dyn Operate {
        match self {
            Self::Memory(store) => store,
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => store,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store,
            Self::Other(store) => store.as_ref(),
        }
    }

    pub(crate) async fn enqueue_in(
        &self,
        tx: TransactionConnection<'_>,
        jobs: &[NewJob],
    ) -> Result<Vec<Enqueued>, Error> {
        joined!(self, tx, enqueue_in(jobs))
    }

    /// Notes what a build says about itself without waiting for the end of a transaction of the
    /// application that this process has open.
    pub(crate) async fn publish_beside(
        &self,
        tx: TransactionConnection<'_>,
        build: &BuildId,
        manifest: &str,
    ) -> Result<(), Error> {
        match (self, tx) {
            #[cfg(feature = "sqlite")]
            (Self::Sqlite(store), TransactionConnection::Sqlite(connection)) => {
                Ok(store.publish_in(connection, build, manifest).await?)
            }
            #[cfg(feature = "postgres")]
            (Self::Postgres(store), TransactionConnection::Postgres(_)) => {
                store.publish_in_background(build, manifest);
                Ok(())
            }
            (backend, tx) => Err(wrong(backend, &tx)),
        }
    }

    pub(crate) async fn checkpoint_in(
        &self,
        tx: TransactionConnection<'_>,
        save: &CheckpointSave,
    ) -> Result<Standing, Error> {
        joined!(self, tx, checkpoint_in(save))
    }

    pub(crate) async fn done_in(
        &self,
        tx: TransactionConnection<'_>,
        fence: Fence,
        notes: &Notes,
    ) -> Result<Standing, Error> {
        joined!(self, tx, done_in(fence, notes))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "in memory",
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => "in a SQLite file",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "on a PostgreSQL server",
            Self::Other(_) => "in a store of the application",
        }
    }
}

fn wrong(backend: &Backend, tx: &TransactionConnection<'_>) -> Error {
    let of = match tx {
        #[cfg(feature = "sqlite")]
        TransactionConnection::Sqlite(_) => "of a SQLite file",
        #[cfg(feature = "postgres")]
        TransactionConnection::Postgres(_) => "of a PostgreSQL server",
        TransactionConnection::None(_) => "of no database",
    };
    let what = format!(
        "the jobs are kept {}, but the transaction is {of}; open it on the database that the jobs \
         are in",
        backend.name()
    );
    Error::new(ErrorKind::WrongTransaction, what)
}

/// The databases that an address can name and several processes can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// `sqlite:shop.db`, `sqlite://shop.db`.
    Sqlite,
    /// `postgres://user@host/database`, `postgresql://…`.
    Postgres,
}

impl Scheme {
    /// The kind of database that an address names; `None` where it is none of these.
    pub(crate) fn of(address: &str) -> Option<Self> {
        match address.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgres),
            _ => None,
        }
    }
}

/// A store's error for an address of a store that was not compiled in.
#[cfg(not(all(feature = "sqlite", feature = "postgres")))]
pub(crate) fn left_out(feature: &str) -> StoreError {
    StoreError::new(
        jobs_core::StoreErrorKind::Configuration,
        format!(
            "this build has no store for that address; turn on the feature `{feature}` of jobs-runtime"
        ),
    )
}

/// A store's error for an address that no store serves.
pub(crate) fn unknown_scheme(url: &str) -> StoreError {
    let scheme = url.split(':').next().unwrap_or_default();
    let scheme: String = scheme.chars().take(32).collect();
    StoreError::new(
        jobs_core::StoreErrorKind::Configuration,
        format!(
            "no store for an address that begins with {scheme:?}; write `sqlite://app.db`, \
             `postgres://user@host/database` (feature `postgres`), or `memory:`"
        ),
    )
}
