//! Runs that are taken from their worker, by a sweep or as it closes.

use std::time::Duration;

use jobs_core::store::{Author, Sweep};
use jobs_core::{
    Clock as _, Ending, JobId, Ladder, Random, Run, SeededRandom, Settlement, State, transition,
};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::error::Attempt;
use super::lane::Lane;
use super::row;
use super::settle::{Taking, write};
use super::sql::Statements;
use crate::clock::SystemClock;
use crate::store::poison::Halves;

/// For so long those are looked for whose key is held; what is left then is left as they are. A close has half a
/// second of a usual drain.
const LONGEST_SEARCH: Duration = Duration::from_millis(200);

/// How runs are taken from their worker.
pub(super) struct Taken<'a> {
    pub(super) by: &'a Author,
    pub(super) ending: Ending,
    pub(super) draw: u64,
    /// The sweep that noticed, where their worker did not tell itself.
    pub(super) noticed: Option<&'a Sweep>,
}

impl Taken<'_> {
    /// Takes back runs that this transaction has locked, but for those whose unique key another transaction
    /// holds: waiting for it would hold up all others, for as long as an application likes.
    pub(super) async fn back_but_held(
        &self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[&PgRow],
    ) -> Attempt<Vec<(JobId, State)>> {
        let mut taken = Vec::new();
        lane.hurry().await?;
        if self.part(lane, statements, rows, &mut taken).await? {
            return Ok(taken);
        }
        lane.hardly_wait().await?;
        let over_at = SystemClock.elapsed().saturating_add(LONGEST_SEARCH);
        let (mut keyed, mut plain) = (Vec::new(), Vec::new());
        for row in rows {
            let alike = if row.try_get("has_key")? { &mut keyed } else { &mut plain };
            alike.push(*row);
        }
        // These wait for nobody.
        self.part(lane, statements, &plain, &mut taken).await?;
        let mut halves = Halves::of(keyed);
        while SystemClock.elapsed() < over_at
            && let Some(part) = halves.next()
        {
            if !self.part(lane, statements, &part, &mut taken).await? {
                let _whose_key_is_held = halves.failed(part);
            }
        }
        Ok(taken)
    }

    /// Takes back a part of them, or none of it where the key of one is held.
    async fn part(
        &self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[&PgRow],
        taken: &mut Vec<(JobId, State)>,
    ) -> Attempt<bool> {
        lane.mark().await?;
        match self.back(lane, statements, rows).await {
            Ok(back) => {
                lane.keep().await?;
                taken.extend(back);
                Ok(true)
            }
            Err(trouble) => {
                if trouble.is_locked() || trouble.is_of_a_row() {
                    lane.undo().await?;
                }
                if trouble.is_locked() { Ok(false) } else { Err(trouble) }
            }
        }
    }

    /// Takes back runs that this transaction has locked.
    async fn back(
        &self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[&PgRow],
    ) -> Attempt<Vec<(JobId, State)>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let runs = rows.iter().copied().map(row::run).collect::<Attempt<Vec<Run>>>()?;
        let settlements: Vec<Settlement> = runs.iter().map(|run| self.settlement(run)).collect();
        let batch: Vec<&Settlement> = settlements.iter().collect();
        let states = write(lane, statements, self.by, &batch, Taking::Back).await?;
        let jobs = runs.iter().map(|run| run.fence.job);
        Ok(jobs.zip(states).filter_map(|(job, state)| state.map(|state| (job, state))).collect())
    }

    fn settlement(&self, run: &Run) -> Settlement {
        let draw = SeededRandom::new(self.draw ^ run.fence.job.0.unsigned_abs()).draw();
        let settlement = transition(run, &self.ending, &Ladder::default(), draw);
        match self.noticed {
            Some(sweep) => sweep.noticed(settlement),
            None => settlement,
        }
    }
}
