//! `jobs migrate`: the schema, for roles and pipelines that keep migrations apart from workers.
//!
//! A dry run connects to nothing and writes nothing but SQL.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::Result;
use super::output::{json, print, say};
use crate::store::Scheme;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Print the SQL that makes the schema from nothing, and connect to nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    store: &'a str,
    schema_version: u32,
    /// Whether it was there before.
    was_there: bool,
}

#[derive(Serialize)]
struct DryAnswer {
    sql: String,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let (url, scheme) = cx.globals.address()?;
        let (sql, schema_version) = match scheme {
            Scheme::Postgres => {
                (PostgresStore::migration_sql(cx.globals.schema()), PostgresStore::SCHEMA_VERSION)
            }
            Scheme::Sqlite => (SqliteStore::migration_sql(), SqliteStore::SCHEMA_VERSION),
        };
        if self.dry_run {
            return if cx.output.is_json { json(&DryAnswer { sql }) } else { print(&sql) };
        }
        let was_there = match cx.globals.builder().require_migrated().open(url).await {
            Ok(_) => true,
            // Not that it was not there.
            Err(error) if error.is_transient() => return Err(error.into()),
            Err(_) => false,
        };
        let jobs = cx.globals.builder().open(url).await?;
        if cx.output.is_json {
            let store = &*jobs.store_id().0;
            return json(&Answer { store, schema_version, was_there });
        }
        let place = cx.globals.place()?;
        say(&if was_there {
            format!("jobs: {place} is at schema {schema_version}, as this build needs it")
        } else {
            format!("jobs: made schema {schema_version} in {place}")
        });
        Ok(())
    }
}
