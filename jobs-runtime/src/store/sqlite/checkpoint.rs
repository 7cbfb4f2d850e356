//! Saving checkpoints, and asking whether runs still hold their claims.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use jobs_core::store::{CheckpointSave, Row, Standing};
use jobs_core::{
    ClaimNumber, Counters, Fence, JobId, State, StoreError, StoreErrorKind, Timestamp,
};
use sqlx::sqlite::SqliteRow;
use sqlx::{Executor, Sqlite, SqliteConnection};

use super::error::{During, Result};
use super::finish::finish;
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};

const SAVING: &str = "saving checkpoints";
const READING: &str = "reading runs";

/// Checkpoints to be saved.
pub(super) struct Save {
    saves: Vec<CheckpointSave>,
    /// It takes more than one statement, as far as is known.
    takes_more: bool,
    /// The latest attempt has shown that.
    has_just_shown: bool,
}

impl Save {
    pub(super) fn new(saves: &[CheckpointSave]) -> Self {
        Self { saves: saves.to_vec(), takes_more: saves.len() != 1, has_just_shown: false }
    }
}

#[async_trait]
impl Write for Save {
    type Answer = Vec<Standing>;

    async fn run(&mut self, tx: &mut SqliteConnection, _: Timestamp) -> Result<Vec<Standing>> {
        self.has_just_shown = false;
        save(tx, &self.saves).await
    }

    fn is_one_statement(&self) -> bool {
        !self.takes_more
    }

    async fn run_alone(
        &mut self,
        connection: &mut SqliteConnection,
        _: Timestamp,
    ) -> Result<Vec<Standing>> {
        if let Some(standing) = save_one(connection, &self.saves[0]).await? {
            return Ok(vec![standing]);
        }
        (self.takes_more, self.has_just_shown) = (true, true);
        Err(StoreError::new(StoreErrorKind::Unavailable, "one statement does not do it"))
    }

    fn is_to_be_repeated(&self) -> bool {
        self.has_just_shown
    }

    fn wakes(&self, _: &Vec<Standing>) -> bool {
        false
    }
}

/// Saves a checkpoint as nearly all are saved; `None`: it takes more, and nothing was done.
async fn save_one(
    connection: &mut SqliteConnection,
    save: &CheckpointSave,
) -> Result<Option<Standing>> {
    let query = sqlx::query(sql::CHECKPOINT_ONE)
        .bind(save.fence.job.0)
        .bind(save.fence.claim.0)
        .bind(save.version.to_string())
        .bind(save.min_reader.to_string())
        .bind(&save.text)
        .bind(save.keeps_failures);
    let saved = finish(connection, query).await.during(SAVING)?;
    Ok((saved > 0).then_some(Standing::Held))
}

/// Saves checkpoints where their fences hold.
pub(super) async fn save(
    tx: &mut SqliteConnection,
    saves: &[CheckpointSave],
) -> Result<Vec<Standing>> {
    if let [only] = saves
        && let Some(standing) = save_one(tx, only).await?
    {
        return Ok(vec![standing]);
    }
    let fences: Vec<Fence> = saves.iter().map(|save| save.fence).collect();
    let standings = standings(&mut *tx, &fences).await?;
    let held: Vec<_> = (saves.iter().zip(&standings))
        .filter(|(_, standing)| **standing != Standing::Lost)
        .map(|(save, _)| save)
        .collect();
    for round in rounds(&held, |save| save.fence.job) {
        save_round(tx, &round).await?;
    }
    Ok(standings)
}

/// Saves checkpoints of different jobs.
async fn save_round(tx: &mut SqliteConnection, saves: &[&CheckpointSave]) -> Result<()> {
    let row = |save: &&CheckpointSave| {
        let Fence { job, claim } = save.fence;
        let (version, min_reader) = (save.version.to_string(), save.min_reader.to_string());
        (job.0, claim.0, version, min_reader, save.text.clone())
    };
    let rows: Vec<_> = saves.iter().map(row).collect();
    let moved = sqlx::query(sql::CHECKPOINT_SAVE).bind(json::rows(&rows)).fetch_all(&mut *tx);
    let moved = moved.await.during(SAVING)?;
    let keeps: HashMap<i64, bool> =
        saves.iter().map(|save| (save.fence.job.0, save.keeps_failures)).collect();
    let row = |row: &SqliteRow| {
        let mut columns = Columns::new(row);
        let (job, number) = (columns.number()?, columns.number()?);
        Ok((job, number, i32::from(keeps.get(&job).copied().unwrap_or_default())))
    };
    let rows = moved.iter().map(row).collect::<Result<Vec<_>, _>>().during(SAVING)?;
    if rows.is_empty() {
        return Ok(());
    }
    let note = sqlx::query(sql::CHECKPOINT_MOVED).bind(json::rows(&rows));
    note.execute(tx).await.map(drop).during(SAVING)
}

/// Splits elements so that none of a part shares its key with another: a statement that writes a row
/// twice does not do what two would.
pub(super) fn rounds<T: Copy, K: std::hash::Hash + Eq>(
    elements: &[T],
    key: impl Fn(T) -> K,
) -> Vec<Vec<T>> {
    let mut left = elements.to_vec();
    let mut rounds = Vec::new();
    while !left.is_empty() {
        let mut seen = HashSet::new();
        let (round, later) = left.into_iter().partition(|element| seen.insert(key(*element)));
        rounds.push(round);
        left = later;
    }
    rounds
}

/// Whether runs hold their claims.
pub(super) async fn standings<'c>(
    connection: impl Executor<'c, Database = Sqlite>,
    fences: &[Fence],
) -> Result<Vec<Standing>> {
    let mut standings = vec![Standing::Lost; fences.len()];
    if fences.is_empty() {
        return Ok(standings);
    }
    let query = sqlx::query(sql::STANDING).bind(json::fences(fences));
    for row in query.fetch_all(connection).await.during(READING)? {
        let mut columns = Columns::new(&row);
        let read = (|| Ok((columns.number()?, columns.flag()?)))();
        let (element, is_cancel_requested) = read.during(READING)?;
        standings[usize::try_from(element).unwrap_or_default()] =
            if is_cancel_requested { Standing::CancelRequested } else { Standing::Held };
    }
    Ok(standings)
}

/// Reading what became of runs. It asks for the write lock, as a write does, so that a transaction in
/// flight has ended before.
pub(super) struct Reread {
    fences: Vec<Fence>,
}

impl Reread {
    pub(super) fn new(fences: &[Fence]) -> Self {
        Self { fences: fences.to_vec() }
    }
}

#[async_trait]
impl Write for Reread {
    type Answer = Vec<Row>;

    async fn run(&mut self, tx: &mut SqliteConnection, _: Timestamp) -> Result<Vec<Row>> {
        let ids: Vec<_> = self.fences.iter().map(|fence| fence.job.0).collect();
        let rows = sqlx::query(sql::REREAD).bind(json::rows(&ids)).fetch_all(tx).await;
        let mut answers = vec![Row::Missing; self.fences.len()];
        for row in rows.during(READING)? {
            let (element, stored) = stored(&row).during(READING)?;
            answers[element] = stored.seen_by(self.fences[element]);
        }
        Ok(answers)
    }

    fn wakes(&self, _: &Vec<Row>) -> bool {
        false
    }
}

struct Stored {
    claim: ClaimNumber,
    state: State,
    counters: Counters,
}

fn stored(row: &SqliteRow) -> Result<(usize, Stored), sqlx::Error> {
    let mut columns = Columns::new(row);
    let element = usize::try_from(columns.number()?).unwrap_or_default();
    let claim = ClaimNumber(columns.number()?);
    Ok((element, Stored { claim, state: columns.state()?, counters: columns.counters()? }))
}

impl Stored {
    fn seen_by(&self, fence: Fence) -> Row {
        if self.claim < fence.claim {
            Row::Missing
        } else if self.claim > fence.claim {
            Row::Taken(self.claim)
        } else if self.state == State::Running {
            Row::Running(self.counters)
        } else {
            Row::Settled(self.state)
        }
    }
}

/// The ids of jobs, each once, in rounds.
pub(super) fn id_rounds(jobs: &[JobId]) -> Vec<Vec<(usize, JobId)>> {
    let elements: Vec<_> = jobs.iter().copied().enumerate().collect();
    rounds(&elements, |(_, id)| id)
}
