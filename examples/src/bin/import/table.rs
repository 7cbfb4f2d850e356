//! The application's own tables, in the same database as the jobs.

use jobs_runtime::UserTransaction;
use jobs_runtime::prelude::*;
use jobs_runtime::store::StoreDatabase;
use sqlx::{Postgres, Row as _, Sqlite, Transaction};

use crate::log::Totals;

/// The statements of both databases, which here are the same.
const MAKE: [&str; 4] = [
    "DROP TABLE IF EXISTS import_page",
    "DROP TABLE IF EXISTS import_status",
    "CREATE TABLE import_page (page TEXT PRIMARY KEY, hits BIGINT NOT NULL, bytes BIGINT NOT NULL)",
    "CREATE TABLE import_status (status BIGINT PRIMARY KEY, hits BIGINT NOT NULL)",
];
const ADD_PAGE: &str = "INSERT INTO import_page AS page (page, hits, bytes) VALUES ($1, $2, $3)
    ON CONFLICT (page) DO UPDATE SET hits = page.hits + excluded.hits,
        bytes = page.bytes + excluded.bytes";
const ADD_STATUS: &str = "INSERT INTO import_status AS status (status, hits) VALUES ($1, $2)
    ON CONFLICT (status) DO UPDATE SET hits = status.hits + excluded.hits";

/// Which database the tables are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    Sqlite,
    Postgres,
}

/// A database that has the tables.
pub(crate) trait HasTables: StoreDatabase
where
    Transaction<'static, Self>: UserTransaction,
{
    /// Makes the tables, empty.
    async fn make(tx: &mut Transaction<'static, Self>) -> sqlx::Result<()>;

    /// Adds what a batch adds up to.
    fn add(
        tx: &mut Transaction<'static, Self>,
        totals: &Totals,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// What the tables add up to.
    async fn totals(tx: &mut Transaction<'static, Self>) -> sqlx::Result<Totals>;
}

macro_rules! has_tables {
    ($database:ty) => {
        impl HasTables for $database {
            async fn make(tx: &mut Transaction<'static, Self>) -> sqlx::Result<()> {
                for statement in MAKE {
                    sqlx::query(statement).execute(&mut **tx).await?;
                }
                Ok(())
            }

            async fn add(tx: &mut Transaction<'static, Self>, totals: &Totals) -> sqlx::Result<()> {
                for (page, (hits, bytes)) in &totals.pages {
                    let add = sqlx::query(ADD_PAGE).bind(page).bind(hits).bind(bytes);
                    add.execute(&mut **tx).await?;
                }
                for (status, hits) in &totals.statuses {
                    sqlx::query(ADD_STATUS).bind(status).bind(hits).execute(&mut **tx).await?;
                }
                Ok(())
            }

            async fn totals(tx: &mut Transaction<'static, Self>) -> sqlx::Result<Totals> {
                let mut totals = Totals::default();
                let pages = sqlx::query("SELECT page, hits, bytes FROM import_page");
                for row in pages.fetch_all(&mut **tx).await? {
                    totals.pages.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
                }
                let statuses = sqlx::query("SELECT status, hits FROM import_status");
                for row in statuses.fetch_all(&mut **tx).await? {
                    totals.statuses.insert(row.try_get(0)?, row.try_get(1)?);
                }
                Ok(totals)
            }
        }
    };
}

has_tables!(Sqlite);
has_tables!(Postgres);

impl Tables {
    pub(crate) fn of(url: &str) -> Self {
        if url.starts_with("postgres") { Self::Postgres } else { Self::Sqlite }
    }

    pub(crate) async fn make(self, jobs: &Jobs) -> anyhow::Result<()> {
        match self {
            Self::Sqlite => make::<Sqlite>(jobs).await,
            Self::Postgres => make::<Postgres>(jobs).await,
        }
    }

    pub(crate) async fn totals(self, jobs: &Jobs) -> anyhow::Result<Totals> {
        match self {
            Self::Sqlite => totals::<Sqlite>(jobs).await,
            Self::Postgres => totals::<Postgres>(jobs).await,
        }
    }
}

async fn make<DB: HasTables>(jobs: &Jobs) -> anyhow::Result<()>
where
    Transaction<'static, DB>: UserTransaction,
{
    let mut tx = jobs.begin::<DB>().await?;
    DB::make(&mut tx).await?;
    Ok(tx.commit().await?)
}

async fn totals<DB: HasTables>(jobs: &Jobs) -> anyhow::Result<Totals>
where
    Transaction<'static, DB>: UserTransaction,
{
    Ok(DB::totals(&mut jobs.begin::<DB>().await?).await?)
}
