//! `jobs migrate`: the schema, for roles and pipelines that keep migrations apart from workers.
//!
//! A dry run connects to nothing and writes nothing but SQL.

use clap::Args;

use super::Context;
use super::database::Scheme;
use super::exit::Result;
use super::output::{json, print, say};
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Print the SQL that makes the schema from nothing, and connect to nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let (url, scheme) = cx.globals.address()?;
        if self.dry_run {
            return print(&match scheme {
                Scheme::Postgres => PostgresStore::migration_sql(cx.globals.schema()),
                Scheme::Sqlite => SqliteStore::migration_sql(),
            });
        }
        let jobs = cx.globals.builder().open(url).await?;
        if cx.output.is_json {
            return json(&serde_json::json!({ "store": jobs.store_id().0 }));
        }
        say(&format!("jobs: {} has the schema of this build", cx.globals.place()?));
        Ok(())
    }
}
