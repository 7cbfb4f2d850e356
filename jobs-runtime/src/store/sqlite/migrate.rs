//! Bringing a file to the schema of this build.
//!
//! 1. Any number of processes may do it at once: one does, the others find it done.
//! 2. It is one transaction, so a process that is ended half-way leaves nothing.
//! 3. A file that a newer build has brought further is used only where that build vouches for it.

use jobs_core::{Random, StoreError, StoreErrorKind, StoreId, Timestamp};
use sqlx::{Row, SqliteConnection};

use super::error::{During, Result};
use super::options::Migration;
use super::sql;
use super::turn::Turn;

/// The steps from an empty file, in order.
const STEPS: [&str; 1] = [include_str!("migrations/0001_begin.sql")];
/// What the last step leads to.
pub(super) const SCHEMA_VERSION: i64 = 1;
/// The oldest schema version whose builds may use a file of [`SCHEMA_VERSION`].
const MIN_READER: i64 = 1;

/// What a file says of itself.
struct Meta {
    id: StoreId,
    version: i64,
    min_reader: i64,
}

/// Migrates a file and answers which store it is.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    turn: &Turn,
    now: Timestamp,
    random: &dyn Random,
    migration: Migration,
) -> Result<StoreId> {
    if let Some(meta) = usable(meta(connection).await?)?
        && meta.version >= SCHEMA_VERSION
    {
        return Ok(meta.id);
    }
    if migration == Migration::Require {
        let text = "the schema of jobs is not there or not up to date; run `jobs migrate`";
        return Err(StoreError::new(StoreErrorKind::Schema, text));
    }
    turn.begin(connection).await?;
    let migrated = step(connection, now, random).await;
    let end = if migrated.is_ok() { sql::COMMIT } else { sql::ROLLBACK };
    let ended = sqlx::query(end).execute(connection).await.during("migrating the database");
    let id = migrated?;
    ended.map(|_| id)
}

/// The SQL that makes the schema from nothing, as a migration would run it.
pub(super) fn whole_sql() -> String {
    format!(
        "BEGIN IMMEDIATE;\n{}\nINSERT INTO jobs_meta (one, store_id, schema_version, min_reader, \
         created_at_us)\nVALUES (1, lower(hex(randomblob(16))), {SCHEMA_VERSION}, {MIN_READER},\n    \
         CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));\nCOMMIT;\n",
        STEPS.join("\n")
    )
}

async fn step(tx: &mut SqliteConnection, now: Timestamp, random: &dyn Random) -> Result<StoreId> {
    let found = usable(meta(tx).await?)?;
    let done = found.as_ref().map_or(0, |meta| meta.version);
    let from = usize::try_from(done).unwrap_or(usize::MAX).min(STEPS.len());
    for step in &STEPS[from..] {
        sqlx::raw_sql(*step).execute(&mut *tx).await.during("migrating the database")?;
    }
    match found {
        Some(meta) if meta.version >= SCHEMA_VERSION => Ok(meta.id),
        Some(meta) => {
            let advance = sqlx::query(sql::META_ADVANCE).bind(SCHEMA_VERSION).bind(MIN_READER);
            advance.execute(tx).await.during("migrating the database")?;
            Ok(meta.id)
        }
        None => {
            let id = format!("{:016x}{:016x}", random.draw(), random.draw());
            let begin = sqlx::query(sql::META_BEGIN).bind(&id).bind(SCHEMA_VERSION);
            let begin = begin.bind(MIN_READER).bind(now.as_micros());
            begin.execute(tx).await.during("migrating the database")?;
            Ok(StoreId(id))
        }
    }
}

async fn meta(connection: &mut SqliteConnection) -> Result<Option<Meta>> {
    let row = match sqlx::query(sql::META).fetch_optional(connection).await {
        Err(error) if is_missing(&error) => return Ok(None),
        row => row.during("reading the schema's version")?,
    };
    let Some(row) = row else { return Ok(None) };
    let meta = || -> Result<Meta, sqlx::Error> {
        Ok(Meta {
            id: StoreId(row.try_get(0)?),
            version: row.try_get(1)?,
            min_reader: row.try_get(2)?,
        })
    };
    meta().map(Some).during("reading the schema's version")
}

/// Whether this build may go on with a file that says so while it is in use.
pub(super) fn usable_after(min_reader: i64) -> Result<()> {
    if min_reader <= SCHEMA_VERSION {
        return Ok(());
    }
    let text = format!(
        "the schema was migrated and now needs a build that knows version {min_reader} of it; this \
         one knows {SCHEMA_VERSION}: deploy the newer build"
    );
    Err(StoreError::new(StoreErrorKind::Schema, text))
}

fn is_missing(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.message() == "no such table: jobs_meta")
}

fn usable(meta: Option<Meta>) -> Result<Option<Meta>> {
    match meta {
        Some(meta) if meta.min_reader > SCHEMA_VERSION => Err(StoreError::new(
            StoreErrorKind::Schema,
            format!(
                "the database has schema version {}, which builds of schema version {} or newer can \
                 use, and this build has {SCHEMA_VERSION}; deploy a newer build",
                meta.version, meta.min_reader
            ),
        )),
        usable => Ok(usable),
    }
}
