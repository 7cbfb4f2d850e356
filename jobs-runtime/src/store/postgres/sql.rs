//! The statements: one file each under `sql/`, with the schema's name put in once, at open.
//!
//! Nothing else is ever written into SQL; every value is bound.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

/// A statement on its way, with what is bound to it so far.
pub(super) type Statement = Query<'static, Postgres, PgArguments>;

macro_rules! statements {
    ($($name:ident),* $(,)?) => {
        /// Every statement of the store, for one schema.
        #[derive(Debug)]
        pub(super) struct Statements {
            $($name: SqlStr,)*
        }

        impl Statements {
            /// The statements over a schema of this name.
            pub(super) fn new(schema: &str) -> Self {
                Self {
                    $($name: placed(
                        include_str!(concat!("sql/", stringify!($name), ".sql")),
                        schema,
                    ),)*
                }
            }

            $(pub(super) fn $name(&self) -> Statement {
                sqlx::query(self.$name.clone())
            })*

            /// Every statement by the name of its file, for a test that prepares them all.
            #[doc(hidden)]
            pub(super) fn all(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($name), self.$name.as_str()),)*]
            }
        }
    };
}

statements! {
    cancel_waiting, checkpoint, claim, claimed_checkpoints, close, counts, done, enqueue,
    enqueue_twins, enqueue_unique, events, exhausted, forget_cancel_requests, forget_checkpoints,
    held, held_runs, job, jobs, lost_runs, meta, notify, operate_read, pause, paused, promote, prune,
    prune_workers, recall, record_events, redrive, refused_routes, register, renew, request_cancel,
    reread, resume, routes, run_now, same_store, settle, settle_done, settle_read, standing, states,
    states_settled, take_back, worker_open, workers,
}

/// A text of ours over a schema: its name quoted, and the comments left out.
pub(super) fn placed(text: &str, schema: &str) -> SqlStr {
    let code: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    let sql = in_schema(&code.join("\n"), schema);
    AssertSqlSafe(std::sync::Arc::<str>::from(sql)).into_sql_str()
}

/// A text of ours with a schema's name put in where it says so.
pub(super) fn in_schema(text: &str, schema: &str) -> String {
    let quoted = identifier(schema);
    let sequence = literal(&format!("{quoted}.job_id_seq"));
    text.replace("{schema}", &quoted).replace("{job_ids}", &sequence)
}

/// A name as an identifier, whatever characters it has.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
