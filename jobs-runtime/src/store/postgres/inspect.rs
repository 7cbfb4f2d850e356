//! What people and tools look at.

use async_trait::async_trait;
use jobs_core::store::{
    Brief, BuildRecord, Count, Depth, Filter, Inspect, Paused, Span, Waiting, WorkerRecord,
};
use jobs_core::{Event, JobId, JobRecord, Route, StoreError, Timestamp};

use super::PostgresStore;
use super::error::Attempt;
use super::row::{self, Columns};
use super::sql::Statement;

#[async_trait]
impl Inspect for PostgresStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let read = async {
            let rows = self.lanes().one(self.statements().job().bind(id.0)).await?;
            rows.first().map(row::job).transpose()
        };
        read.await.map_err(|trouble: super::error::Trouble| trouble.during("read a job"))
    }

    async fn events(&self, id: JobId) -> Result<Vec<Event>, StoreError> {
        let read: Attempt<Vec<Event>> = async {
            let rows = self.lanes().one(self.statements().events().bind(id.0)).await?;
            rows.iter().filter_map(|row| row::event(row).transpose()).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("read a job's history"))
    }

    async fn jobs(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>, StoreError> {
        let read: Attempt<Vec<JobRecord>> = async {
            let statement = filtered(self.statements().jobs(), filter, i64::MIN, limit);
            let rows = self.lanes().look(statement).await?;
            rows.iter().map(row::job).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("list jobs"))
    }

    async fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>, StoreError> {
        let read: Attempt<Vec<JobRecord>> = async {
            let statement = filtered(self.statements().newest(), filter, i64::MAX, limit);
            let rows = self.lanes().look(statement).await?;
            rows.iter().map(row::job).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("list jobs"))
    }

    async fn briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>, StoreError> {
        let read: Attempt<Vec<Brief>> = async {
            let statement = filtered(self.statements().briefs(), filter, i64::MIN, limit);
            let rows = self.lanes().look(statement).await?;
            rows.iter().map(row::brief).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("list jobs"))
    }

    async fn newest_briefs(&self, filter: &Filter, limit: u32) -> Result<Vec<Brief>, StoreError> {
        let read: Attempt<Vec<Brief>> = async {
            let statement = filtered(self.statements().newest_briefs(), filter, i64::MAX, limit);
            let rows = self.lanes().look(statement).await?;
            rows.iter().map(row::brief).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("list jobs"))
    }

    async fn briefs_of(&self, jobs: &[JobId]) -> Result<Vec<Brief>, StoreError> {
        let ids: Vec<i64> = jobs.iter().map(|id| id.0).collect();
        let read: Attempt<Vec<Brief>> = async {
            let rows = self.lanes().one(self.statements().briefs_of().bind(ids)).await?;
            rows.iter().map(row::brief).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("list jobs"))
    }

    async fn depth(&self, most: u32) -> Result<Depth, StoreError> {
        let read: Attempt<Depth> = async {
            let bound = i64::from(most);
            let states = self.lanes().one(self.statements().depth_states().bind(bound)).await?;
            let routes = self.lanes().one(self.statements().depth_routes().bind(bound)).await?;
            let running = self.lanes().one(self.statements().depth_running()).await?;
            let state = |row| {
                let mut columns = Columns::of(row);
                Ok((columns.state()?, columns.next::<i64>()?.unsigned_abs()))
            };
            let route = |row| {
                let mut columns = Columns::of(row);
                let (queue, jobs) = (columns.next()?, columns.next::<i64>()?.unsigned_abs());
                Ok((queue, jobs, Timestamp::from_micros(columns.next()?)))
            };
            let queue = |row| {
                let mut columns = Columns::of(row);
                Ok((columns.next()?, columns.next::<i64>()?.unsigned_abs()))
            };
            let states = states.iter().map(state).collect::<Attempt<_>>()?;
            let routes = routes.iter().map(route).collect::<Attempt<Vec<_>>>()?;
            let running = running.iter().map(queue).collect::<Attempt<Vec<_>>>()?;
            Ok(Depth::gather(states, routes, running, most))
        }
        .await;
        read.map_err(|trouble| trouble.during("count jobs"))
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        let read: Attempt<Vec<Count>> = async {
            let rows = self.lanes().look(self.statements().counts()).await?;
            let mut counts = Vec::with_capacity(rows.len());
            for row in &rows {
                let mut columns = Columns::of(row);
                counts.push(Count {
                    queue: columns.next()?,
                    kind: columns.next()?,
                    version: columns.next()?,
                    state: columns.state()?,
                    jobs: columns.next::<i64>()?.unsigned_abs(),
                });
            }
            counts.sort_by(|a, b| order(a).cmp(&order(b)));
            Ok(counts)
        }
        .await;
        read.map_err(|trouble| trouble.during("count jobs"))
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        self.waiting_jobs().await.map_err(|trouble| trouble.during("count waiting jobs"))
    }

    async fn count_due(&self, routes: &[Route], most: u32) -> Result<Vec<u64>, StoreError> {
        let routes: Vec<&str> = routes.iter().map(Route::as_str).collect();
        let read: Attempt<Vec<u64>> = async {
            let count = self.statements().count_due().bind(routes).bind(i64::from(most));
            let rows = self.lanes().one(count).await?;
            rows.iter().map(|row| Ok(Columns::of(row).next::<i64>()?.unsigned_abs())).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("count the due jobs of routes"))
    }

    async fn builds(&self) -> Result<Vec<BuildRecord>, StoreError> {
        self.published_builds().await.map_err(|trouble| trouble.during("list the builds"))
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        let read: Attempt<Vec<WorkerRecord>> = async {
            let rows = self.lanes().one(self.statements().workers()).await?;
            rows.iter().map(row::worker).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("list the workers"))
    }

    async fn paused(&self) -> Result<Vec<Paused>, StoreError> {
        let read: Attempt<Vec<Paused>> = async {
            let rows = self.lanes().one(self.statements().paused()).await?;
            let mut paused = Vec::with_capacity(rows.len());
            for row in &rows {
                let mut columns = Columns::of(row);
                paused.push(Paused {
                    queue: columns.next()?,
                    by: columns.next()?,
                    reason: columns.next()?,
                    at: Timestamp::from_micros(columns.next()?),
                });
            }
            Ok(paused)
        }
        .await;
        read.map_err(|trouble| trouble.during("list the paused queues"))
    }
}

/// A statement with what a filter binds; `edge` is where a listing begins that is behind nothing.
fn filtered(statement: Statement, filter: &Filter, edge: i64, limit: u32) -> Statement {
    let Span { from: enqueued_from, before: enqueued_before } = filter.enqueued;
    let Span { from: ended_from, before: ended_before } = filter.finished;
    statement
        .bind(filter.state.map(jobs_core::State::as_str))
        .bind(filter.queue.clone())
        .bind(filter.kind.clone())
        .bind(filter.class.clone())
        .bind(filter.enqueued_by.clone())
        .bind(filter.failed_by.clone())
        .bind(enqueued_from.map(Timestamp::as_micros))
        .bind(enqueued_before.map(Timestamp::as_micros))
        .bind(ended_from.map(Timestamp::as_micros))
        .bind(ended_before.map(Timestamp::as_micros))
        .bind(filter.after.map_or(edge, |id| id.0))
        .bind(i64::from(limit))
}

fn order(count: &Count) -> (&str, &str, &str, jobs_core::State) {
    (&count.queue, &count.kind, &count.version, count.state)
}
