//! Ready jobs whose queue, kind or version is no UTF-8.
//!
//! Claims go by queue and route, which are texts, so no claim reaches such a row and no build can
//! judge it. A sweep ends it as the contract ends a version that can't be read: dead, with a reason,
//! in its history too. What can't be read behind the version's second dot is claimed and judged like
//! any other.

use jobs_core::store::Author;
use jobs_core::{EventKind, NewEvent, Timestamp};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::error::{During, Result};
use super::event::{self, Line};
use super::row::Columns;
use super::sql;

const DOING: &str = "ending jobs that can't be read";
const CLASS: &str = "malformed_version";
const TEXT: &str = "the queue, the kind or the version is no UTF-8, so no build can read it";

/// Ends at most `limit` of them a queue and route.
pub(super) async fn end_unreadable(
    tx: &mut SqliteConnection,
    now: Timestamp,
    by: &Author,
    limit: u32,
) -> Result<()> {
    let rows = sqlx::query(sql::READY_ROUTES).fetch_all(&mut *tx).await.during(DOING)?;
    let mut lines = Vec::new();
    for row in &rows {
        let mut columns = Columns::new(row);
        let (queue, route) = (columns.bytes().during(DOING)?, columns.bytes().during(DOING)?);
        if [queue, route].into_iter().all(|text| std::str::from_utf8(text).is_ok()) {
            continue;
        }
        let end = sqlx::query(sql::UNREADABLE).bind(queue).bind(route).bind(limit);
        let end = end.bind(now.as_micros()).bind(CLASS).bind(TEXT);
        let ended = end.fetch_all(&mut *tx).await.during(DOING)?;
        lines.extend(ended.iter().map(line).collect::<Result<Vec<_>, _>>().during(DOING)?);
    }
    event::record(tx, now, Some(by), &lines).await
}

fn line(row: &SqliteRow) -> Result<Line, sqlx::Error> {
    let mut columns = Columns::new(row);
    let fence = columns.fence()?;
    let (class, text) = (CLASS.to_owned(), TEXT.to_owned());
    let event = NewEvent { kind: EventKind::Failed, class, text };
    Ok(Line { fence, number: columns.number()?, event })
}
