//! Migrations: embedded, run at open, one transaction for all that is missing.
//!
//! 1. Any number of processes may migrate at once: one does, the others wait and find it done.
//! 2. A migration that is cut off leaves nothing: the lock is the transaction's own, so it ends
//!    with it, through a pooler too.
//! 3. An older build works on a newer schema for as long as that schema says so (`min_reader`);
//!    after that it is told which build is needed.

use jobs_core::{StoreErrorKind, StoreId};
use sqlx::Row as _;

use super::error::{Attempt, Trouble, cause};
use super::lane::{Lane, Lanes, Wait};
use super::options::Migration;
use super::row::Columns;
use super::sql::{Statements, identifier, in_schema, placed};

/// The version of the schema that this build makes and works with.
pub(super) const SCHEMA_VERSION: i32 = 1;

const MIGRATIONS: [(i32, &str); 1] = [(1, include_str!("migrations/0001_begin.sql"))];

/// How long a migration waits for another process's, in milliseconds.
const WAIT_MS: u32 = 120_000;

/// What `meta` says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Meta {
    id: StoreId,
    version: i32,
    min_reader: i32,
}

/// Brings the schema up to date, or checks that it is, and answers the store's identity.
pub(super) async fn ready(
    lanes: &Lanes,
    statements: &Statements,
    schema: &str,
    migration: Migration,
) -> Attempt<StoreId> {
    let found = match lanes.one(statements.meta()).await {
        Ok(rows) => meta(&rows)?,
        Err(trouble) if is_absent(&trouble) => None,
        Err(trouble) => return Err(trouble),
    };
    match (judge(found.as_ref())?, migration) {
        (Verdict::Works(id), _) => Ok(id),
        (Verdict::Behind, Migration::Run) => migrate(lanes, statements, schema).await,
        (Verdict::Behind, Migration::Require) => Err(missing()),
    }
}

/// The SQL that makes the schema from nothing, as a migration would run it.
pub(super) fn whole_sql(schema: &str) -> String {
    let mut sql = format!("BEGIN;\nCREATE SCHEMA IF NOT EXISTS {};\n", identifier(schema));
    for (_, text) in MIGRATIONS {
        sql.push_str(&in_schema(text, schema));
    }
    sql.push_str("COMMIT;\n");
    sql
}

/// The error of a database that was not migrated.
pub(super) fn missing() -> Trouble {
    let what = "the schema of jobs is not there or not up to date; run `jobs migrate`";
    Trouble::new(StoreErrorKind::Schema, what)
}

enum Verdict {
    Works(StoreId),
    Behind,
}

fn judge(meta: Option<&Meta>) -> Attempt<Verdict> {
    match meta {
        Some(meta) if meta.min_reader > SCHEMA_VERSION => {
            let what = format!(
                "the schema has version {} and needs a build that knows version {} of it; this one \
                 knows {SCHEMA_VERSION}: deploy the newer build",
                meta.version, meta.min_reader
            );
            Err(Trouble::new(StoreErrorKind::Schema, what))
        }
        Some(meta) if meta.version >= SCHEMA_VERSION => Ok(Verdict::Works(meta.id.clone())),
        Some(_) | None => Ok(Verdict::Behind),
    }
}

async fn migrate(lanes: &Lanes, statements: &Statements, schema: &str) -> Attempt<StoreId> {
    let mut lane = lanes.begin(Wait::Patient).await?;
    lane.run_all(&format!(
        "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {WAIT_MS}; \
         SET LOCAL idle_in_transaction_session_timeout = 0"
    ))
    .await?;
    let lock =
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('jobs.migrate ' || $1, 0))");
    lane.fetch_patiently(lock.bind(schema.to_owned())).await?;
    let surroundings = surroundings(&mut lane, schema).await?;
    surroundings.check_encoding()?;
    let migrated = steps(&mut lane, statements, schema, &surroundings).await;
    let id = match migrated {
        Ok(id) => id,
        Err(trouble) if trouble.code().as_deref() == Some("42501") => {
            return Err(surroundings.lacks_right(schema, trouble));
        }
        Err(trouble) => return Err(trouble),
    };
    lane.commit().await?;
    Ok(id)
}

/// What the transaction that migrates finds.
struct Surroundings {
    has_schema: bool,
    has_meta: bool,
    database: String,
    role: String,
    encoding: String,
}

impl Surroundings {
    /// Whatever a payload, a result or an error says must find room, or runs could not be settled.
    /// `SQL_ASCII` keeps every byte as it comes.
    fn check_encoding(&self) -> Attempt<()> {
        let (database, encoding) = (identifier(&self.database), &self.encoding);
        if ["UTF8", "SQL_ASCII"].contains(&&**encoding) {
            return Ok(());
        }
        let what = format!(
            "the database {database} has the encoding {encoding}, which lacks most characters: a job whose \
             payload, result or error has one could not be stored or settled; keep the jobs in a database \
             with UTF8: `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`"
        );
        Err(Trouble::new(StoreErrorKind::Configuration, what))
    }

    fn lacks_right(&self, schema: &str, trouble: Trouble) -> Trouble {
        let role = identifier(&self.role);
        let grant = if self.has_schema {
            format!("GRANT CREATE, USAGE ON SCHEMA {} TO {role}", identifier(schema))
        } else {
            format!("GRANT CREATE ON DATABASE {} TO {role}", identifier(&self.database))
        };
        let what = format!(
            "this role may not make the schema of jobs; as one that may, run `{grant}`, or apply \
             the output of `jobs migrate --dry-run` and grant the use of its tables"
        );
        let error = jobs_core::StoreError::new(StoreErrorKind::ReadOnly, what);
        match trouble {
            Trouble::Sql(refusal) => error.because(cause(refusal)).into(),
            Trouble::Store(cause) => error.because(cause).into(),
        }
    }
}

async fn surroundings(lane: &mut Lane<'_>, schema: &str) -> Attempt<Surroundings> {
    let query = sqlx::query(
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1), EXISTS (SELECT FROM pg_class \
         AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = \
         'meta'), current_database()::text, current_user::text, current_setting('server_encoding')",
    );
    let rows = lane.fetch(query.bind(schema.to_owned())).await?;
    let row = rows.first().ok_or_else(missing)?;
    Ok(Surroundings {
        has_schema: row.try_get(0)?,
        has_meta: row.try_get(1)?,
        database: row.try_get(2)?,
        role: row.try_get(3)?,
        encoding: row.try_get(4)?,
    })
}

async fn steps(
    lane: &mut Lane<'_>,
    statements: &Statements,
    schema: &str,
    surroundings: &Surroundings,
) -> Attempt<StoreId> {
    let found =
        if surroundings.has_meta { meta(&lane.fetch(statements.meta()).await?)? } else { None };
    if let Verdict::Works(id) = judge(found.as_ref())? {
        return Ok(id);
    }
    if !surroundings.has_schema {
        lane.run_all(&format!("CREATE SCHEMA {}", identifier(schema))).await?;
    }
    let version = found.map_or(0, |meta| meta.version);
    for (_, text) in MIGRATIONS.into_iter().filter(|(step, _)| *step > version) {
        lane.run_all(placed(text, schema).as_str()).await?;
    }
    let meta = meta(&lane.fetch(statements.meta()).await?)?;
    meta.map(|meta| meta.id).ok_or_else(missing)
}

fn meta(rows: &[sqlx::postgres::PgRow]) -> Attempt<Option<Meta>> {
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let mut columns = Columns::of(row);
    Ok(Some(Meta {
        id: StoreId(columns.next()?),
        version: columns.next()?,
        min_reader: columns.next()?,
    }))
}

fn is_absent(trouble: &Trouble) -> bool {
    matches!(trouble.code().as_deref(), Some("42P01" | "3F000"))
}
