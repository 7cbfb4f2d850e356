//! How leases begin and end. Whether a worker is dead, [`signs`](super::signs) tell.

use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{Author, Drained, Leaving, NewWorker, Settled, Sweep, Swept};
use jobs_core::{
    Company, Ending, Fence, Interruption, JobId, Ladder, Random, Run, SeededRandom, Settlement,
    State, Timestamp, WorkerId, micros, transition,
};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row as _, Sqlite, SqliteConnection};

use super::alive::{Life, LockFile, LockFiles};
use super::error::{During, Result};
use super::halves::{Change, Known, Way};
use super::row::{Columns, text};
use super::settle::{Claims, settle};
use super::signs::{Observer, Signs};
use super::unreadable::end_unreadable;
use super::writer::Write;
use super::{json, sql};
use crate::store::poison::{Operation, answer};

/// A worker to be registered; its lock file is held already.
pub(super) struct Register {
    worker: NewWorker,
    file: Option<LockFile>,
    observer: Observer,
}

impl Register {
    pub(super) fn new(worker: &NewWorker, file: LockFile, observer: Observer) -> Self {
        Self { worker: worker.clone(), file: Some(file), observer }
    }
}

#[async_trait]
impl Write for Register {
    type Answer = WorkerId;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<WorkerId> {
        let NewWorker { name, build, manifest, lease } = &self.worker;
        let id = sqlx::query_scalar(sql::REGISTER)
            .bind(name.as_str())
            .bind(build.as_str())
            .bind(manifest.as_str())
            .bind(self.file.as_ref().map(LockFile::name))
            .bind(micros(lease.length()))
            .bind(now.as_micros())
            .fetch_one(tx);
        id.await.map(WorkerId).during("registering a worker")
    }

    fn wakes(&self, _: &WorkerId) -> bool {
        false
    }

    fn committed(&mut self, id: &WorkerId) {
        let signs = Signs { renewals: 0, marks: 0 };
        self.observer.renewals.note(*id, signs, self.observer.clock.elapsed());
        if let Some(file) = self.file.take() {
            self.observer.files.hold(*id, file);
        }
    }
}

impl Drop for Register {
    /// A worker that was not registered leaves no file.
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            file.remove();
        }
    }
}

const SWEEPING: &str = "sweeping";

/// A sweep to be made.
pub(super) struct TakeBack {
    sweep: Sweep,
    asked_at: Duration,
    observer: Observer,
    known: Known,
    way: Way,
    /// The workers whose leases stay open.
    open: Vec<Open>,
    /// The files of dead workers, locked so that nobody else judges them meanwhile.
    files: Vec<LockFile>,
}

impl TakeBack {
    pub(super) fn new(sweep: &Sweep, observer: Observer, known: Known) -> Self {
        let way = known.way(Operation::TakeBack);
        let (sweep, asked_at) = (sweep.clone(), observer.clock.elapsed());
        Self { sweep, asked_at, observer, known, way, open: Vec::new(), files: Vec::new() }
    }

    /// Whether a worker is dead, under the write lock.
    fn is_dead(&mut self, worker: &Open) -> bool {
        let Observer { files, renewals, clock } = &self.observer;
        let marks = match files.life(&worker.lock_file) {
            Life::Ended(file) => {
                self.files.push(file);
                return true;
            }
            Life::Alive { marks } => marks,
            Life::Unknown => 0,
        };
        let signs = Signs { renewals: worker.renewals, marks };
        let unchanged = renewals.look(worker.id, signs, worker.lease, clock.elapsed());
        unchanged >= worker.lease.saturating_add(self.sweep.grace)
    }
}

#[async_trait]
impl Write for TakeBack {
    type Answer = TakenBack;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<TakenBack> {
        const DOING: &str = SWEEPING;
        let elapsed = self.observer.clock.elapsed();
        self.observer.renewals.skip(elapsed.saturating_sub(self.asked_at));
        self.asked_at = elapsed;
        self.files.clear();
        let rows = sqlx::query(sql::OPEN_WORKERS).fetch_all(&mut *tx).await.during(DOING)?;
        let open = rows.iter().map(open).collect::<Result<Vec<_>, _>>().during(DOING)?;
        let dead: Vec<Open>;
        (dead, self.open) = open.into_iter().partition(|worker| self.is_dead(worker));
        let mut workers = Vec::new();
        for worker in dead {
            let end = sqlx::query(sql::TAKE_BACK).bind(worker.id.0).bind(worker.renewals);
            end.bind(now.as_micros()).execute(&mut *tx).await.during(DOING)?;
            workers.push(worker.id);
        }
        let Sweep { by, limit, .. } = &self.sweep;
        let mut jobs = Vec::new();
        let taken = match self.way {
            Way::Together => {
                let taken = self.together(tx, now).await;
                jobs = self.way.tried(taken)?;
                Ok(0)
            }
            Way::Spoiled | Way::InHalves => {
                self.way = Way::InHalves;
                self.in_halves(tx, now, &mut jobs).await?
            }
        };
        jobs.sort_unstable();
        let ids: Vec<i64> = jobs.iter().map(|(id, _)| id.0).collect();
        let forget = sqlx::query(sql::FORGET_ABANDONED).bind(json::rows(&ids));
        forget.execute(&mut *tx).await.during(DOING)?;
        end_unreadable(tx, now, by, *limit).await?;
        Ok(TakenBack { swept: Swept { workers, jobs }, taken })
    }

    fn is_to_be_repeated(&self) -> bool {
        self.way == Way::Spoiled
    }

    fn wakes(&self, TakenBack { swept, .. }: &TakenBack) -> bool {
        !swept.jobs.is_empty()
    }

    fn committed(&mut self, TakenBack { swept, .. }: &TakenBack) {
        self.files.drain(..).for_each(LockFile::remove);
        self.observer.files.release_all_but(&self.open.iter().map(|worker| worker.id).collect());
        self.observer.files.tidy(&self.open.drain(..).map(|worker| worker.lock_file).collect());
        swept.workers.iter().for_each(|worker| self.observer.renewals.forget(*worker));
    }
}

impl TakeBack {
    /// Takes back lost runs, all or none.
    async fn together(
        &self,
        tx: &mut SqliteConnection,
        now: Timestamp,
    ) -> Result<Vec<(JobId, State)>> {
        let mut jobs = Vec::new();
        let lost = sqlx::query(sql::LOST_RUNS).bind(self.sweep.limit).fetch_all(&mut *tx).await;
        for (by, runs) in by_worker(lost.during(SWEEPING)?, &self.sweep).during(SWEEPING)? {
            let runs: Vec<&SqliteRow> = runs.iter().collect();
            jobs.extend(take_back(tx, now, (&by, &self.sweep), &runs).await?);
        }
        Ok(jobs)
    }

    /// Takes back all lost runs but those whose rows nobody can write; answers how that went.
    async fn in_halves(
        &self,
        tx: &mut SqliteConnection,
        now: Timestamp,
        jobs: &mut Vec<(JobId, State)>,
    ) -> Result<Result<u32>> {
        let Self { sweep, known, .. } = self;
        let mut call = known.call(Operation::TakeBack, sweep.limit);
        if let Some(most) = known.look(&mut call) {
            let lost = sqlx::query(sql::LOST_RUNS).bind(most).fetch_all(&mut *tx).await;
            for lost in known.chosen(&call, lost.during(SWEEPING)?)? {
                for (by, runs) in by_worker(lost, sweep).during(SWEEPING)? {
                    let mut back = Back { by: &by, sweep, jobs: &mut *jobs };
                    known.write_in_halves(tx, now, &mut call, &mut back, &runs).await?;
                }
            }
        }
        Ok(call.end())
    }
}

/// What a sweep has done: the ends of leases stand, however the runs were taken back.
pub(super) struct TakenBack {
    swept: Swept,
    taken: Result<u32>,
}

impl TakenBack {
    pub(super) fn answer(self) -> Result<Swept> {
        answer(self.swept, self.taken, |error| jobs_core::chain(error))
    }
}

/// Lost runs that are taken back in halves, and those that were.
struct Back<'a> {
    by: &'a Author,
    sweep: &'a Sweep,
    jobs: &'a mut Vec<(JobId, State)>,
}

impl Change for Back<'_> {
    async fn write(
        &mut self,
        tx: &mut SqliteConnection,
        now: Timestamp,
        rows: &[&SqliteRow],
    ) -> Result<usize> {
        let taken = take_back(tx, now, (self.by, self.sweep), rows).await?;
        let count = taken.len();
        self.jobs.extend(taken);
        Ok(count)
    }
}

/// Takes back lost runs of one worker.
async fn take_back(
    tx: &mut SqliteConnection,
    now: Timestamp,
    (of, sweep): (&Author, &Sweep),
    runs: &[&SqliteRow],
) -> Result<Vec<(JobId, State)>> {
    let endings = runs.iter().map(|run| ending(run)).collect::<Result<Vec<Ending>, _>>();
    let endings = endings.during(SWEEPING)?;
    let given = Given { endings: &endings, draw: sweep.draw, noticed: Some(sweep) };
    give_back(tx, now, of, runs, given).await
}

/// A worker whose lease is open.
struct Open {
    id: WorkerId,
    lock_file: String,
    lease: Duration,
    renewals: i64,
}

fn open(row: &SqliteRow) -> Result<Open, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(Open {
        id: WorkerId(columns.number()?),
        lock_file: columns.text()?,
        lease: Duration::from_micros(columns.number()?.max(0).unsigned_abs()),
        renewals: columns.number()?,
    })
}

/// Removes the lock files that no open lease names.
pub(super) async fn tidy(connection: &mut SqliteConnection, files: &LockFiles) -> Result<()> {
    const DOING: &str = "looking for lock files";
    let rows = sqlx::query(sql::OPEN_WORKERS).fetch_all(connection).await.during(DOING)?;
    let names = rows.iter().map(|row| open(row).map(|worker| worker.lock_file));
    files.tidy(&names.collect::<Result<_, _>>().during(DOING)?);
    Ok(())
}

/// A worker to be closed.
pub(super) struct Close {
    worker: WorkerId,
    by: Author,
    leaving: Leaving,
    /// Whether its lease and its lock file stay until the process is gone.
    is_left_open: bool,
    draw: u64,
    observer: Observer,
}

impl Close {
    pub(super) fn new(
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
        draw: u64,
        observer: Observer,
    ) -> Self {
        Self {
            worker,
            by: by.clone(),
            leaving: leaving.clone(),
            is_left_open: false,
            draw,
            observer,
        }
    }
}

#[async_trait]
impl Write for Close {
    type Answer = Vec<JobId>;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Vec<JobId>> {
        const DOING: &str = "closing a worker";
        let held = sqlx::query(sql::HELD_RUNS).bind(self.worker.0).fetch_all(&mut *tx);
        let mut held = held.await.during(DOING)?;
        let fences = held.iter().map(|row| Columns::new(row).fence());
        let fences = fences.collect::<Result<Vec<_>, _>>().during(DOING)?;
        let is_abandoned = |fence: &Fence| self.leaving.abandoned.contains(fence);
        self.is_left_open = fences.iter().any(is_abandoned);
        let close = if self.is_left_open {
            sqlx::query(sql::LEAVE).bind(self.worker.0).bind(micros(self.leaving.gone_in))
        } else {
            sqlx::query(sql::CLOSE).bind(self.worker.0).bind(now.as_micros())
        };
        if close.execute(&mut *tx).await.during(DOING)?.rows_affected() == 0 {
            return Ok(Vec::new());
        }
        let abandoned = json::claims(fences.iter().copied().filter(is_abandoned));
        sqlx::query(sql::ABANDON).bind(abandoned).execute(&mut *tx).await.during(DOING)?;
        let mut each = fences.iter();
        held.retain(|_| !each.next().is_some_and(is_abandoned));
        let left: Vec<Fence> = fences.iter().copied().filter(|run| !is_abandoned(run)).collect();
        let endings: Vec<Ending> = left.iter().map(|run| self.leaving.ending(*run)).collect();
        let given = Given { endings: &endings, draw: self.draw, noticed: None };
        let held: Vec<&SqliteRow> = held.iter().collect();
        let given = give_back(tx, now, &self.by, &held, given).await?;
        self.report(&left).execute(&mut *tx).await.during(DOING)?;
        Ok(given.into_iter().map(|(id, _)| id).collect())
    }

    fn wakes(&self, given: &Vec<JobId>) -> bool {
        !given.is_empty()
    }

    fn committed(&mut self, _: &Vec<JobId>) {
        if !self.is_left_open {
            self.observer.files.release(self.worker);
            self.observer.renewals.forget(self.worker);
        }
    }
}

/// Parts lost runs by the worker that lost them.
fn by_worker(
    lost: Vec<SqliteRow>,
    sweep: &Sweep,
) -> Result<Vec<(Author, Vec<SqliteRow>)>, sqlx::Error> {
    let mut parts: Vec<(Author, Vec<SqliteRow>)> = Vec::new();
    for row in lost {
        let worker: Option<i64> = row.try_get_unchecked("worker_id")?;
        // As bytes: what one worker's row holds must not keep the runs of others.
        let build: Option<&[u8]> = row.try_get_unchecked("worker_build")?;
        let build = build.map(text);
        let by = sweep.author(worker.map(WorkerId).zip(build.as_deref()));
        match parts.iter_mut().find(|(author, _)| *author == by) {
            Some((_, runs)) => runs.push(row),
            None => parts.push((by, vec![row])),
        }
    }
    Ok(parts)
}

/// How a lost run ended.
fn ending(row: &SqliteRow) -> Result<Ending, sqlx::Error> {
    Ok(match (row.try_get("is_abandoned")?, row.try_get("was_alone")?) {
        (true, true | false) => Ending::Interrupted(Interruption::GivenUp),
        (false, true) => Ending::Crashed(Company::Alone),
        (false, false) => Ending::Crashed(Company::Others),
    })
}

impl Close {
    /// The report of the drain, with what the close gave back.
    fn report(&self, gave_back: &[Fence]) -> Query<'static, Sqlite, SqliteArguments> {
        let Drained { settled, interrupted, released, abandoned, took } =
            self.leaving.report(gave_back);
        let mut report = sqlx::query(sql::REPORT).bind(self.worker.0);
        for count in [settled, interrupted, released, abandoned] {
            report = report.bind(i64::try_from(count).unwrap_or(i64::MAX));
        }
        report.bind(micros(took))
    }
}

/// How runs are given back.
struct Given<'a> {
    /// How each of them ended.
    endings: &'a [Ending],
    draw: u64,
    /// The sweep that noticed, where their worker did not tell itself.
    noticed: Option<&'a Sweep>,
}

/// Takes runs back, each as it ended: their claim numbers advance.
async fn give_back(
    tx: &mut SqliteConnection,
    now: Timestamp,
    by: &Author,
    runs: &[&SqliteRow],
    given: Given<'_>,
) -> Result<Vec<(JobId, State)>> {
    let runs =
        runs.iter().copied().map(run).collect::<Result<Vec<_>, _>>().during("taking runs back")?;
    let Given { endings, draw, noticed } = given;
    let settlement = |(run, ending): (&Run, &Ending)| {
        let own_draw = SeededRandom::new(draw ^ run.fence.job.0.unsigned_abs()).draw();
        let settlement = transition(run, ending, &Ladder::default(), own_draw);
        match noticed {
            Some(sweep) => sweep.noticed(settlement),
            None => settlement,
        }
    };
    let settlements: Vec<Settlement> = runs.iter().zip(endings).map(settlement).collect();
    let answers = settle(tx, now, by, &settlements, Claims::Advance).await?;
    let given = runs.iter().zip(answers).filter_map(|(run, settled)| match settled {
        Settled::Applied(state) => Some((run.fence.job, state)),
        Settled::LeaseLost | Settled::Locked => None,
    });
    Ok(given.collect())
}

fn run(row: &SqliteRow) -> Result<Run, sqlx::Error> {
    let mut columns = Columns::new(row);
    Ok(Run {
        fence: columns.fence()?,
        counters: columns.counters()?,
        budget: columns.budget()?,
        refused: columns.refused()?,
    })
}
