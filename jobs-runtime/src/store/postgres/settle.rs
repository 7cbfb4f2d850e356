//! Settlements: clean successes in one statement, everything else read, decided and written.
//!
//! 1. Only what the fence holds for is written. Rows are locked in order of job, and keys then taken in their own.
//! 2. A locked row holds up the others for no more than a moment: it is stepped over, looked after
//!    again a few times, and then answered as locked.
//! 3. A key that another takes in the meantime fails the transaction, not the settlement: it is
//!    read and decided again, and in the end alone.
//!
//! Not waiting for the row: that would hold up what is locked behind it, and what ends next.

use std::collections::HashMap;

use jobs_core::store::{Author, CANCELLED, SUPERSEDED, Settled};
use jobs_core::{
    ClaimNumber, Counters, Due, ErrorNote, EventKind, Fence, JobId, NewEvent, Notes, Settlement,
    State, StoreErrorKind, micros,
};

use super::PostgresStore;
use super::error::{Attempt, LOOKS, Races, Trouble};
use super::event::{Line, next, record_events};
use super::lane::{Lane, Wait};
use super::row::{Columns, counter, element};
use super::sql::{Statement, Statements};

/// What becomes of the claim number when a run is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taking {
    /// The worker settles its own run.
    Settle,
    /// The run is taken back from its worker.
    Back,
}

/// What a row says that decides how its run is settled.
struct Found {
    events: i64,
    is_cancel_requested: bool,
    key: Option<(String, String)>,
    twin: Option<JobId>,
}

/// A settlement as it is written.
struct Decided<'a> {
    settlement: &'a Settlement,
    next_claim: ClaimNumber,
    state: State,
    error: Option<ErrorNote>,
    events: i64,
}

impl PostgresStore {
    pub(super) async fn settle_all(
        &self,
        by: &Author,
        settlements: &[Settlement],
    ) -> Attempt<Vec<Settled>> {
        let mut answers = vec![Settled::LeaseLost; settlements.len()];
        let order = in_order(settlements);
        let (mut clean, mut rest): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|nth| is_clean(&settlements[*nth]));
        match self.settle_clean(settlements, &mut clean, &mut answers).await {
            Err(trouble) if trouble.is_locked() => {
                rest.extend(clean);
                rest.sort_unstable_by_key(|nth| settlements[*nth].fence);
            }
            Err(trouble) if has_applied(&answers) => return Err(in_part(trouble)),
            done => done?,
        }
        if rest.is_empty() {
            return Ok(answers);
        }
        let settled = self.settle_decided(by, settlements, rest, &mut answers).await;
        self.ring_if(answers.contains(&Settled::Applied(State::Ready)));
        if has_applied(&answers) {
            settled.map_err(in_part)?;
        } else {
            settled?;
        }
        Ok(answers)
    }

    /// Writes clean successes: in one statement those of rows that nothing ever happened to, nearly
    /// always all, and in another what is left of them. Takes out what it has settled.
    async fn settle_clean(
        &self,
        settlements: &[Settlement],
        clean: &mut Vec<usize>,
        answers: &mut [Settled],
    ) -> Attempt<()> {
        for statement in [Statements::settle_fresh, Statements::settle_done] {
            if clean.is_empty() {
                return Ok(());
            }
            let mut left =
                self.settle_by(statement, settlements, clean).await?.into_iter().peekable();
            let mut elements = 0..;
            clean.retain(|nth| {
                let element = elements.next();
                let is_left = left.next_if(|left| Some(*left) == element).is_some();
                if !is_left {
                    answers[*nth] = Settled::Applied(State::Succeeded);
                }
                is_left
            });
        }
        Ok(())
    }

    /// Settles runs by one statement, and answers which of them it left, in order.
    async fn settle_by(
        &self,
        statement: fn(&Statements) -> Statement,
        settlements: &[Settlement],
        which: &[usize],
    ) -> Attempt<Vec<usize>> {
        let (jobs, claims) = fences(which.iter().map(|nth| settlements[*nth].fence));
        let mut races = Races::default();
        let rows = loop {
            let statement = statement(self.statements()).bind(jobs.clone()).bind(claims.clone());
            match self.lanes().one(statement).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => break done?,
            }
        };
        let element = |row| element(Columns::of(row).next()?, which.len());
        let mut left: Vec<usize> = rows.iter().map(element).collect::<Attempt<_>>()?;
        left.sort_unstable();
        Ok(left)
    }

    /// Settles what is not locked, and looks after the rest until that is free, lost or was looked
    /// after often enough.
    async fn settle_decided(
        &self,
        by: &Author,
        settlements: &[Settlement],
        which: Vec<usize>,
        answers: &mut [Settled],
    ) -> Attempt<()> {
        let mut left = self.settle_free(by, settlements, which, answers).await?;
        for pause in LOOKS {
            left = self.still_held(settlements, left).await?;
            if left.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            left = self.settle_free(by, settlements, left, answers).await?;
        }
        for nth in self.still_held(settlements, left).await? {
            answers[nth] = Settled::Locked;
        }
        Ok(())
    }

    /// Settles what is not locked; answers what was stepped over, because it is locked or lost.
    async fn settle_free(
        &self,
        by: &Author,
        settlements: &[Settlement],
        which: Vec<usize>,
        answers: &mut [Settled],
    ) -> Attempt<Vec<usize>> {
        if which.is_empty() {
            return Ok(which);
        }
        let batch: Vec<&Settlement> = which.iter().map(|nth| &settlements[*nth]).collect();
        match self.settle_batch(by, &batch).await {
            Ok(states) => {
                let mut left = Vec::new();
                for (nth, state) in which.into_iter().zip(states) {
                    match state {
                        Some(state) => answers[nth] = Settled::Applied(state),
                        None => left.push(nth),
                    }
                }
                Ok(left)
            }
            // A key is fought for, or held by a transaction of the application: whose it is shows
            // alone.
            Err(trouble) if trouble.is_lost_race() || trouble.is_locked() => {
                self.settle_apart(by, settlements, &which, answers).await
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Settles one by one, and answers what was stepped over. One whose key is held has waited its
    /// moment, and is answered as locked at once.
    async fn settle_apart(
        &self,
        by: &Author,
        settlements: &[Settlement],
        which: &[usize],
        answers: &mut [Settled],
    ) -> Attempt<Vec<usize>> {
        let mut left = Vec::new();
        let mut first_trouble = None;
        for nth in which {
            match self.settle_batch(by, &[&settlements[*nth]]).await {
                Ok(states) => match states.first().copied().flatten() {
                    Some(state) => answers[*nth] = Settled::Applied(state),
                    None => left.push(*nth),
                },
                Err(trouble) if trouble.is_locked() => answers[*nth] = Settled::Locked,
                Err(trouble) => first_trouble = first_trouble.or(Some(trouble)),
            }
        }
        first_trouble.map_or(Ok(left), Err)
    }

    /// Those of these whose fence holds.
    async fn still_held(
        &self,
        settlements: &[Settlement],
        which: Vec<usize>,
    ) -> Attempt<Vec<usize>> {
        let held = self.standings(which.iter().map(|nth| settlements[*nth].fence)).await?;
        let held = which.into_iter().zip(held).filter(|(_, standing)| standing.is_some());
        Ok(held.map(|(nth, _)| nth).collect())
    }

    /// One transaction, tried again while it loses races.
    async fn settle_batch(
        &self,
        by: &Author,
        batch: &[&Settlement],
    ) -> Attempt<Vec<Option<State>>> {
        let mut races = Races::default();
        loop {
            match self.try_settle(by, batch).await {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done,
            }
        }
    }

    async fn try_settle(&self, by: &Author, batch: &[&Settlement]) -> Attempt<Vec<Option<State>>> {
        let mut lane = self.lanes().begin(Wait::Brief).await?;
        let states = write(&mut lane, self.statements(), by, batch, Taking::Settle).await?;
        lane.commit().await?;
        Ok(states)
    }
}

/// Reads, decides and writes settlements of one transaction, which come in order of job. Answers the state of
/// each that was written; the others were locked, or their fence did not hold.
pub(super) async fn write(
    lane: &mut Lane<'_>,
    statements: &Statements,
    by: &Author,
    batch: &[&Settlement],
    taking: Taking,
) -> Attempt<Vec<Option<State>>> {
    let (jobs, claims) = fences(batch.iter().map(|settlement| settlement.fence));
    let rows = lane.fetch(statements.settle_read().bind(jobs).bind(claims)).await?;
    let mut found: Vec<Option<Found>> = batch.iter().map(|_| None).collect();
    for row in &rows {
        let mut columns = Columns::of(row);
        let nth = element(columns.next()?, batch.len())?;
        found[nth] = Some(read(&mut columns)?);
    }
    let mut waiting = HashMap::new();
    let mut lines = Vec::new();
    let mut decided = Vec::new();
    let mut states = vec![None; batch.len()];
    for (nth, found) in found.into_iter().enumerate() {
        let Some(found) = found else { continue };
        let key = found.key.clone().map(|(kind, key)| (key, kind));
        let written = decide(batch[nth], found, taking, &mut waiting, &mut lines);
        states[nth] = Some(written.state);
        decided.push((key, written));
    }
    // The rows are locked; those that wait again take their keys now, in the order in which an enqueue does.
    decided.sort_by(|(one, _), (other, _)| one.cmp(other));
    let decided: Vec<Decided<'_>> = decided.into_iter().map(|(_, decided)| decided).collect();
    if !decided.is_empty() {
        lane.fetch(bound(statements, &decided)).await?;
        record_events(lane, statements, Some(by), &lines).await?;
    }
    Ok(states)
}

fn read(columns: &mut Columns<'_>) -> Attempt<Found> {
    let (events, is_cancel_requested) = (columns.next()?, columns.next()?);
    let (kind, key): (String, Option<String>) = (columns.next()?, columns.next()?);
    let twin = columns.next::<Option<i64>>()?.map(JobId);
    Ok(Found { events, is_cancel_requested, key: key.map(|key| (kind, key)), twin })
}

/// A cancel request goes before a waiting twin; neither undoes what is over.
fn decide<'a>(
    settlement: &'a Settlement,
    found: Found,
    taking: Taking,
    waiting: &mut HashMap<(String, String), JobId>,
    lines: &mut Vec<Line>,
) -> Decided<'a> {
    let fence = settlement.fence;
    let mut events = found.events;
    let mut record = |event| {
        events = next(events);
        lines.push(Line { fence, number: events, event });
    };
    settlement.event.clone().map(&mut record);
    let mut error = settlement.error.clone();
    let mut state = settlement.state;
    let cancelled = |class: &str, text: String| NewEvent {
        kind: EventKind::Cancelled,
        class: class.to_owned(),
        text,
    };
    if found.is_cancel_requested && !matches!(state, State::Succeeded | State::Dead) {
        state = State::Cancelled;
        record(cancelled(CANCELLED, "cancelled while it ran".to_owned()));
    } else if state.is_waiting()
        && let Some(key) = found.key
    {
        let twin = found.twin.unwrap_or_else(|| *waiting.entry(key).or_insert(fence.job));
        if twin != fence.job {
            let text = format!("job {twin} waits with the same unique key");
            error = Some(ErrorNote { class: SUPERSEDED.to_owned(), text: text.clone() });
            state = State::Cancelled;
            record(cancelled(SUPERSEDED, text));
        }
    }
    let next_claim = match taking {
        Taking::Settle => fence.claim,
        Taking::Back => ClaimNumber(fence.claim.0.saturating_add(1)),
    };
    Decided { settlement, next_claim, state, error, events }
}

fn bound(statements: &Statements, decided: &[Decided<'_>]) -> Statement {
    fn each<'a, T>(decided: &'a [Decided<'a>], of: impl Fn(&'a Decided<'a>) -> T) -> Vec<T> {
        decided.iter().map(of).collect()
    }
    let count = |of: fn(&Counters) -> u32| each(decided, |d| counter(of(&d.settlement.counters)));
    let due_in = |d: &Decided<'_>| match d.settlement.due {
        Due::In(wait) => Some(micros(wait)),
        Due::Unchanged | Due::At(_) => None,
    };
    let due_at = |d: &Decided<'_>| match d.settlement.due {
        Due::At(instant) => Some(instant.as_micros()),
        Due::Unchanged | Due::In(_) => None,
    };
    let (jobs, claims) = fences(decided.iter().map(|d| d.settlement.fence));
    statements
        .settle()
        .bind(jobs)
        .bind(claims)
        .bind(each(decided, |d| d.next_claim.0))
        .bind(each(decided, |d| d.state.as_str()))
        .bind(each(decided, due_in))
        .bind(each(decided, due_at))
        .bind(count(|counters| counters.failures))
        .bind(count(|counters| counters.interruptions))
        .bind(count(|counters| counters.crashes))
        .bind(count(|counters| counters.refusals))
        .bind(count(|counters| counters.snoozes))
        .bind(each(decided, |d| d.error.as_ref().map(|note| note.class.as_str())))
        .bind(each(decided, |d| d.error.as_ref().map(|note| note.text.as_str())))
        .bind(each(decided, |d| d.settlement.refused.as_ref().map(|by| by.reason.as_str())))
        .bind(each(decided, |d| d.settlement.refused.as_ref().map(|by| by.build.as_str())))
        .bind(each(decided, |d| d.events))
        .bind(each(decided, |d| d.settlement.notes.progress.as_deref()))
        .bind(each(decided, |d| d.settlement.notes.result.as_deref()))
}

/// Two arrays to bind.
pub(super) fn fences(fences: impl Iterator<Item = Fence>) -> (Vec<i64>, Vec<i64>) {
    fences.map(|fence| (fence.job.0, fence.claim.0)).unzip()
}

/// The first settlement of every fence, in order of job. A second one of the same fence finds it
/// lost.
fn in_order(settlements: &[Settlement]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..settlements.len()).collect();
    order.sort_by_key(|nth| settlements[*nth].fence);
    order.dedup_by_key(|nth| settlements[*nth].fence);
    order
}

/// Whether a settlement says no more than that the run succeeded and nothing ever went wrong.
fn is_clean(settlement: &Settlement) -> bool {
    let Settlement { state, counters, error, refused, event, notes, .. } = settlement;
    *state == State::Succeeded
        && *counters == Counters::default()
        && error.is_none()
        && refused.is_none()
        && event.is_none()
        && *notes == Notes::default()
}

fn has_applied(answers: &[Settled]) -> bool {
    answers.iter().any(|answer| matches!(answer, Settled::Applied(_)))
}

/// Some of the batch was written, some not: the rows tell.
fn in_part(trouble: Trouble) -> Trouble {
    let error = trouble.during("settle all of the runs");
    let what = "some of the runs are settled, others could not be: read their rows";
    jobs_core::StoreError::new(StoreErrorKind::Unavailable, what).because(error).into()
}
