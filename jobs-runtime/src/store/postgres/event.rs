//! The history of jobs.

use jobs_core::store::Author;
use jobs_core::{Fence, NewEvent};

use super::error::Attempt;
use super::lane::Lane;
use super::sql::Statements;

/// A line of history with its number.
pub(super) struct Line {
    pub(super) fence: Fence,
    pub(super) number: i64,
    pub(super) event: NewEvent,
}

/// The number of a job's next event, when so many were written before.
pub(super) fn next(written: i64) -> i64 {
    written.clamp(0, i64::MAX - 1) + 1
}

/// Writes lines of history.
pub(super) async fn record_events(
    lane: &mut Lane<'_>,
    statements: &Statements,
    by: Option<&Author>,
    lines: &[Line],
) -> Attempt<()> {
    fn each<'a, T>(lines: &[&'a Line], of: impl Fn(&'a Line) -> T) -> Vec<T> {
        lines.iter().copied().map(of).collect()
    }
    if lines.is_empty() {
        return Ok(());
    }
    // Two lines of one job have one number where no larger one is left; one statement writes a row once.
    let place = |line: &Line| (line.fence.job, line.number);
    let is_last = |pair: &[Line]| pair.len() < 2 || place(&pair[0]) != place(&pair[1]);
    let lines: Vec<&Line> = (0..lines.len())
        .filter(|nth| is_last(&lines[*nth..lines.len().min(nth + 2)]))
        .map(|nth| &lines[nth])
        .collect();
    let statement = statements
        .record_events()
        .bind(each(&lines, |line| line.fence.job.0))
        .bind(each(&lines, |line| line.number))
        .bind(each(&lines, |line| line.fence.claim.0))
        .bind(each(&lines, |line| line.event.kind.as_str()))
        .bind(each(&lines, |line| line.event.class.as_str()))
        .bind(each(&lines, |line| line.event.text.as_str()))
        .bind(by.and_then(|by| by.worker).map(|worker| worker.0))
        .bind(by.map(|by| by.build.as_str().to_owned()));
    lane.fetch(statement).await?;
    Ok(())
}
