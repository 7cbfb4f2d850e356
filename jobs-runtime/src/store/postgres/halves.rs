//! Many rows, written in halves where one of them would spoil it for all.
//!
//! One transaction locks the rows and writes them part by part, each under a savepoint, so that all but those
//! at fault are written by one commit. A constraint that speaks only at the commit is asked at each part.
//! Which rows a call tries, and how far it goes: [`poison`](crate::store::poison).

use std::time::Duration;

use jobs_core::store::{EXPIRED, Retention};
use jobs_core::{Clock as _, JobId, micros};
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::due::{EXPIRED_TEXT, record_expired};
use super::error::{Attempt, Trouble};
use super::lane::{Lane, Wait};
use super::row::Columns;
use super::sql::{Statement, Statements};
use crate::clock::SystemClock;
use crate::store::poison::{Call, Halves, Operation};

/// A change of many rows.
pub(super) trait Change {
    /// Writes rows that this transaction has locked; answers how many it wrote.
    async fn write(
        &mut self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[&PgRow],
    ) -> Attempt<usize>;
}

/// A call in halves goes no further after so long: what it has locked, others wait for.
const LONGEST_CALL: Duration = Duration::from_secs(1);

impl PostgresStore {
    pub(super) fn poison_call(&self, operation: Operation, limit: u32) -> Call<'_, Trouble> {
        let over_at = SystemClock.elapsed().saturating_add(LONGEST_CALL);
        self.poison().call(operation, limit).until(over_at)
    }

    /// Writes at most `limit` rows of those that the change is about.
    pub(super) async fn in_halves(&self, many: &Many<'_>, limit: u32) -> Attempt<u32> {
        let mut lane = self.lanes().begin(Wait::Brief).await?;
        lane.check_at_once().await?;
        let mut call = self.poison_call(many.operation(), limit);
        while let Some(most) = call.look(SystemClock.elapsed()) {
            let locked = lane.fetch(many.lock(self.statements(), most)).await?;
            for rows in chosen(&call, locked)? {
                self.write_in_halves(&mut lane, &mut call, &mut &*many, &rows).await?;
            }
        }
        lane.commit().await?;
        call.end()
    }

    /// Writes rows that this transaction has locked and that were chosen, whose first column is the job.
    pub(super) async fn write_in_halves(
        &self,
        lane: &mut Lane<'_>,
        call: &mut Call<'_, Trouble>,
        change: &mut impl Change,
        rows: &[PgRow],
    ) -> Attempt<()> {
        let mut halves = Halves::of(rows.iter().map(with_job).collect::<Attempt<_>>()?);
        while let Some(part) = call.next(&mut halves, SystemClock.elapsed()) {
            let rows: Vec<&PgRow> = part.iter().map(|(_, row)| *row).collect();
            lane.mark().await?;
            match change.write(lane, self.statements(), &rows).await {
                Ok(count) => {
                    lane.keep().await?;
                    call.written(part.into_iter().map(|(job, _)| job), count);
                }
                Err(trouble) if trouble.is_of_a_row() => {
                    lane.undo().await?;
                    let told = trouble.told();
                    call.failed(&mut halves, part, (trouble, &told), SystemClock.elapsed());
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }
}

/// Which of these rows, whose first column is the job, the call tries: those in the second list last.
pub(super) fn chosen(call: &Call<'_, Trouble>, locked: Vec<PgRow>) -> Attempt<[Vec<PgRow>; 2]> {
    let job = |row: PgRow| Ok((with_job(&row)?.0, row));
    let locked = locked.into_iter().map(job).collect::<Attempt<_>>()?;
    Ok(call.choose(locked, SystemClock.elapsed()))
}

fn with_job(row: &PgRow) -> Attempt<(JobId, &PgRow)> {
    Ok((JobId(Columns::of(row).next()?), row))
}

/// What the upkeep does to many rows.
#[derive(Debug)]
pub(super) enum Many<'a> {
    Promote,
    Recall(&'a [&'a str]),
    Expire,
    Prune(Retention),
}

impl Many<'_> {
    pub(super) const fn operation(&self) -> Operation {
        match self {
            Self::Promote => Operation::Promote,
            Self::Recall(_) => Operation::Recall,
            Self::Expire => Operation::Expire,
            Self::Prune(_) => Operation::Prune,
        }
    }

    /// Locks at most so many of the rows that it is about.
    fn lock(&self, statements: &Statements, limit: u32) -> Statement {
        let limit = i64::from(limit);
        match self {
            Self::Promote => statements.due().bind(limit),
            Self::Recall(routes) => {
                let routes: Vec<String> = routes.iter().map(|route| (*route).to_owned()).collect();
                statements.refused().bind(limit).bind(routes)
            }
            Self::Expire => statements.expired().bind(limit),
            Self::Prune(Retention { succeeded, cancelled, dead }) => statements
                .old()
                .bind(limit)
                .bind(micros(*succeeded))
                .bind(micros(*cancelled))
                .bind(micros(*dead)),
        }
    }
}

impl Change for &Many<'_> {
    async fn write(
        &mut self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[&PgRow],
    ) -> Attempt<usize> {
        let jobs = rows.iter().map(|row| Columns::of(row).next());
        let jobs = jobs.collect::<Attempt<Vec<i64>>>()?;
        let written = match self {
            Many::Promote | Many::Recall(_) => {
                lane.fetch(statements.make_ready().bind(jobs)).await?
            }
            Many::Expire => {
                let end = statements.end_waiting().bind(jobs).bind(EXPIRED).bind(EXPIRED_TEXT);
                let ended = lane.fetch(end).await?;
                record_expired(lane, statements, &ended).await?;
                ended
            }
            Many::Prune(_) => lane.fetch(statements.delete_finished().bind(jobs)).await?,
        };
        Ok(written.len())
    }
}
