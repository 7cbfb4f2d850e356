//! Leases: how they begin, are renewed, and end.
//!
//! A sweep re-judges a lease under the lock of its row, marks it taken back for ever and takes its
//! runs in the same transaction; a claim holds that row until it commits. So a run is either seen
//! by the sweep or never begun.

use std::sync::Arc;

use async_trait::async_trait;
use jobs_core::store::{Author, Heartbeat, Held, NewWorker, Phase, Renewed, Sweep, Swept};
use jobs_core::{
    Ending, Interruption, JobId, Ladder, Random, Run, SeededRandom, Settlement, StoreError,
    StoreErrorKind, WorkerId, micros, transition,
};
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::{Attempt, Races, Trouble};
use super::lane::{Lane, Lanes, Wait};
use super::migrate::SCHEMA_VERSION;
use super::row::{self, Columns};
use super::settle::{Taking, write};
use super::sql::Statements;

impl PostgresStore {
    pub(super) async fn register_worker(&self, worker: &NewWorker) -> Attempt<WorkerId> {
        let statement = self
            .statements()
            .register()
            .bind(worker.name.as_str().to_owned())
            .bind(worker.build.as_str().to_owned())
            .bind(jobs_core::storable(&worker.manifest, usize::MAX))
            .bind(micros(worker.lease.length()))
            .bind(Phase::Working.as_str());
        let rows = self.lanes().one(statement).await?;
        let row = rows
            .first()
            .ok_or_else(|| Trouble::new(StoreErrorKind::Corrupt, "the server stored no worker"))?;
        Ok(WorkerId(Columns::of(row).next()?))
    }

    pub(super) async fn sweep_leases(&self, sweep: &Sweep) -> Attempt<Swept> {
        let mut races = Races::default();
        loop {
            match self.try_sweep(sweep).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done,
            }
        }
    }

    async fn try_sweep(&self, sweep: &Sweep) -> Attempt<Swept> {
        let mut lane = self.lanes().begin(Wait::Brief).await?;
        let expired = lane.fetch(self.statements().take_back().bind(micros(sweep.grace))).await?;
        let workers = expired.iter().map(|row| Columns::of(row).next().map(WorkerId));
        let mut workers = workers.collect::<Attempt<Vec<WorkerId>>>()?;
        workers.sort_unstable();
        let lost = lane.fetch(self.statements().lost_runs().bind(i64::from(sweep.limit))).await?;
        let taken = Taken { by: &sweep.by, ending: Ending::Crashed, draw: sweep.draw };
        let jobs = taken.back(&mut lane, self.statements(), &lost).await?;
        lane.commit().await?;
        self.ring_if(!jobs.is_empty());
        Ok(Swept { workers, jobs })
    }

    pub(super) async fn close_worker(&self, worker: WorkerId, by: &Author) -> Attempt<Vec<JobId>> {
        let draw = self.random().draw();
        let mut races = Races::default();
        loop {
            match self.try_close(worker, by, draw).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done,
            }
        }
    }

    async fn try_close(&self, worker: WorkerId, by: &Author, draw: u64) -> Attempt<Vec<JobId>> {
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let statement = self.statements().close().bind(worker.0).bind(Phase::Done.as_str());
        if lane.fetch(statement).await?.is_empty() {
            lane.commit().await?;
            return Ok(Vec::new());
        }
        let held = lane.fetch(self.statements().held_runs().bind(worker.0)).await?;
        let ending = Ending::Interrupted(Interruption::GivenUp);
        let jobs = Taken { by, ending, draw }.back(&mut lane, self.statements(), &held).await?;
        lane.commit().await?;
        self.ring_if(!jobs.is_empty());
        Ok(jobs.into_iter().map(|(job, _)| job).collect())
    }
}

/// How runs are taken from their worker.
struct Taken<'a> {
    by: &'a Author,
    ending: Ending,
    draw: u64,
}

impl Taken<'_> {
    /// Takes back runs that this transaction has locked.
    async fn back(
        &self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[PgRow],
    ) -> Attempt<Vec<(JobId, jobs_core::State)>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let runs = rows.iter().map(row::run).collect::<Attempt<Vec<Run>>>()?;
        let settlements: Vec<Settlement> = runs.iter().map(|run| self.settlement(run)).collect();
        let batch: Vec<&Settlement> = settlements.iter().collect();
        let states = write(lane, statements, self.by, &batch, Taking::Back).await?;
        let jobs = runs.iter().map(|run| run.fence.job);
        Ok(jobs.zip(states).filter_map(|(job, state)| state.map(|state| (job, state))).collect())
    }

    fn settlement(&self, run: &Run) -> Settlement {
        let draw = SeededRandom::new(self.draw ^ run.fence.job.0.unsigned_abs()).draw();
        transition(run, &self.ending, &Ladder::default(), draw)
    }
}

/// What keeps a worker alive: one connection that nothing else uses.
#[derive(Debug)]
pub(super) struct Pulse {
    lanes: Lanes,
    statements: Arc<Statements>,
}

impl Pulse {
    /// Opens the connection on the calling runtime.
    pub(super) async fn open(lanes: Lanes, statements: Arc<Statements>) -> Attempt<Self> {
        lanes.one(statements.meta()).await?;
        Ok(Self { lanes, statements })
    }

    async fn try_renew(&self, worker: WorkerId, phase: Phase) -> Attempt<Renewed> {
        let statement = self.statements.renew().bind(worker.0).bind(phase.as_str());
        let rows = self.lanes.one(statement).await?;
        let row = rows.first().ok_or_else(|| super::migrate::missing())?;
        let mut columns = Columns::of(row);
        let is_renewed = columns.next()?;
        let min_reader: i32 = columns.next()?;
        if min_reader > SCHEMA_VERSION {
            let what = format!(
                "the schema was migrated and now needs a build that knows version {min_reader} of \
                 it; this one knows {SCHEMA_VERSION}: deploy the newer build"
            );
            return Err(Trouble::new(StoreErrorKind::Schema, what));
        }
        Ok(if is_renewed { Renewed::Renewed } else { Renewed::Ended })
    }

    async fn try_held(&self, worker: WorkerId) -> Attempt<Vec<Held>> {
        let rows = self.lanes.one(self.statements.held().bind(worker.0)).await?;
        let held = |row: &PgRow| {
            let mut columns = Columns::of(row);
            Ok(Held { fence: columns.fence()?, is_cancel_requested: columns.next()? })
        };
        rows.iter().map(held).collect()
    }
}

#[async_trait]
impl Heartbeat for Pulse {
    async fn renew(&mut self, worker: WorkerId, phase: Phase) -> Result<Renewed, StoreError> {
        self.try_renew(worker, phase).await.map_err(|trouble| trouble.during("renew the lease"))
    }

    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>, StoreError> {
        let held = self.try_held(worker).await;
        held.map_err(|trouble| trouble.during("read which runs the worker holds"))
    }
}
