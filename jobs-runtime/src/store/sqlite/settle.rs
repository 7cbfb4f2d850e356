//! Writing how runs ended.
//!
//! One order for every element: the fence, then a request to cancel, then a waiting twin, then the
//! write with its history. All of it is read and written under the write lock, so nothing changes in
//! between.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use jobs_core::store::{Author, CANCELLED, SUPERSEDED, Settled, Standing};
use jobs_core::{
    Counters, Due, ErrorNote, EventKind, Fence, JobId, NewEvent, Notes, Settlement, State,
    StoreError, StoreErrorKind, Timestamp,
};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::checkpoint::standings;
use super::error::{During, Result, not_written};
use super::event::{self, Line};
use super::finish::finish;
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};

const DOING: &str = "settling runs";

/// What a settlement does to the claim number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    /// It stays: the run's own worker settles it.
    Keep,
    /// It advances: the run is taken back, and nothing that it still writes may pass the fence.
    Advance,
}

/// Settlements of a worker's own runs.
pub(super) struct Settle {
    by: Author,
    settlements: Vec<Settlement>,
    doubt: Doubt,
}

/// Whether all fences of clean successes are expected to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// As nearly always; counting the rows tells.
    None,
    /// The count has just told that some don't: to be made again.
    Arisen,
    /// Each fence is looked at before.
    Known,
}

impl Settle {
    pub(super) fn new(by: &Author, settlements: &[Settlement]) -> Self {
        Self { by: by.clone(), settlements: settlements.to_vec(), doubt: Doubt::None }
    }
}

#[async_trait]
impl Write for Settle {
    type Answer = Vec<Settled>;

    async fn run(&mut self, tx: &mut SqliteConnection, now: Timestamp) -> Result<Vec<Settled>> {
        if self.doubt == Doubt::Arisen {
            self.doubt = Doubt::Known;
        }
        let (by, settlements) = (&self.by, &self.settlements);
        settle_in(tx, now, by, settlements, Claims::Keep, &mut self.doubt).await
    }

    fn is_to_be_repeated(&self) -> bool {
        self.doubt == Doubt::Arisen
    }

    fn wakes(&self, answer: &Vec<Settled>) -> bool {
        answer.iter().any(|settled| match settled {
            Settled::Applied(state) => state.is_waiting(),
            Settled::LeaseLost | Settled::Locked => false,
        })
    }
}

/// Writes settlements where their fences hold.
pub(super) async fn settle(
    tx: &mut SqliteConnection,
    now: Timestamp,
    by: &Author,
    settlements: &[Settlement],
    claims: Claims,
) -> Result<Vec<Settled>> {
    settle_in(tx, now, by, settlements, claims, &mut Doubt::Known).await
}

async fn settle_in(
    tx: &mut SqliteConnection,
    now: Timestamp,
    by: &Author,
    settlements: &[Settlement],
    claims: Claims,
    doubt: &mut Doubt,
) -> Result<Vec<Settled>> {
    let mut seen = HashSet::with_capacity(settlements.len());
    let mut answers = vec![Settled::LeaseLost; settlements.len()];
    let (mut clean, mut others) = (Vec::new(), Vec::new());
    for (element, settlement) in settlements.iter().enumerate() {
        // The second of two is too late, whatever became of the first.
        if !seen.insert(settlement.fence) {
            continue;
        }
        if is_clean(settlement) && claims == Claims::Keep {
            clean.push((element, settlement.fence));
        } else {
            others.push((element, settlement));
        }
    }
    for element in done(tx, now, clean, doubt).await? {
        answers[element] = Settled::Applied(State::Succeeded);
    }
    for (element, state) in decide_and_write(tx, now, by, &others, claims).await? {
        answers[element] = Settled::Applied(state);
    }
    Ok(answers)
}

/// Whether a success leaves nothing behind but itself.
fn is_clean(settlement: &Settlement) -> bool {
    let Settlement { state, counters, error, refused, event, notes, .. } = settlement;
    *state == State::Succeeded
        && *counters == Counters::default()
        && (error.is_none() && refused.is_none() && event.is_none())
        && *notes == Notes::default()
}

/// Writes clean successes; answers which fences held.
///
/// Nearly always all do. A statement that answers each row costs half as much again as one that
/// counts them, so they are asked for, one by one and before, only once a count has told that some
/// did not: the transaction is then undone and made again. A savepoint would do too, but its two
/// statements cost as much as settling ten jobs.
async fn done(
    tx: &mut SqliteConnection,
    now: Timestamp,
    mut clean: Vec<(usize, Fence)>,
    doubt: &mut Doubt,
) -> Result<Vec<usize>> {
    if clean.is_empty() {
        return Ok(Vec::new());
    }
    // In order of id the pages of the table are each visited once.
    clean.sort_unstable_by_key(|(_, fence)| fence.job);
    if *doubt == Doubt::Known {
        let fences: Vec<Fence> = clean.iter().map(|(_, fence)| *fence).collect();
        let mut standings = standings(&mut *tx, &fences).await?.into_iter();
        clean.retain(|_| standings.next() != Some(Standing::Lost));
    }
    if clean.is_empty() || write_done(tx, now, &clean).await? == clean.len() {
        return Ok(clean.iter().map(|(element, _)| *element).collect());
    }
    if *doubt == Doubt::Known {
        return Err(not_written(DOING));
    }
    *doubt = Doubt::Arisen;
    Err(StoreError::new(StoreErrorKind::Unavailable, "some runs had lost their claims"))
}

async fn write_done(
    tx: &mut SqliteConnection,
    now: Timestamp,
    clean: &[(usize, Fence)],
) -> Result<usize> {
    let runs = json::claims(clean.iter().map(|(_, fence)| *fence));
    let done = sqlx::query(sql::SETTLE_DONE).bind(runs).bind(now.as_micros());
    let written = finish(tx, done).await.during(DOING)?;
    Ok(usize::try_from(written).unwrap_or(usize::MAX))
}

/// What the row and its neighbours say of a run whose fence holds.
struct Found {
    element: usize,
    events: i64,
    is_cancel_requested: bool,
    /// Its kind and unique key.
    key: Option<(String, String)>,
    twin: Option<JobId>,
}

async fn decide_and_write(
    tx: &mut SqliteConnection,
    now: Timestamp,
    by: &Author,
    others: &[(usize, &Settlement)],
    claims: Claims,
) -> Result<Vec<(usize, State)>> {
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let found = read(tx, others).await?;
    let mut waiting = HashMap::new();
    let (mut answers, mut rows, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let mut requests = Vec::new();
    for standing in &found {
        let (element, settlement) = others[standing.element];
        let instead = Instead::of(settlement, standing, &waiting);
        let state = instead.state(settlement);
        if state.is_waiting()
            && let Some(key) = &standing.key
        {
            waiting.insert(key, settlement.fence.job);
        }
        if standing.is_cancel_requested {
            requests.push(settlement.fence.job.0);
        }
        let events = settlement.event.clone().into_iter().chain(instead.event());
        let mut number = standing.events;
        for event in events {
            number = event::next(number);
            lines.push(Line { fence: settlement.fence, number, event });
        }
        rows.push(row(now, settlement, state, &instead, claims, number));
        answers.push((element, state));
    }
    write(tx, &rows).await?;
    forget(tx, &requests).await?;
    event::record(tx, now, Some(by), &lines).await?;
    Ok(answers)
}

async fn read(tx: &mut SqliteConnection, others: &[(usize, &Settlement)]) -> Result<Vec<Found>> {
    let fences: Vec<Fence> = others.iter().map(|(_, settlement)| settlement.fence).collect();
    let query = sqlx::query(sql::SETTLE_READ).bind(json::fences(&fences));
    let rows = query.fetch_all(tx).await.during(DOING)?;
    let standing = |row: &SqliteRow| {
        let mut columns = Columns::new(row);
        Ok(Found {
            element: usize::try_from(columns.number()?).unwrap_or_default(),
            events: columns.number()?,
            is_cancel_requested: columns.flag()?,
            key: Some(columns.text()?).zip(columns.text_or_null()?),
            twin: columns.number_or_null()?.map(JobId),
        })
    };
    rows.iter().map(standing).collect::<Result<_, _>>().during(DOING)
}

/// What keeps a settlement's state from being written as it is.
enum Instead {
    Nothing,
    CancelRequest,
    Twin(JobId),
}

impl Instead {
    /// A request to cancel goes before a waiting twin; neither undoes what is over.
    fn of(
        settlement: &Settlement,
        standing: &Found,
        waiting: &HashMap<&(String, String), JobId>,
    ) -> Self {
        let is_over = matches!(settlement.state, State::Succeeded | State::Dead);
        if standing.is_cancel_requested && !is_over {
            return Self::CancelRequest;
        }
        let earlier = standing.key.as_ref().and_then(|key| waiting.get(key).copied());
        match standing.twin.or(earlier) {
            Some(twin) if settlement.state.is_waiting() => Self::Twin(twin),
            Some(_) | None => Self::Nothing,
        }
    }

    const fn state(&self, settlement: &Settlement) -> State {
        match self {
            Self::Nothing => settlement.state,
            Self::CancelRequest | Self::Twin(_) => State::Cancelled,
        }
    }

    fn event(&self) -> Option<NewEvent> {
        let (class, text) = match self {
            Self::Nothing => return None,
            Self::CancelRequest => (CANCELLED, "cancelled while it ran".to_owned()),
            Self::Twin(twin) => (SUPERSEDED, format!("job {twin} waits with the same unique key")),
        };
        Some(NewEvent { kind: EventKind::Cancelled, class: class.to_owned(), text })
    }

    /// The failure that stands on the row from now on.
    fn error(&self, settlement: &Settlement) -> Option<ErrorNote> {
        match self {
            Self::Nothing | Self::CancelRequest => settlement.error.clone(),
            Self::Twin(_) => {
                self.event().map(|event| ErrorNote { class: event.class, text: event.text })
            }
        }
    }
}

type Written = (
    (i64, i64, i64),
    &'static str,
    Option<i64>,
    Option<i64>,
    (u32, u32, u32, u32, u32),
    Option<(String, String)>,
    Option<(String, String)>,
    i64,
    Option<(Option<String>, Option<String>)>,
);

fn row(
    now: Timestamp,
    settlement: &Settlement,
    state: State,
    instead: &Instead,
    claims: Claims,
    events: i64,
) -> Written {
    let Settlement { fence, due, counters, refused, .. } = settlement;
    let next = match claims {
        Claims::Keep => fence.claim.0,
        Claims::Advance => fence.claim.0.saturating_add(1),
    };
    let due_at = match due {
        Due::Unchanged => None,
        Due::In(wait) => Some(now.after(*wait)),
        Due::At(instant) => Some(*instant),
    };
    // A finished job keeps the instant that it was due at.
    let due_at = due_at.filter(|_| !state.is_finished());
    let Counters { failures, interruptions, crashes, refusals, snoozes } = *counters;
    let note = instead.error(settlement);
    let Notes { progress, result } = settlement.notes.clone();
    (
        (fence.job.0, fence.claim.0, next),
        state.as_str(),
        due_at.map(Timestamp::as_micros),
        state.is_finished().then_some(now.as_micros()),
        (failures, interruptions, crashes, refusals, snoozes),
        note.map(|note| (note.class, note.text)),
        refused.clone().map(|by| (by.reason, by.build)),
        events,
        (progress.is_some() || result.is_some()).then_some((progress, result)),
    )
}

async fn write(tx: &mut SqliteConnection, rows: &[Written]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let written =
        sqlx::query(sql::SETTLE).bind(json::rows(rows)).execute(tx).await.during(DOING)?;
    // A fence that held under the write lock still holds.
    if usize::try_from(written.rows_affected()).ok() != Some(rows.len()) {
        return Err(not_written(DOING));
    }
    Ok(())
}

async fn forget(tx: &mut SqliteConnection, requests: &[i64]) -> Result<()> {
    if requests.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(sql::FORGET_CANCEL_REQUESTS).bind(json::rows(requests));
    query.execute(tx).await.map(drop).during(DOING)
}
