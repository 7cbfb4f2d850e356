//! Where a measurement happens: a database of its own, made before it and removed after it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jobs_runtime::Jobs;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

use super::floor::Floor;
use super::floor_postgres::PostgresFloor;
use super::floor_sqlite::SqliteFloor;
use super::{Result, Store};

/// What databases are made on.
pub(crate) enum Server {
    Sqlite,
    Postgres { url: String },
}

impl Server {
    pub(crate) fn of(store: Store, url: Option<&str>) -> Result<Self> {
        match (store, url) {
            (Store::Sqlite, _) => Ok(Self::Sqlite),
            (Store::Postgres, Some(url)) => Ok(Self::Postgres { url: url.to_owned() }),
            (Store::Postgres, None) => {
                Err("PostgreSQL is measured on a server that `--url postgres://…` names".into())
            }
        }
    }
}

/// A fresh database with the schema of the framework's store, which the floor works on too.
pub(crate) struct Place {
    url: String,
    made: Made,
}

enum Made {
    File(TempDir),
    Database { server: String, name: String },
}

impl Place {
    pub(crate) async fn make(server: &Server) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let place = match server {
            Server::Sqlite => {
                let folder = tempfile::tempdir()?;
                let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
                Self { url, made: Made::File(folder) }
            }
            Server::Postgres { url } => {
                let nth = NEXT.fetch_add(1, Ordering::Relaxed);
                let name = format!("jobs_bench_{}_{nth}", std::process::id());
                admin(url, &format!("CREATE DATABASE {name}")).await?;
                let made = Made::Database { server: url.clone(), name: name.clone() };
                Self { url: with_database(url, &name)?, made }
            }
        };
        // The framework's own migration makes the tables that both sides use.
        drop(Jobs::open(&place.url).await?);
        Ok(place)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn store(&self) -> Store {
        match self.made {
            Made::File(_) => Store::Sqlite,
            Made::Database { .. } => Store::Postgres,
        }
    }

    pub(crate) async fn floor(&self) -> Result<Box<dyn Floor>> {
        Ok(match self.store() {
            Store::Sqlite => Box::new(SqliteFloor::open(&self.url).await?),
            Store::Postgres => Box::new(PostgresFloor::open(&self.url).await?),
        })
    }

    pub(crate) async fn remove(self) -> Result<()> {
        match self.made {
            Made::File(folder) => {
                // A store's writer folds the log into the file after its last handle is dropped.
                for _ in 0..100 {
                    if std::fs::remove_dir_all(folder.path()).is_ok() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            Made::Database { server, name } => {
                admin(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await?;
            }
        }
        Ok(())
    }
}

async fn admin(url: &str, sql: &str) -> Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// The address of another database on the same server.
fn with_database(url: &str, name: &str) -> Result<String> {
    let (rest, query) =
        url.split_once('?').map_or((url, None), |(rest, query)| (rest, Some(query)));
    let (scheme, rest) = rest.split_once("://").ok_or("the address has no `://`")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Ok(format!("{scheme}://{authority}/{name}{query}"))
}
