//! What people and tools change. Rows are locked in order of key, then of job; what was locked is decided here
//! and written.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use jobs_core::store::{
    CANCELLED, Cancelled, MAX_PAUSE_BYTES, Operate, REDRIVEN, REDRIVEN_TEXT, RESCHEDULED, RUN_NOW,
    RUN_NOW_TEXT, Redrive, Redriven, Reschedule,
};
use jobs_core::{
    ClaimNumber, Due, EventKind, Fence, JobId, NewEvent, Priority, QueueName, State, StoreError,
    Timestamp, micros, storable,
};
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::{Attempt, Races};
use super::event::{Line, next, record_events};
use super::lane::{Lane, Wait};
use super::row::Columns;

/// A locked row as an operator finds it.
struct Found {
    state: State,
    claim: ClaimNumber,
    events: i64,
    key: Option<(String, String)>,
    finished_at: Option<Timestamp>,
    twin: Option<JobId>,
}

#[async_trait]
impl Operate for PostgresStore {
    async fn cancel(&self, jobs: &[JobId]) -> Result<Vec<Cancelled>, StoreError> {
        self.cancel_all(jobs).await.map_err(|trouble| trouble.during("cancel jobs"))
    }

    async fn redrive(&self, jobs: &[JobId], redrive: Redrive) -> Result<Vec<Redriven>, StoreError> {
        let mut races = Races::default();
        loop {
            match self.try_redrive(jobs, redrive).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done.map_err(|trouble| trouble.during("redrive jobs")),
            }
        }
    }

    async fn run_now(&self, jobs: &[JobId]) -> Result<Vec<bool>, StoreError> {
        let run = self.try_run_now(jobs).await;
        run.map_err(|trouble| trouble.during("make jobs ready"))
    }

    async fn reschedule(
        &self,
        jobs: &[JobId],
        change: Reschedule,
    ) -> Result<Vec<bool>, StoreError> {
        let changed = self.try_reschedule(jobs, change).await;
        changed.map_err(|trouble| trouble.during("reschedule jobs"))
    }

    async fn pause(&self, queue: &QueueName, by: &str, reason: &str) -> Result<(), StoreError> {
        let statement = self
            .statements()
            .pause()
            .bind(queue.as_str().to_owned())
            .bind(storable(by, MAX_PAUSE_BYTES))
            .bind(storable(reason, MAX_PAUSE_BYTES));
        let paused = self.lanes().one(statement).await;
        paused.map(drop).map_err(|trouble| trouble.during("pause the queue"))
    }

    async fn resume(&self, queue: &QueueName) -> Result<(), StoreError> {
        let statement = self.statements().resume().bind(queue.as_str().to_owned());
        let resumed = self.lanes().one(statement).await;
        self.bell().ring();
        resumed.map(drop).map_err(|trouble| trouble.during("resume the queue"))
    }
}

impl PostgresStore {
    /// Cancels what waits and asks for the rest. A run that ends while it is asked may be waiting
    /// again afterwards, without having seen the request; then it is cancelled as waiting.
    async fn cancel_all(&self, jobs: &[JobId]) -> Attempt<Vec<Cancelled>> {
        let mut answers: HashMap<JobId, Cancelled> = HashMap::new();
        let mut cancelled = HashSet::new();
        let mut open = in_order(jobs);
        let mut races = Races::default();
        while !open.is_empty() {
            match self.try_cancel(&open).await {
                Err(trouble) if races.again(&trouble, self.random()).await => continue,
                Err(trouble) => return Err(trouble),
                Ok(round) => {
                    cancelled.extend(round.ended.iter().copied());
                    answers.extend(round.answers);
                }
            }
            open = self.waiting_again(&open, &cancelled).await?;
        }
        let mut seen = HashSet::new();
        let answer = |id: &JobId| {
            let is_repeated = !seen.insert(*id);
            match answers.get(id) {
                Some(Cancelled::Cancelled) if is_repeated => Cancelled::Finished(State::Cancelled),
                Some(answer) => *answer,
                None => Cancelled::Missing,
            }
        };
        Ok(jobs.iter().map(answer).collect())
    }

    async fn try_cancel(&self, open: &[i64]) -> Attempt<Round> {
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let rows = lane.fetch(self.statements().cancel_waiting().bind(open.to_vec())).await?;
        let mut round = Round::default();
        let mut lines = Vec::new();
        for row in &rows {
            let mut columns = Columns::of(row);
            let fence = columns.fence()?;
            round.ended.push(fence.job);
            round.answers.insert(fence.job, Cancelled::Cancelled);
            let event = event(EventKind::Cancelled, CANCELLED, "cancelled while it waited");
            lines.push(Line { fence, number: columns.next()?, event });
        }
        record_events(&mut lane, self.statements(), None, &lines).await?;
        lane.fetch(self.statements().request_cancel().bind(open.to_vec())).await?;
        for row in &lane.fetch(self.statements().states().bind(open.to_vec())).await? {
            let mut columns = Columns::of(row);
            let id = columns.id()?;
            let answer = match columns.state()? {
                State::Running | State::Scheduled | State::Ready => Cancelled::Requested,
                state @ (State::Succeeded | State::Dead | State::Cancelled) => {
                    Cancelled::Finished(state)
                }
            };
            round.answers.entry(id).or_insert(answer);
        }
        lane.commit().await?;
        Ok(round)
    }

    /// The jobs that wait although a cancel was asked for, once settlements in flight have ended.
    async fn waiting_again(&self, open: &[i64], done: &HashSet<JobId>) -> Attempt<Vec<i64>> {
        let asked: Vec<i64> =
            open.iter().copied().filter(|id| !done.contains(&JobId(*id))).collect();
        if asked.is_empty() {
            return Ok(asked);
        }
        let mut waiting = Vec::new();
        match self.states_settled(&asked).await {
            Ok(states) => waiting.extend(states),
            // A transaction of an application holds one of the rows: it runs.
            Err(trouble) if trouble.is_locked() => {
                for id in asked {
                    match self.states_settled(&[id]).await {
                        Ok(states) => waiting.extend(states),
                        Err(trouble) if trouble.is_locked() => {}
                        Err(trouble) => return Err(trouble),
                    }
                }
            }
            Err(trouble) => return Err(trouble),
        }
        let waits = |(_, state): &(i64, State)| state.is_waiting();
        Ok(waiting.into_iter().filter(waits).map(|(id, _)| id).collect())
    }

    async fn states_settled(&self, jobs: &[i64]) -> Attempt<Vec<(i64, State)>> {
        let rows = self.lanes().one(self.statements().states_settled().bind(jobs.to_vec())).await?;
        let state = |row| {
            let mut columns = Columns::of(row);
            Ok((columns.next()?, columns.state()?))
        };
        rows.iter().map(state).collect()
    }

    async fn try_redrive(&self, jobs: &[JobId], redrive: Redrive) -> Attempt<Vec<Redriven>> {
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let rows = lane.fetch(self.statements().operate_read().bind(in_order(jobs))).await?;
        let mut found = HashMap::new();
        for row in &rows {
            let mut columns = Columns::of(row);
            found.insert(columns.id()?, read(&mut columns)?);
        }
        let mut waiting = HashMap::new();
        let answers: Vec<Redriven> =
            jobs.iter().map(|id| decide(*id, redrive, &mut found, &mut waiting)).collect();
        let mut ready = Vec::new();
        let mut lines = Vec::new();
        for (id, _) in jobs.iter().zip(&answers).filter(|(_, answer)| **answer == Redriven::Ready) {
            let Some(row) = found.get(id) else { continue };
            let fence = Fence { job: *id, claim: row.claim };
            let event = event(EventKind::Redriven, REDRIVEN, REDRIVEN_TEXT);
            lines.push(Line { fence, number: next(row.events), event });
            ready.push(id.0);
        }
        // Those that take a key go one by one, in the order in which an enqueue takes keys: two that wait for
        // a key never wait for each other.
        let key = |id: &i64| found.get(&JobId(*id))?.key.as_ref().map(|(kind, key)| (key, kind));
        ready.sort_by_key(|id| (key(id), *id));
        let (plain, keyed) = ready.split_at(ready.partition_point(|id| key(id).is_none()));
        for jobs in plain.chunks(plain.len().max(1)).chain(keyed.chunks(1)) {
            let write = self
                .statements()
                .redrive()
                .bind(jobs.to_vec())
                .bind(redrive.keeps_counters)
                .bind(redrive.forgets_checkpoint)
                .bind(redrive.makes_new_key);
            lane.fetch(write).await?;
        }
        if redrive.forgets_checkpoint {
            lane.fetch(self.statements().forget_checkpoints().bind(ready)).await?;
        }
        record_events(&mut lane, self.statements(), None, &lines).await?;
        lane.commit().await?;
        self.ring_if(!lines.is_empty());
        Ok(answers)
    }

    async fn try_reschedule(&self, jobs: &[JobId], change: Reschedule) -> Attempt<Vec<bool>> {
        let (due_in, due_at) = match change.due {
            None | Some(Due::Unchanged) => (None, None),
            Some(Due::In(wait)) => (Some(micros(wait)), None),
            Some(Due::At(instant)) => (None, Some(instant.as_micros())),
        };
        let statement = self
            .statements()
            .reschedule()
            .bind(in_order(jobs))
            .bind(change.priority.map(Priority::value))
            .bind(due_in)
            .bind(due_at);
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let rows = lane.fetch(statement).await?;
        let changed = self.note(&mut lane, &rows, RESCHEDULED, &change.text()).await?;
        lane.commit().await?;
        self.ring_if(!changed.is_empty());
        Ok(jobs.iter().map(|id| changed.contains(id)).collect())
    }

    async fn try_run_now(&self, jobs: &[JobId]) -> Attempt<Vec<bool>> {
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let rows = lane.fetch(self.statements().run_now().bind(in_order(jobs))).await?;
        let mut ready = self.note(&mut lane, &rows, RUN_NOW, RUN_NOW_TEXT).await?;
        lane.commit().await?;
        self.ring_if(!ready.is_empty());
        Ok(jobs.iter().map(|id| ready.remove(id)).collect())
    }

    /// Writes a line of history of the rows that a statement changed, and answers whose they are.
    async fn note(
        &self,
        lane: &mut Lane<'_>,
        rows: &[PgRow],
        class: &str,
        text: &str,
    ) -> Attempt<HashSet<JobId>> {
        let line = |row| {
            let mut columns = Columns::of(row);
            let fence = columns.fence()?;
            let event = event(EventKind::Rescheduled, class, text);
            Ok(Line { fence, number: columns.next()?, event })
        };
        let lines = rows.iter().map(line).collect::<Attempt<Vec<Line>>>()?;
        record_events(lane, self.statements(), None, &lines).await?;
        Ok(lines.iter().map(|line| line.fence.job).collect())
    }
}

/// What one round of a cancel did.
#[derive(Default)]
struct Round {
    ended: Vec<JobId>,
    answers: HashMap<JobId, Cancelled>,
}

fn read(columns: &mut Columns<'_>) -> Attempt<Found> {
    let (state, claim) = (columns.state()?, ClaimNumber(columns.next()?));
    let events = columns.next()?;
    let (kind, key): (String, Option<String>) = (columns.next()?, columns.next()?);
    let finished_at = columns.next::<Option<i64>>()?.map(Timestamp::from_micros);
    let twin = columns.next::<Option<i64>>()?.map(JobId);
    Ok(Found { state, claim, events, key: key.map(|key| (kind, key)), finished_at, twin })
}

/// One after another, as the slice has them: what one brings back, the next one finds.
fn decide(
    id: JobId,
    redrive: Redrive,
    found: &mut HashMap<JobId, Found>,
    waiting: &mut HashMap<(String, String), JobId>,
) -> Redriven {
    let Some(row) = found.get_mut(&id) else {
        return Redriven::Missing;
    };
    match row.state {
        State::Dead | State::Cancelled => {}
        State::Scheduled | State::Ready | State::Running | State::Succeeded => {
            return Redriven::Not(row.state);
        }
    }
    if redrive.ended_before.is_some_and(|before| row.finished_at >= Some(before)) {
        return Redriven::EndedLater;
    }
    if let Some(key) = &row.key {
        let twin = row.twin.unwrap_or_else(|| *waiting.entry(key.clone()).or_insert(id));
        if twin != id {
            return Redriven::TwinWaits(twin);
        }
    }
    row.state = State::Ready;
    Redriven::Ready
}

fn event(kind: EventKind, class: &str, text: &str) -> NewEvent {
    NewEvent { kind, class: class.to_owned(), text: text.to_owned() }
}

fn in_order(jobs: &[JobId]) -> Vec<i64> {
    let mut ids: Vec<i64> = jobs.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
