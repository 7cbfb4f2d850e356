//! Routes and claims.

use std::collections::HashMap;

use jobs_core::store::{Claim, Claimed, EXHAUSTED, Head, ReadyRoute};
use jobs_core::{
    ClaimedJob, EventKind, JobId, NewEvent, Place, QueueName, Route, StoreError, StoreErrorKind,
    StoredCheckpoint,
};
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::{Attempt, Races, Trouble};
use super::event::{Line, record_events};
use super::lane::Wait;
use super::row::{self, Columns};
use super::sql::Statement;

/// The checkpoints of jobs that have one.
type Saved = HashMap<JobId, Option<StoredCheckpoint>>;

impl PostgresStore {
    pub(super) async fn routes_of(&self, queues: &[QueueName]) -> Attempt<Vec<ReadyRoute>> {
        let by_name: HashMap<&str, &QueueName> = queues.iter().map(|q| (q.as_str(), q)).collect();
        let names: Vec<&str> = by_name.keys().copied().collect();
        let rows = self.lanes().one(self.statements().routes().bind(names)).await?;
        let mut routes = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut columns = Columns::of(row);
            let queue: &str = columns.next()?;
            let route: String = columns.next()?;
            let first = Place { at_us: columns.next()?, job: JobId(columns.next()?) };
            let listed = |queue: &&QueueName| {
                let (queue, route) = ((*queue).clone(), Route::from_store(route));
                ReadyRoute { queue, route, first }
            };
            routes.extend(by_name.get(queue).map(listed));
        }
        Ok(routes)
    }

    pub(super) async fn claim_jobs(&self, claim: Claim<'_>) -> Attempt<Claimed> {
        let rows = if claim.limit == 0 || claim.heads.is_empty() {
            Vec::new()
        } else {
            self.claim_rows(&claim).await?
        };
        self.claimed(claim, rows).await
    }

    pub(super) async fn claim_limited(&self, claim: Claim<'_>, most: u32) -> Attempt<Claimed> {
        let Some(head) = claim.heads.first() else {
            return self.claim_jobs(claim).await;
        };
        let mut races = Races::default();
        let rows = loop {
            match self.limited_rows(&claim, head.queue.as_str(), most).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => break done?,
            }
        };
        self.claimed(claim, rows).await
    }

    async fn limited_rows(&self, claim: &Claim<'_>, queue: &str, most: u32) -> Attempt<Vec<PgRow>> {
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        lane.fetch(self.statements().queue_turn().bind(queue.to_owned())).await?;
        let count = self.statements().running_in().bind(queue.to_owned()).bind(i64::from(most));
        let counted = lane.fetch(count).await?;
        let running: i64 = counted.first().map_or(Ok(0), |row| Columns::of(row).next())?;
        let room = u32::try_from(i64::from(most).saturating_sub(running)).unwrap_or(0);
        let rows = match claim.limit.min(room) {
            0 => Vec::new(),
            limit => lane.fetch(self.claim_statement(&Claim { limit, ..*claim })).await?,
        };
        lane.commit().await?;
        Ok(rows)
    }

    /// What a claim gave, from its rows.
    async fn claimed(&self, claim: Claim<'_>, rows: Vec<PgRow>) -> Attempt<Claimed> {
        let mut jobs = Vec::with_capacity(rows.len());
        let mut resumed = Vec::new();
        let mut has_exhausted = false;
        let queues = claim.heads.iter().map(|head| (head.queue.as_str(), &head.queue)).collect();
        for row in &rows {
            let taken = row::taken(row, &queues)?;
            has_exhausted |= taken.has_exhausted;
            if taken.has_checkpoint {
                resumed.push(taken.job.fence.job.0);
            }
            jobs.push(taken.job);
        }
        if rows.is_empty() {
            let is_open;
            (is_open, has_exhausted) = self.look_after_nothing(&claim).await?;
            if !is_open {
                return Ok(Claimed::WorkerEnded);
            }
        }
        if has_exhausted && let Err(trouble) = self.end_exhausted(claim.heads).await {
            // Not the claim's trouble: it has its jobs, and the next one finds the exhausted again.
            let error = trouble.during("end jobs that can't be claimed");
            tracing::warn!(error = jobs_core::chain(&error), "exhausted jobs wait on");
        }
        if !resumed.is_empty() {
            let saved = self.checkpoints(&resumed).await.map_err(taken_unread)?;
            add_checkpoints(&mut jobs, saved);
        }
        jobs.sort_unstable_by_key(|job| job.place);
        Ok(Claimed::Jobs(jobs))
    }

    async fn claim_rows(&self, claim: &Claim<'_>) -> Attempt<Vec<PgRow>> {
        let mut races = Races::default();
        loop {
            match self.lanes().one(self.claim_statement(claim)).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done,
            }
        }
    }

    fn claim_statement(&self, claim: &Claim<'_>) -> Statement {
        let heads = claim.heads;
        if let [head] = heads {
            return self
                .statements()
                .claim_head()
                .bind(claim.worker.0)
                .bind(head.queue.as_str().to_owned())
                .bind(head.route.as_str().to_owned())
                .bind(head.from.at_us)
                .bind(head.from.job.0)
                .bind(i64::from(head.limit.min(claim.limit)));
        }
        self.statements()
            .claim()
            .bind(claim.worker.0)
            .bind(heads.iter().map(|head| head.queue.as_str()).collect::<Vec<_>>())
            .bind(heads.iter().map(|head| head.route.as_str()).collect::<Vec<_>>())
            .bind(heads.iter().map(|head| head.from.at_us).collect::<Vec<_>>())
            .bind(heads.iter().map(|head| head.from.job.0).collect::<Vec<_>>())
            .bind(heads.iter().map(|head| i64::from(head.limit)).collect::<Vec<_>>())
            .bind(i64::from(claim.limit))
    }

    /// A claim gave nothing: answers whether its worker is open, and whether jobs are left behind
    /// that nobody can claim.
    async fn look_after_nothing(&self, claim: &Claim<'_>) -> Attempt<(bool, bool)> {
        let queues: Vec<&str> = claim.heads.iter().map(|head| head.queue.as_str()).collect();
        let statement = self.statements().worker_open().bind(claim.worker.0).bind(queues);
        match self.lanes().one(statement).await?.first() {
            Some(row) => {
                let mut columns = Columns::of(row);
                Ok((columns.next()?, columns.next()?))
            }
            None => Ok((false, false)),
        }
    }

    async fn end_exhausted(&self, heads: &[Head]) -> Attempt<()> {
        let text = "the claim number is at its maximum and can't grow any more";
        let statement = self
            .statements()
            .exhausted()
            .bind(heads.iter().map(|head| head.queue.as_str()).collect::<Vec<_>>())
            .bind(heads.iter().map(|head| head.route.as_str()).collect::<Vec<_>>())
            .bind(EXHAUSTED)
            .bind(text);
        let mut lane = self.lanes().begin(Wait::Brief).await?;
        let mut lines = Vec::new();
        for row in &lane.fetch(statement).await? {
            let mut columns = Columns::of(row);
            lines.push(Line {
                fence: columns.fence()?,
                number: columns.next()?,
                event: NewEvent {
                    kind: EventKind::Failed,
                    class: EXHAUSTED.to_owned(),
                    text: text.to_owned(),
                },
            });
        }
        record_events(&mut lane, self.statements(), None, &lines).await?;
        lane.commit().await
    }

    /// Reads the checkpoints of jobs; tries twice, for the jobs are taken already.
    async fn checkpoints(&self, resumed: &[i64]) -> Attempt<Saved> {
        let statement = || self.statements().claimed_checkpoints().bind(resumed.to_vec());
        let rows = match self.lanes().one(statement()).await {
            Ok(rows) => rows,
            Err(_) => self.lanes().one(statement()).await?,
        };
        rows.iter().map(row::claimed_checkpoint).collect()
    }
}

fn add_checkpoints(jobs: &mut [ClaimedJob], mut saved: Saved) {
    for job in jobs {
        job.checkpoint = saved.remove(&job.fence.job).flatten();
    }
}

/// The claim took jobs and can't hand them out: what it did is in doubt for its caller, who gives
/// back what it never heard of.
fn taken_unread(trouble: Trouble) -> Trouble {
    let error = trouble.during("read the checkpoints of claimed jobs");
    let what = "jobs were claimed, but their checkpoints could not be read";
    StoreError::new(StoreErrorKind::Unavailable, what).because(error).into()
}
