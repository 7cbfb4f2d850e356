//! `jobs migrate`: the schema, for roles and pipelines that keep migrations apart from workers.
//!
//! 1. Exit status: 0, the schema is up to date; 75, it may be so after another try, the server was
//!    away or busy; 1, another try is in vain until somebody acts on the message; 2, the command
//!    itself is wrong.
//! 2. No message repeats the address, and so none shows a password.
//! 3. A dry run connects to nothing and writes nothing but SQL.

use std::process::ExitCode;

use clap::Args;
use jobs_runtime::store::postgres::PostgresStore;
use jobs_runtime::store::sqlite::SqliteStore;
use jobs_runtime::{Jobs, chain};

/// The system's word for a failure that passes.
const TRY_AGAIN: u8 = 75;
const WRONG_COMMAND: u8 = 2;

/// What is migrated, and how.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 up to date, 75 try again later (server away or busy), \
                        1 see the message, 2 wrong command.")]
pub(crate) struct Options {
    /// The database: `postgres://user@host/database` or `sqlite://app.db`. A password may also
    /// stand in `PGPASSWORD` or a password file.
    url: String,
    /// The schema, on PostgreSQL. Default: `jobs`.
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// Prints the SQL that makes the schema from nothing, and connects to nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Migrates, and answers the exit status.
pub(crate) async fn run(options: &Options) -> ExitCode {
    let scheme = options.url.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_postgres = match scheme {
        "postgres" | "postgresql" => true,
        "sqlite" => false,
        _ => return wrong("the address begins with neither `postgres://` nor `sqlite://`"),
    };
    if !is_postgres && options.schema.is_some() {
        return wrong("a SQLite file has no schemas; leave `--schema` out");
    }
    let schema = options.schema.as_deref().unwrap_or("jobs");
    if options.dry_run {
        let sql = if is_postgres {
            PostgresStore::migration_sql(schema)
        } else {
            SqliteStore::migration_sql()
        };
        print!("{sql}");
        return ExitCode::SUCCESS;
    }
    let name = schema.to_owned();
    let builder = Jobs::builder().postgres(move |options| options.schema(name.clone()));
    match builder.open(&options.url).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("jobs: {}", chain(&error));
            if error.is_transient() { ExitCode::from(TRY_AGAIN) } else { ExitCode::FAILURE }
        }
    }
}

fn wrong(what: &str) -> ExitCode {
    eprintln!("jobs: {what}");
    ExitCode::from(WRONG_COMMAND)
}
