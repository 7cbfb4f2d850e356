//! Scheduled jobs become ready; finished ones go.

use std::time::Duration;

use jobs_core::store::{Promoted, Retention, WORKERS_KEPT};
use jobs_core::{Route, micros};
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::Attempt;
use super::row::Columns;

impl PostgresStore {
    pub(super) async fn promote_due(&self, limit: u32) -> Attempt<Promoted> {
        let statement = self.statements().promote().bind(i64::from(limit));
        let rows = self.lanes().one(statement).await?;
        let Some(row) = rows.first() else {
            return Ok(Promoted::default());
        };
        let mut columns = Columns::of(row);
        let promoted = Promoted {
            count: count(columns.next()?),
            next_in: columns.next::<Option<i64>>()?.map(span),
        };
        self.ring_if(promoted.count > 0);
        Ok(promoted)
    }

    pub(super) async fn routes_refused(&self) -> Attempt<Vec<Route>> {
        let rows = self.lanes().one(self.statements().refused_routes()).await?;
        rows.iter().map(|row| Ok(Route::from_store(Columns::of(row).next::<String>()?))).collect()
    }

    pub(super) async fn recall_refused(&self, routes: &[Route], limit: u32) -> Attempt<u32> {
        let names: Vec<&str> = routes.iter().map(Route::as_str).collect();
        let statement = self.statements().recall().bind(names).bind(i64::from(limit));
        let recalled = counted(&self.lanes().one(statement).await?)?;
        self.ring_if(recalled > 0);
        Ok(recalled)
    }

    pub(super) async fn prune_finished(&self, kept: Retention, limit: u32) -> Attempt<u32> {
        let statement = self
            .statements()
            .prune()
            .bind(micros(kept.succeeded))
            .bind(micros(kept.cancelled))
            .bind(micros(kept.dead))
            .bind(i64::from(limit));
        let pruned = counted(&self.lanes().one(statement).await?)?;
        if pruned < limit {
            // Nothing old is left: time for the rest of the housekeeping.
            let workers = self.statements().prune_workers().bind(micros(WORKERS_KEPT));
            self.lanes().one(workers).await?;
            let builds = self.statements().prune_builds().bind(micros(WORKERS_KEPT));
            self.lanes().one(builds).await?;
            self.lanes().one(self.statements().forget_cancel_requests()).await?;
            self.lanes().one(self.statements().forget_abandoned()).await?;
        }
        Ok(pruned)
    }

    /// A snapshot that is held for long: every claim walks past what vacuum can't remove.
    pub(super) async fn held_snapshot(&self, lasting: Duration) -> Attempt<Vec<String>> {
        let statement = self.statements().held_snapshot().bind(micros(lasting));
        let warning = |row: &PgRow| {
            let mut columns = Columns::of(row);
            let (who, held): (String, i64) = (columns.next()?, columns.next()?);
            Ok(format!(
                "{who}, has held a snapshot for {} s: until it ends, vacuum can't remove the rows \
                 that runs leave behind, and claims become slower",
                span(held).as_secs()
            ))
        };
        self.lanes().one(statement).await?.iter().map(warning).collect()
    }
}

fn counted(rows: &[PgRow]) -> Attempt<u32> {
    rows.first().map_or(Ok(0), |row| Columns::of(row).next().map(count))
}

fn count(rows: i64) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

fn span(us: i64) -> Duration {
    Duration::from_micros(us.max(0).unsigned_abs())
}
