//! Checkpoints and progress, and what the rows say of runs.

use std::collections::HashMap;
use std::time::Duration;

use jobs_core::store::{CheckpointSave, Row, Saved, Standing};
use jobs_core::{
    ClaimNumber, Counters, Fence, JobId, ProgressNote, State, StoreError, StoreErrorKind,
};

use super::PostgresStore;
use super::error::{Attempt, LOOKS, Races, Trouble};
use super::row::{Columns, element};
use super::settle::fences;
use super::sql::{Statement, Statements};

impl PostgresStore {
    pub(super) async fn checkpoint_all(&self, saves: &[CheckpointSave]) -> Attempt<Vec<Saved>> {
        if let [only] = saves
            && let Some(standing) = self.checkpoint_one(only).await?
        {
            return Ok(vec![Saved::Answered(standing)]);
        }
        let mut answers = vec![Saved::Answered(Standing::Lost); saves.len()];
        let fences: Vec<Fence> = saves.iter().map(|save| save.fence).collect();
        for round in rounds(&fences) {
            if let Err(trouble) = self.checkpoint_waiting(saves, &round, &mut answers).await {
                return Err(behind(&answers, trouble));
            }
        }
        Ok(answers)
    }

    /// Saves checkpoints of different jobs, and waits for rows that others hold.
    async fn checkpoint_waiting(
        &self,
        saves: &[CheckpointSave],
        round: &[usize],
        answers: &mut [Saved],
    ) -> Attempt<()> {
        let left = self.checkpoint_round(saves, round, answers).await?;
        if left.is_empty() { Ok(()) } else { self.checkpoint_locked(saves, left, answers).await }
    }

    /// Saves a checkpoint as nearly all are saved; `None`: it takes more, and nothing was done.
    async fn checkpoint_one(&self, save: &CheckpointSave) -> Attempt<Option<Standing>> {
        let mut races = Races::default();
        loop {
            let statement = self
                .statements()
                .checkpoint_one()
                .bind(save.fence.job.0)
                .bind(save.fence.claim.0)
                .bind(save.version.to_string())
                .bind(save.min_reader.to_string())
                .bind(save.text.clone())
                .bind(save.keeps_failures);
            match self.lanes().one(statement).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => {
                    let rows = done?;
                    let row = rows.first();
                    return row.map(|row| Columns::of(row).next().map(standing)).transpose();
                }
            }
        }
    }

    /// Saves what is not locked; answers what was not saved.
    async fn checkpoint_round(
        &self,
        saves: &[CheckpointSave],
        round: &[usize],
        answers: &mut [Saved],
    ) -> Attempt<Vec<usize>> {
        let batch: Vec<&CheckpointSave> = round.iter().map(|nth| &saves[*nth]).collect();
        let mut races = Races::default();
        let rows = loop {
            match self.lanes().one(bound(self.statements(), &batch)).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => break done?,
            }
        };
        let mut is_saved = vec![false; batch.len()];
        for row in &rows {
            let mut columns = Columns::of(row);
            let nth = element(columns.next()?, batch.len())?;
            is_saved[nth] = true;
            answers[round[nth]] = Saved::Answered(standing(columns.next()?));
        }
        Ok(round.iter().zip(is_saved).filter(|(_, saved)| !saved).map(|(nth, _)| *nth).collect())
    }

    /// Saves what another transaction has locked, as soon as it has not. It looks now and then and
    /// does not stand in line: that would hold a connection for each that waits.
    async fn checkpoint_locked(
        &self,
        saves: &[CheckpointSave],
        mut left: Vec<usize>,
        answers: &mut [Saved],
    ) -> Attempt<()> {
        let (mut waited, mut looks) = (Duration::ZERO, LOOKS.into_iter());
        loop {
            let held = self.standings(left.iter().map(|nth| saves[*nth].fence)).await?;
            let held = left.into_iter().zip(held).filter(|(_, standing)| standing.is_some());
            left = held.map(|(nth, _)| nth).collect();
            if left.is_empty() {
                return Ok(());
            }
            if waited >= self.shared.options.patience {
                for nth in left {
                    answers[nth] = Saved::Locked;
                }
                return Ok(());
            }
            let pause = looks.next().unwrap_or(LOOKS[LOOKS.len() - 1]);
            tokio::time::sleep(pause).await;
            waited += pause;
            left = self.checkpoint_round(saves, &left, answers).await?;
        }
    }

    pub(super) async fn note_all(&self, notes: &[ProgressNote]) -> Attempt<Vec<bool>> {
        let mut is_written = vec![false; notes.len()];
        let fences: Vec<Fence> = notes.iter().map(|note| note.fence).collect();
        for round in rounds(&fences) {
            let (jobs, claims) = self::fences(round.iter().map(|nth| fences[*nth]));
            let texts: Vec<_> = round.iter().map(|nth| notes[*nth].text.clone()).collect();
            let statement = self.statements().note_progress().bind(jobs).bind(claims).bind(texts);
            for row in &self.lanes().one(statement).await? {
                is_written[round[element(Columns::of(row).next()?, round.len())?]] = true;
            }
        }
        Ok(is_written)
    }

    /// Where each fence stands; `None`: lost.
    pub(super) async fn standings(
        &self,
        which: impl Iterator<Item = Fence>,
    ) -> Attempt<Vec<Option<Standing>>> {
        let (jobs, claims) = fences(which);
        let mut standings = vec![None; jobs.len()];
        if standings.is_empty() {
            return Ok(standings);
        }
        let statement = self.statements().standing().bind(jobs).bind(claims);
        for row in &self.lanes().one(statement).await? {
            let mut columns = Columns::of(row);
            let nth = element(columns.next()?, standings.len())?;
            standings[nth] = Some(standing(columns.next()?));
        }
        Ok(standings)
    }

    pub(super) async fn reread_all(&self, fences: &[Fence]) -> Attempt<Vec<Row>> {
        if fences.is_empty() {
            return Ok(Vec::new());
        }
        let mut jobs: Vec<i64> = fences.iter().map(|fence| fence.job.0).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let mut found = HashMap::new();
        let mut locked = self.reread_free(jobs, &mut found).await?;
        for pause in LOOKS {
            if locked.is_empty() {
                break;
            }
            tokio::time::sleep(pause).await;
            locked = self.reread_free(locked, &mut found).await?;
        }
        let read = |fence: &Fence| match found.get(&fence.job) {
            None if locked.contains(&fence.job.0) => Row::Locked,
            None => Row::Missing,
            Some((claim, ..)) if *claim < fence.claim => Row::Missing,
            Some((claim, ..)) if *claim > fence.claim => Row::Taken(ClaimNumber(claim.0)),
            Some((_, State::Running, counters)) => Row::Running(*counters),
            Some((_, state, _)) => Row::Settled(*state),
        };
        Ok(fences.iter().map(read).collect())
    }

    /// Reads the rows of jobs that nobody holds; answers those that are there but locked.
    async fn reread_free(
        &self,
        jobs: Vec<i64>,
        found: &mut HashMap<JobId, (ClaimNumber, State, Counters)>,
    ) -> Attempt<Vec<i64>> {
        let rows = self.lanes().one(self.statements().reread().bind(jobs.clone())).await?;
        for row in &rows {
            let mut columns = Columns::of(row);
            let fence = columns.fence()?;
            found.insert(fence.job, (fence.claim, columns.state()?, columns.counters()?));
        }
        let mut left = jobs;
        left.retain(|id| !found.contains_key(&JobId(*id)));
        if left.is_empty() {
            return Ok(left);
        }
        let rows = self.lanes().one(self.statements().states().bind(left)).await?;
        rows.iter().map(|row| Ok(Columns::of(row).id()?.0)).collect()
    }
}

/// The trouble of a call that may have saved some of its checkpoints before: then only the rows tell.
fn behind(answers: &[Saved], trouble: Trouble) -> Trouble {
    let is_saved = |answer: &Saved| match answer {
        Saved::Answered(Standing::Held | Standing::CancelRequested) => true,
        Saved::Answered(Standing::Lost) | Saved::Locked => false,
    };
    if !answers.iter().any(is_saved) {
        return trouble;
    }
    let what = "some of the checkpoints are saved, and the others may be";
    let error = StoreError::new(StoreErrorKind::Unavailable, what);
    error.because(trouble.during("save the others")).into()
}

/// What a save within a transaction of the caller answers.
pub(super) fn answer(rows: &[sqlx::postgres::PgRow]) -> Attempt<Standing> {
    let Some(row) = rows.first() else {
        return Ok(Standing::Lost);
    };
    let mut columns = Columns::of(row);
    columns.next::<i64>()?;
    Ok(standing(columns.next()?))
}

/// The statement that saves these, in order of job, each job once.
pub(super) fn bound(statements: &Statements, saves: &[&CheckpointSave]) -> Statement {
    let (jobs, claims) = fences(saves.iter().map(|save| save.fence));
    statements
        .checkpoint()
        .bind(jobs)
        .bind(claims)
        .bind(saves.iter().map(|save| save.version.to_string()).collect::<Vec<_>>())
        .bind(saves.iter().map(|save| save.min_reader.to_string()).collect::<Vec<_>>())
        .bind(saves.iter().map(|save| save.text.as_str()).collect::<Vec<_>>())
        .bind(saves.iter().map(|save| save.keeps_failures).collect::<Vec<_>>())
}

/// Writes about runs in rounds, each in order of job; the n-th about a job goes in the n-th round.
fn rounds(fences: &[Fence]) -> Vec<Vec<usize>> {
    let mut seen: HashMap<_, usize> = HashMap::new();
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (nth, fence) in fences.iter().enumerate() {
        let round = seen.entry(fence.job).or_default();
        if rounds.len() <= *round {
            rounds.push(Vec::new());
        }
        rounds[*round].push(nth);
        *round += 1;
    }
    for round in &mut rounds {
        round.sort_unstable_by_key(|nth| fences[*nth]);
    }
    rounds
}

fn standing(is_cancel_requested: bool) -> Standing {
    if is_cancel_requested { Standing::CancelRequested } else { Standing::Held }
}
