//! Leases: how they begin, are renewed, and end.
//!
//! A sweep re-judges a lease under the lock of its row, marks it taken back for ever and takes its
//! runs in the same transaction; a claim holds that row until it commits. So a run is either seen
//! by the sweep or never begun. A run whose row the server lets nobody write is left for a later sweep, as one
//! whose row is locked, or whose unique key an open transaction holds.

use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{
    Author, Drained, Duty, Heartbeat, Held, Leaving, NewWorker, Phase, Renewed, Sweep, Swept,
};
use jobs_core::{
    Clock as _, Company, Ending, Fence, Interruption, JobId, State, StoreError, StoreErrorKind,
    WorkerId, micros,
};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::{Attempt, Races, Trouble};
use super::halves::{Change, chosen};
use super::lane::{Lane, Lanes, Wait};
use super::migrate::SCHEMA_VERSION;
use super::row::Columns;
use super::sql::{Statement, Statements};
use super::taken::Taken;
use crate::clock::SystemClock;
use crate::store::poison::{Operation, answer};

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
        // Mostly there is nothing, which one statement says.
        let due = self.statements().sweep_due().bind(micros(sweep.grace));
        let due = self.lanes().one(due).await?;
        if !due.first().map_or(Ok(false), |row| Columns::of(row).next())? {
            return Ok(Swept::default());
        }
        let mut races = Races::default();
        let mut is_in_halves = self.poison().is_known(Operation::TakeBack);
        loop {
            match self.try_sweep(sweep, is_in_halves).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                Err(trouble) if trouble.is_of_a_row() && !is_in_halves => is_in_halves = true,
                Err(trouble) => return Err(trouble),
                Ok((swept, taken)) => return answer(swept, taken, Trouble::told),
            }
        }
    }

    /// Takes all back together, or in halves where one row is in the way of the others. Answers also how the
    /// halves went: what is committed is so however they did.
    async fn try_sweep(&self, sweep: &Sweep, is_in_halves: bool) -> Attempt<(Swept, Attempt<u32>)> {
        let mut lane = self.lanes().begin(Wait::Brief).await?;
        if is_in_halves {
            lane.check_at_once().await?;
        }
        let expired = lane.fetch(self.statements().take_back().bind(micros(sweep.grace))).await?;
        let workers = expired.iter().map(|row| Columns::of(row).next().map(WorkerId));
        let mut workers = workers.collect::<Attempt<Vec<WorkerId>>>()?;
        workers.sort_unstable();
        if !workers.is_empty() {
            let ended: Vec<i64> = workers.iter().map(|worker| worker.0).collect();
            lane.fetch(self.statements().reclaim().bind(ended)).await?;
        }
        let mut jobs = Vec::new();
        let taken = if is_in_halves {
            self.take_back_in_halves(&mut lane, sweep, &mut jobs).await?
        } else {
            let lost = self.statements().lost_runs().bind(i64::from(sweep.limit));
            for (by, ending, runs) in alike(lane.fetch(lost).await?, sweep)? {
                let taken = Taken { by: &by, ending, draw: sweep.draw, noticed: Some(sweep) };
                let runs: Vec<&PgRow> = runs.iter().collect();
                jobs.extend(taken.back_but_held(&mut lane, self.statements(), &runs).await?);
            }
            Ok(0)
        };
        jobs.sort_unstable();
        lane.commit().await?;
        self.ring_if(!jobs.is_empty());
        Ok((Swept { workers, jobs }, taken))
    }

    /// Takes back all lost runs but those whose rows nobody can write.
    async fn take_back_in_halves(
        &self,
        lane: &mut Lane<'_>,
        sweep: &Sweep,
        jobs: &mut Vec<(JobId, State)>,
    ) -> Attempt<Attempt<u32>> {
        let mut call = self.poison_call(Operation::TakeBack, sweep.limit);
        if let Some(most) = call.look(SystemClock.elapsed()) {
            let lost = lane.fetch(self.statements().lost_runs().bind(i64::from(most))).await?;
            for lost in chosen(&call, lost)? {
                for (by, ending, runs) in alike(lost, sweep)? {
                    let taken = Taken { by: &by, ending, draw: sweep.draw, noticed: Some(sweep) };
                    let mut back = TakeBack { taken, jobs: &mut *jobs };
                    self.write_in_halves(lane, &mut call, &mut back, &runs).await?;
                }
            }
        }
        Ok(call.end())
    }
}

/// Runs that are taken back in halves, and those that were.
struct TakeBack<'a> {
    taken: Taken<'a>,
    jobs: &'a mut Vec<(JobId, State)>,
}

impl Change for TakeBack<'_> {
    async fn write(
        &mut self,
        lane: &mut Lane<'_>,
        statements: &Statements,
        rows: &[&PgRow],
    ) -> Attempt<usize> {
        let taken = self.taken.back_but_held(lane, statements, rows).await?;
        let count = taken.len();
        self.jobs.extend(taken);
        Ok(count)
    }
}

impl PostgresStore {
    pub(super) async fn take_duty_over(&self, duty: Duty, worker: WorkerId) -> Attempt<bool> {
        let take = self.statements().take_duty().bind(duty.as_str()).bind(worker.0);
        Ok(!self.lanes().one(take).await?.is_empty())
    }

    pub(super) async fn let_go_of_duty(&self, duty: Duty, worker: WorkerId) -> Attempt<()> {
        let give = self.statements().give_back_duty().bind(duty.as_str()).bind(worker.0);
        self.lanes().one(give).await.map(drop)
    }
}

const GIVEN_UP: Ending = Ending::Interrupted(Interruption::GivenUp);

/// Parts lost runs by the worker that lost them and by how they ended: it told, when it left, that it
/// abandoned them, or it died, with nobody else or with others.
fn alike(lost: Vec<PgRow>, sweep: &Sweep) -> Attempt<Vec<(Author, Ending, Vec<PgRow>)>> {
    let mut parts: Vec<(Author, Ending, Vec<PgRow>)> = Vec::new();
    for row in lost {
        let ending = match (row.try_get("is_abandoned")?, row.try_get("was_alone")?) {
            (true, true | false) => GIVEN_UP,
            (false, true) => Ending::Crashed(Company::Alone),
            (false, false) => Ending::Crashed(Company::Others),
        };
        let worker: Option<i64> = row.try_get("worker_id")?;
        let build: Option<&str> = row.try_get("worker_build")?;
        let by = sweep.author(worker.map(WorkerId).zip(build));
        match parts.iter_mut().find(|(author, of, _)| *author == by && *of == ending) {
            Some((_, _, runs)) => runs.push(row),
            None => parts.push((by, ending, vec![row])),
        }
    }
    Ok(parts)
}

/// A worker's leave.
struct Leave<'a> {
    store: &'a PostgresStore,
    worker: WorkerId,
    by: &'a Author,
    leaving: &'a Leaving,
    draw: u64,
}

impl Leave<'_> {
    async fn close(&self, lanes: &Lanes) -> Attempt<Vec<JobId>> {
        let mut races = Races::default();
        loop {
            match self.try_close(lanes).await {
                Err(trouble) if races.again(&trouble, self.store.random()).await => {}
                done => return done,
            }
        }
    }

    async fn try_close(&self, lanes: &Lanes) -> Attempt<Vec<JobId>> {
        let statements = self.store.statements();
        let mut lane = lanes.begin(Wait::Patient).await?;
        let (jobs, claims): (Vec<i64>, Vec<i64>) =
            self.leaving.abandoned.iter().map(|run| (run.job.0, run.claim.0)).unzip();
        let abandon = statements.abandon().bind(self.worker.0).bind(jobs).bind(claims);
        let is_left_open = !lane.fetch(abandon).await?.is_empty();
        let end = if is_left_open { statements.leave() } else { statements.close() };
        let mut end = end.bind(self.worker.0).bind(Phase::Done.as_str());
        if is_left_open {
            end = end.bind(micros(self.leaving.gone_in));
        }
        if lane.fetch(end).await?.is_empty() {
            lane.commit().await?;
            return Ok(Vec::new());
        }
        let held = lane.fetch(statements.held_runs().bind(self.worker.0)).await?;
        let fences =
            held.iter().map(|row| Columns::of(row).fence()).collect::<Attempt<Vec<_>>>()?;
        let mut jobs = Vec::new();
        for ending in [GIVEN_UP, Ending::Unstarted] {
            let of_it =
                held.iter().zip(&fences).filter(|(_, run)| self.leaving.ending(**run) == ending);
            let runs: Vec<&PgRow> = of_it.map(|(row, _)| row).collect();
            let taken = Taken { by: self.by, ending, draw: self.draw, noticed: None };
            jobs.extend(taken.back_but_held(&mut lane, statements, &runs).await?);
        }
        jobs.sort_unstable();
        lane.fetch(statements.abandon_locked().bind(self.worker.0)).await?;
        let is_back = |run: &&Fence| jobs.binary_search_by_key(&run.job, |(job, _)| *job).is_ok();
        let given_back: Vec<Fence> = fences.iter().filter(is_back).copied().collect();
        lane.fetch(self.report(&given_back)).await?;
        if !jobs.is_empty() {
            // Not by the bell: its window would run on the heartbeat's runtime, which ends now.
            let channel = self.store.bell().channel().to_owned();
            lane.fetch(statements.notify().bind(channel)).await?;
        }
        lane.commit().await?;
        Ok(jobs.into_iter().map(|(job, _)| job).collect())
    }

    /// The report of the drain, with what the close gave back.
    fn report(&self, gave_back: &[Fence]) -> Statement {
        let Drained { settled, interrupted, released, abandoned, took } =
            self.leaving.report(gave_back);
        let mut report = self.store.statements().report().bind(self.worker.0);
        for count in [settled, interrupted, released, abandoned] {
            report = report.bind(i64::try_from(count).unwrap_or(i64::MAX));
        }
        report.bind(micros(took))
    }
}

/// What keeps a worker alive: one connection that nothing else uses.
#[derive(Debug)]
pub(super) struct Pulse {
    store: PostgresStore,
    lanes: Lanes,
}

impl Pulse {
    /// Opens the connection on the calling runtime.
    pub(super) async fn open(store: PostgresStore, lanes: Lanes) -> Attempt<Self> {
        lanes.one(store.statements().meta()).await?;
        Ok(Self { store, lanes })
    }

    async fn try_renew(&self, worker: WorkerId, phase: Phase) -> Attempt<Renewed> {
        let statement = self.store.statements().renew().bind(worker.0).bind(phase.as_str());
        let rows = self.lanes.one(statement).await?;
        let row = rows.first().ok_or_else(super::migrate::missing)?;
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
        let rows = self.lanes.one(self.store.statements().held().bind(worker.0)).await?;
        let held = |row: &PgRow| {
            let mut columns = Columns::of(row);
            Ok(Held { fence: columns.fence()?, is_cancel_requested: columns.next()? })
        };
        rows.iter().map(held).collect()
    }
}

#[async_trait]
impl Heartbeat for Pulse {
    /// The server judges leases itself, and so nothing is ever undecided.
    async fn renew(
        &mut self,
        worker: WorkerId,
        phase: Phase,
        _: Duration,
    ) -> Result<Renewed, StoreError> {
        self.try_renew(worker, phase).await.map_err(|trouble| trouble.during("renew the lease"))
    }

    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>, StoreError> {
        let held = self.try_held(worker).await;
        held.map_err(|trouble| trouble.during("read which runs the worker holds"))
    }

    async fn close(
        &mut self,
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
    ) -> Result<Vec<JobId>, StoreError> {
        let draw = self.store.random().draw();
        let leave = Leave { store: &self.store, worker, by, leaving, draw };
        leave.close(&self.lanes).await.map_err(|trouble| trouble.during("close the worker"))
    }
}
