//! Many rows, written in halves where one of them would spoil it for all.
//!
//! One transaction locks the rows and writes them part by part, each under a savepoint, so that all but those
//! at fault are written by one commit. A constraint that speaks only at the commit is asked at each part.
//! What a known row does to a call, and when it is tried again: [`Poison`](crate::store::poison::Poison).

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
use crate::store::poison::Halves;

/// A change of many rows.
pub(super) trait Change {
    /// What is done, as "could not …" goes on.
    fn doing(&self) -> &'static str;

    /// Writes rows that this transaction has locked; answers how many it wrote.
    async fn write(
        &mut self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[&PgRow],
    ) -> Attempt<usize>;
}

/// What became of rows that were written in halves.
pub(super) struct Written {
    pub(super) rows: usize,
    /// How many can't be written at all.
    poison: usize,
    /// Why the rest was not tried.
    given_up: Option<Trouble>,
}

impl PostgresStore {
    /// Writes at most `limit` rows of those that the change is about.
    pub(super) async fn in_halves(&self, many: &Many<'_>, limit: u32) -> Attempt<u32> {
        let mut lane = self.lanes().begin(Wait::Brief).await?;
        lane.check_at_once().await?;
        let (mut rows, mut given_up) = (0, None);
        while rows < limit && given_up.is_none() {
            let paused = self.poison().paused(SystemClock.elapsed());
            let most = (limit - rows).saturating_add(paused);
            let locked = lane.fetch(many.lock(self.statements(), most)).await?;
            let most = limit - rows;
            let written = self.write_in_halves(&mut lane, &mut &*many, &locked, most).await?;
            rows = rows.saturating_add(u32::try_from(written.rows).unwrap_or(u32::MAX));
            given_up = written.given_up;
            if written.poison == 0 {
                break;
            }
        }
        lane.commit().await?;
        match given_up {
            // Nothing at all is to be written.
            Some(trouble) if rows == 0 => Err(trouble),
            Some(_) | None => Ok(rows),
        }
    }

    /// Writes rows that this transaction has locked, whose first column is the job, at most so many. Passes
    /// over those that are known to fail.
    pub(super) async fn write_in_halves(
        &self,
        lane: &mut Lane<'_>,
        change: &mut impl Change,
        rows: &[PgRow],
        most: u32,
    ) -> Attempt<Written> {
        let now = SystemClock.elapsed();
        let mut tried = Vec::new();
        for row in rows {
            let job = JobId(Columns::of(row).next()?);
            if !self.poison().is_paused(job, now) {
                tried.push((job, row));
            }
        }
        tried.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let mut halves = Halves::of(tried);
        let mut written = Written { rows: 0, poison: 0, given_up: None };
        while let Some(part) = halves.next() {
            let rows: Vec<&PgRow> = part.iter().map(|(_, row)| *row).collect();
            lane.mark().await?;
            match change.write(lane, self.statements(), &rows).await {
                Ok(count) => {
                    lane.keep().await?;
                    written.rows += count;
                    halves.written();
                    self.poison().cured(part.into_iter().map(|(job, _)| job));
                }
                Err(trouble) if trouble.is_of_a_row() => {
                    lane.undo().await?;
                    if let Some((job, _)) = halves.failed(part) {
                        written.poison += 1;
                        let told = trouble.told();
                        self.poison().found(job, change.doing(), &told, SystemClock.elapsed());
                        written.given_up = halves.is_given_up().then_some(trouble);
                    }
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(written)
    }
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
    fn doing(&self) -> &'static str {
        match self {
            Many::Promote => "promote a job",
            Many::Recall(_) => "recall a refused job",
            Many::Expire => "end an expired job",
            Many::Prune(_) => "prune a job",
        }
    }

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
