//! Scheduled jobs become ready; finished ones go.

use std::future::Future;
use std::time::Duration;

use jobs_core::store::{EXPIRED, Promoted, Retention, WORKERS_KEPT};
use jobs_core::{Clock as _, EventKind, JobId, NewEvent, Route, micros};
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::Attempt;
use super::event::{Line, record_events};
use super::halves::Many;
use super::lane::{Lane, Wait};
use super::row::Columns;
use super::sql::Statements;
use crate::clock::SystemClock;
use crate::store::poison::Operation;

/// What the error of an expired job says.
pub(super) const EXPIRED_TEXT: &str = "no run was started in time";

impl PostgresStore {
    pub(super) async fn promote_due(&self, limit: u32) -> Attempt<Promoted> {
        let promoted = if self.poison().is_known(Operation::Promote) {
            self.promote_in_halves(limit).await?
        } else {
            match self.promote_together(limit).await {
                Err(trouble) if trouble.is_of_a_row() => self.promote_in_halves(limit).await?,
                done => done?,
            }
        };
        self.ring_if(promoted.count > 0);
        Ok(promoted)
    }

    async fn promote_together(&self, limit: u32) -> Attempt<Promoted> {
        let statement = self.statements().promote().bind(i64::from(limit));
        let rows = self.lanes().one(statement).await?;
        let Some(row) = rows.first() else {
            return Ok(Promoted::default());
        };
        let mut columns = Columns::of(row);
        Ok(Promoted {
            count: count(columns.next()?),
            next_in: columns.next::<Option<i64>>()?.map(span),
        })
    }

    async fn promote_in_halves(&self, limit: u32) -> Attempt<Promoted> {
        let promoted = self.in_halves(&Many::Promote, limit).await?;
        let now = SystemClock.elapsed();
        let paused = i64::from(self.poison().paused(Operation::Promote, now));
        let rows = self.lanes().one(self.statements().next_due().bind(paused + 1)).await?;
        let due = |row: &PgRow| {
            let mut columns = Columns::of(row);
            Ok((JobId(columns.next()?), span(columns.next()?)))
        };
        let due = rows.iter().map(due).collect::<Attempt<Vec<_>>>()?;
        let due_in = self.poison().first_free(Operation::Promote, due, now);
        let retried_in = self.poison().next_in(Operation::Promote, now);
        let next_in = due_in.into_iter().chain(retried_in).min();
        Ok(Promoted { count: promoted, next_in })
    }

    /// Makes a call that writes many rows at once; in halves where a row is in the way of the others.
    async fn written(
        &self,
        together: impl Future<Output = Attempt<u32>>,
        many: Many<'_>,
        limit: u32,
    ) -> Attempt<u32> {
        if self.poison().is_known(many.operation()) {
            return self.in_halves(&many, limit).await;
        }
        match together.await {
            Err(trouble) if trouble.is_of_a_row() => self.in_halves(&many, limit).await,
            done => done,
        }
    }

    pub(super) async fn routes_refused(&self) -> Attempt<Vec<Route>> {
        let rows = self.lanes().one(self.statements().refused_routes()).await?;
        rows.iter().map(|row| Ok(Route::from_store(Columns::of(row).next::<String>()?))).collect()
    }

    pub(super) async fn recall_refused(&self, routes: &[Route], limit: u32) -> Attempt<u32> {
        let names: Vec<&str> = routes.iter().map(Route::as_str).collect();
        let statement = self.statements().recall().bind(names.clone()).bind(i64::from(limit));
        let together = async { counted(&self.lanes().one(statement).await?) };
        let recalled = self.written(together, Many::Recall(&names), limit).await?;
        self.ring_if(recalled > 0);
        Ok(recalled)
    }

    pub(super) async fn expire_waiting(&self, limit: u32) -> Attempt<u32> {
        let together = async {
            let most = i64::from(limit);
            let statement = self.statements().expire().bind(most).bind(EXPIRED).bind(EXPIRED_TEXT);
            let mut lane = self.lanes().begin(Wait::Brief).await?;
            let ended = lane.fetch(statement).await?;
            record_expired(&mut lane, self.statements(), &ended).await?;
            lane.commit().await?;
            Ok(u32::try_from(ended.len()).unwrap_or(u32::MAX))
        };
        self.written(together, Many::Expire, limit).await
    }

    pub(super) async fn prune_finished(&self, kept: Retention, limit: u32) -> Attempt<u32> {
        let most = i64::from(limit);
        let statement = self
            .statements()
            .prune()
            .bind(micros(kept.succeeded))
            .bind(micros(kept.cancelled))
            .bind(micros(kept.dead))
            .bind(most);
        let together = async { counted(&self.lanes().one(statement).await?) };
        let pruned = match self.written(together, Many::Prune(kept), limit).await {
            // What refuses these rows is nothing to the others.
            Err(trouble) if trouble.is_of_a_row() => Err(trouble),
            pruned => Ok(pruned?),
        };
        if pruned.as_ref().is_ok_and(|pruned| *pruned >= limit) {
            return pruned;
        }
        // Little that is old is left: time for the rest of the housekeeping.
        self.prune_the_rest(most).await?;
        pruned
    }

    /// Forgets workers, builds and notes that nobody asks for any more.
    async fn prune_the_rest(&self, most: i64) -> Attempt<()> {
        let (statements, long_ago) = (self.statements(), micros(WORKERS_KEPT));
        let workers = statements.prune_workers().bind(long_ago).bind(most);
        let workers = self.lanes().one(workers).await?;
        let workers = workers.iter().map(|row| Columns::of(row).next());
        let workers = workers.collect::<Attempt<Vec<i64>>>()?;
        if !workers.is_empty() {
            self.lanes().one(statements.prune_declarations().bind(workers)).await?;
        }
        self.lanes().one(statements.prune_builds().bind(long_ago).bind(most)).await?;
        self.lanes().one(statements.forget_cancel_requests().bind(most)).await?;
        self.lanes().one(statements.forget_abandoned().bind(most)).await.map(drop)
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

    /// Notifications that pile up, because a session listens and stays in a transaction.
    pub(super) async fn queued_notifications(&self) -> Attempt<Vec<String>> {
        let statement = self.statements().notification_queue();
        let warning = |row: &PgRow| {
            let mut columns = Columns::of(row);
            let (percent, who): (i32, Option<String>) = (columns.next()?, columns.next()?);
            let who = who.unwrap_or_else(|| "none of this database".to_owned());
            Ok(format!(
                "the server's queue of notifications is {percent} % full: a session that listens stays in a \
                 transaction (idle in one for the longest: {who}). From 50 % on workers hear of new jobs only \
                 when they poll; when it is full, other programs' notifying commits fail"
            ))
        };
        self.lanes().one(statement).await?.iter().map(warning).collect()
    }
}

/// Writes the history of jobs that were ended because no run was started in time.
pub(super) async fn record_expired(
    lane: &mut Lane<'_>,
    statements: &Statements,
    ended: &[PgRow],
) -> Attempt<()> {
    let line = |row| {
        let mut columns = Columns::of(row);
        let (fence, number) = (columns.fence()?, columns.next()?);
        let (class, text) = (EXPIRED.to_owned(), EXPIRED_TEXT.to_owned());
        Ok(Line { fence, number, event: NewEvent { kind: EventKind::Failed, class, text } })
    };
    let lines = ended.iter().map(line).collect::<Attempt<Vec<Line>>>()?;
    record_events(lane, statements, None, &lines).await
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
