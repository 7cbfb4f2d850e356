//! What people and tools look at.

use async_trait::async_trait;
use jobs_core::store::{BuildRecord, Count, Filter, Inspect, Paused, Waiting, WorkerRecord};
use jobs_core::{Event, JobId, JobRecord, StoreError, Timestamp};

use super::PostgresStore;
use super::error::Attempt;
use super::row::{self, Columns};

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
            rows.iter().map(row::event).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("read a job's history"))
    }

    async fn jobs(&self, filter: &Filter, limit: u32) -> Result<Vec<JobRecord>, StoreError> {
        let read: Attempt<Vec<JobRecord>> = async {
            let statement = self
                .statements()
                .jobs()
                .bind(filter.state.map(jobs_core::State::as_str))
                .bind(filter.queue.clone())
                .bind(filter.kind.clone())
                .bind(filter.after.map_or(i64::MIN, |id| id.0))
                .bind(i64::from(limit));
            let rows = self.lanes().one(statement).await?;
            rows.iter().map(row::job).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("list jobs"))
    }

    async fn counts(&self) -> Result<Vec<Count>, StoreError> {
        let read: Attempt<Vec<Count>> = async {
            let rows = self.lanes().one(self.statements().counts()).await?;
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

fn order(count: &Count) -> (&str, &str, &str, jobs_core::State) {
    (&count.queue, &count.kind, &count.version, count.state)
}
