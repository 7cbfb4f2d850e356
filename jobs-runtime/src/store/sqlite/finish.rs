//! Statements that answer nothing but how many rows they wrote.

use futures_util::TryStreamExt;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Either, Executor, Sqlite, SqliteConnection};

/// Runs a text of one statement that answers no rows, and answers how many it wrote.
///
/// The driver's own `execute` waits on for the end of its stream of results, where a text has several
/// statements: the end comes a moment after the only result, and wakes the caller a second time.
///
/// # Cancel safety
/// A dropped call happens as a whole or not at all.
pub(super) async fn finish(
    connection: &mut SqliteConnection,
    statement: Query<'_, Sqlite, SqliteArguments>,
) -> Result<u64, sqlx::Error> {
    let mut results = connection.fetch_many(statement);
    while let Some(result) = results.try_next().await? {
        match result {
            Either::Left(done) => return Ok(done.rows_affected()),
            Either::Right(_) => {}
        }
    }
    Ok(0)
}
