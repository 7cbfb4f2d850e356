//! Schedules: declarations, and ticks that come once.

use async_trait::async_trait;
use jobs_core::store::{
    Advanced, Declaration, Declared, Enqueued, MAX_TICKS, ScheduleRecord, ScheduleView, Schedules,
    Step, Tick,
};
use jobs_core::{NewJob, ScheduleName, StoreError, Timestamp, WorkerId};
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::{Attempt, Races};
use super::lane::{Lane, Wait};
use super::row::Columns;

/// A person, in the place of a worker.
const PERSON: i64 = 0;

#[async_trait]
impl Schedules for PostgresStore {
    async fn declare(
        &self,
        by: Option<WorkerId>,
        declarations: &[Declaration],
    ) -> Result<(), StoreError> {
        // In order of name, so that two calls never wait for each other.
        let mut declarations: Vec<_> = declarations.iter().collect();
        declarations.sort_by(|one, other| one.name.cmp(&other.name));
        let mut races = Races::default();
        loop {
            match self.try_declare(by, &declarations).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done.map_err(|trouble| trouble.during("declare schedules")),
            }
        }
    }

    async fn undeclare(&self, name: &ScheduleName) -> Result<bool, StoreError> {
        let statement = self.statements().undeclare().bind(name.as_str().to_owned());
        let rows = self.lanes().one(statement).await;
        rows.map(|rows| !rows.is_empty()).map_err(|trouble| trouble.during("take a schedule back"))
    }

    async fn schedules(&self) -> Result<ScheduleView, StoreError> {
        self.view().await.map_err(|trouble| trouble.during("read the schedules"))
    }

    async fn advance(&self, step: &Step) -> Result<Advanced, StoreError> {
        let mut races = Races::default();
        loop {
            match self.try_advance(step).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done.map_err(|trouble| trouble.during("move a schedule on")),
            }
        }
    }

    async fn ticks(&self, name: &ScheduleName) -> Result<Vec<Tick>, StoreError> {
        let read: Attempt<Vec<Tick>> = async {
            let statement = self.statements().ticks().bind(name.as_str().to_owned());
            let rows = self.lanes().one(statement).await?;
            let tick = |row| {
                let mut columns = Columns::of(row);
                Ok(Tick { at: columns.at()?, job: columns.id()? })
            };
            rows.iter().map(tick).collect()
        }
        .await;
        read.map_err(|trouble| trouble.during("read the ticks of a schedule"))
    }
}

impl PostgresStore {
    async fn try_declare(
        &self,
        by: Option<WorkerId>,
        declarations: &[&Declaration],
    ) -> Attempt<()> {
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        for Declaration { name, text } in declarations {
            let name = name.as_str().to_owned();
            lane.fetch(self.statements().schedule_add().bind(name.clone())).await?;
            let declare = self
                .statements()
                .declare()
                .bind(name)
                .bind(by.map_or(PERSON, |worker| worker.0))
                .bind(text.clone());
            lane.fetch(declare).await?;
        }
        lane.commit().await
    }

    async fn view(&self) -> Attempt<ScheduleView> {
        let rows = self.lanes().one(self.statements().schedules()).await?;
        let mut now = Timestamp::from_micros(0);
        let mut schedules: Vec<ScheduleRecord> = Vec::new();
        for row in &rows {
            let mut columns = Columns::of(row);
            now = columns.at()?;
            let Some((record, declared)) = read(&mut columns)? else { continue };
            if schedules.last().is_none_or(|last| last.name != record.name) {
                schedules.push(record);
            }
            if let Some(last) = schedules.last_mut() {
                last.declared.extend(declared);
            }
        }
        Ok(ScheduleView { now, schedules })
    }

    async fn try_advance(&self, step: &Step) -> Attempt<Advanced> {
        let Step { name, seen_text, seen_next_at, text, next_at, ticks } = step;
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let advance = self
            .statements()
            .advance()
            .bind(name.as_str().to_owned())
            .bind(seen_text.clone())
            .bind(seen_next_at.map(Timestamp::as_micros))
            .bind(text.clone())
            .bind(next_at.map(Timestamp::as_micros));
        let moved: Vec<PgRow> = lane.fetch(advance).await?;
        let Some(row) = moved.first() else {
            lane.commit().await?;
            return Ok(Advanced::Outrun);
        };
        let mut last_us: i64 = Columns::of(row).next()?;
        let mut is_new = Vec::with_capacity(ticks.len());
        let (mut fresh, mut jobs): (Vec<i64>, Vec<NewJob>) = (Vec::new(), Vec::new());
        for (at, job) in ticks {
            is_new.push(at.as_micros() > last_us);
            if at.as_micros() > last_us {
                last_us = at.as_micros();
                fresh.push(last_us);
                jobs.push(job.clone());
            }
        }
        let enqueued = match fresh[..] {
            [] => Vec::new(),
            _ => self.tick(&mut lane, name, fresh, &jobs).await?,
        };
        lane.commit().await?;
        self.ring_if(!enqueued.is_empty());
        let mut enqueued = enqueued.into_iter();
        let answers = is_new.into_iter().map(|is_new| is_new.then(|| enqueued.next()).flatten());
        Ok(Advanced::Moved(answers.collect()))
    }

    /// Enqueues the jobs of ticks and writes the ticks, of which there is at least one.
    async fn tick(
        &self,
        lane: &mut Lane<'_>,
        name: &ScheduleName,
        ticks: Vec<i64>,
        jobs: &[NewJob],
    ) -> Attempt<Vec<Enqueued>> {
        let stored = self.enqueue_within(lane.connection(), jobs);
        let enqueued = self.lanes().heard(stored).await?;
        let name = name.as_str().to_owned();
        let last_us = ticks.last().copied();
        let ids: Vec<i64> = enqueued.iter().map(|job| job.id().0).collect();
        lane.fetch(self.statements().tick().bind(name.clone()).bind(ticks).bind(ids)).await?;
        lane.fetch(self.statements().ticked().bind(name.clone()).bind(last_us)).await?;
        let forget = self.statements().forget_ticks().bind(name).bind(i64::from(MAX_TICKS));
        lane.fetch(forget).await?;
        Ok(enqueued)
    }
}

/// A schedule and one of its declarations; nothing where its name is none of ours.
fn read(columns: &mut Columns<'_>) -> Attempt<Option<(ScheduleRecord, Option<Declared>)>> {
    let (name, text): (Option<String>, Option<String>) = (columns.next()?, columns.next()?);
    let (next_at, last_at) = (columns.at_if()?, columns.at_if()?);
    let (by, since) = (columns.next::<Option<i64>>()?, columns.at_if()?);
    let declared: Option<String> = columns.next()?;
    let Some(Ok(name)) = name.map(ScheduleName::new) else { return Ok(None) };
    let declared = by.zip(since).zip(declared).map(|((by, since), text)| {
        let by = (by != PERSON).then_some(WorkerId(by));
        Declared { by, since, text }
    });
    Ok(Some((ScheduleRecord { name, text, next_at, last_at, declared: Vec::new() }, declared)))
}
