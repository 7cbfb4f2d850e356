//! The statements: one file each under `sql/`, with the schema's name put in once, at open.
//!
//! Nothing else is ever written into SQL; every value is bound.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

/// A statement on its way, with what is bound to it so far.
pub(super) type Statement = Query<'static, Postgres, PgArguments>;

macro_rules! statements {
    (kept { $($kept:ident),* $(,)? } fresh { $($fresh:ident),* $(,)? }) => {
        /// Every statement of the store, for one schema.
        ///
        /// The kept ones are prepared once a connection, and written so that a plan made for an
        /// empty table stays right: each finds its rows by one index, and leaves the planner no
        /// order of joins to choose. The fresh ones are rare, and planned for every run.
        #[derive(Debug)]
        pub(super) struct Statements {
            $($kept: SqlStr,)*
            $($fresh: SqlStr,)*
        }

        impl Statements {
            /// The statements over a schema of this name.
            pub(super) fn new(schema: &str) -> Self {
                Self {
                    $($kept: placed(
                        include_str!(concat!("sql/", stringify!($kept), ".sql")),
                        schema,
                    ),)*
                    $($fresh: placed(
                        include_str!(concat!("sql/", stringify!($fresh), ".sql")),
                        schema,
                    ),)*
                }
            }

            $(pub(super) fn $kept(&self) -> Statement {
                sqlx::query(self.$kept.clone())
            })*

            $(pub(super) fn $fresh(&self) -> Statement {
                sqlx::query(self.$fresh.clone()).persistent(false)
            })*

            /// Every statement by the name of its file, and whether it is kept, for a test that
            /// prepares them all.
            pub(super) fn all(&self) -> Vec<(&'static str, &'static str, &str)> {
                vec![
                    $((stringify!($kept), "kept", self.$kept.as_str()),)*
                    $((stringify!($fresh), "fresh", self.$fresh.as_str()),)*
                ]
            }
        }
    };
}

statements! {
    kept {
        checkpoint, checkpoint_one, claim, claim_head, claimed_checkpoints, done, enqueue,
        enqueue_twins, enqueue_unique, held, hold, meta, note_progress, notify, promote, record_events,
        renew, reread, routes, same_store, settle_done, settle_fresh, settle_read, standing,
        sweep_due, take_duty, worker_open,
    }
    fresh {
        abandon, abandon_locked, advance, briefs, briefs_of, builds, cancel_waiting, close, count_due, counts, declare, delete_finished,
        depth_routes,
        depth_running, depth_states, due, end_waiting, enqueue_draw, enqueue_lock, enqueue_renew, enqueue_scoped, events, exhausted,
        expire, expired, forget_abandoned, forget_cancel_requests, forget_checkpoints, forget_ticks,
        give_back_duty, held_runs, held_snapshot, job, jobs, leave, lost_runs, make_ready, newest, newest_briefs, next_due,
        notification_queue, old, operate_read,
        pause, paused, prune, prune_builds, prune_declarations, prune_workers, publish, queue_turn,
        recall, reclaim, redrive, refused, refused_routes, register, report, request_cancel, reschedule,
        resume, run_now, running_in, schedule_add, schedules, settle, states, states_settled,
        strand, take_back, tick, ticked, ticks, undeclare, waiting, workers,
    }
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
