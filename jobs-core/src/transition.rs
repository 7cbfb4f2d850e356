//! What follows from how a run ended: one pure function, the table of a job's life.
//!
//! 1. A failure is the handler's, an interruption the infrastructure's; neither pays for the other.
//! 2. Counters only grow here, and stop at [`COUNTER_MAX`]; resets belong to checkpoints.
//! 3. A settlement is flat and complete: a store writes it where the fence holds, and decides
//!    nothing but a person's cancel and a waiting twin.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::id::Fence;
use crate::outcome::storable;
use crate::outcome::{
    Company, Ending, Failure, Interruption, MAX_CLASS_BYTES, MAX_ERROR_BYTES, Retry,
};
use crate::random::jittered;
use crate::record::{
    Budget, COUNTER_MAX, ClaimedJob, Counters, EventKind, NewEvent, Notes, RefusedBy,
};
use crate::retry::{Ladder, MAX_WAIT, doubling};
use crate::state::State;

/// A refused job is due again after this wait, moved by up to a tenth.
pub const RELEASE_DELAY: Duration = Duration::from_secs(2);
/// This many consecutive crashes, the last of them alone on its worker, make a dead letter of the
/// class `crash_loop`.
pub const MAX_CRASHES: u32 = 5;
/// The class of a failure whose handler asked for a snooze beyond [`MAX_WAIT`].
pub const WAIT_TOO_LONG: &str = "wait_too_long";
/// After this many interruptions without progress a job is delayed and flagged.
pub const NOT_PROGRESSING: u32 = 100;

const INFRASTRUCTURE_FIRST: Duration = Duration::from_secs(2);
const INFRASTRUCTURE_CAP: Duration = Duration::from_mins(5);
const NOT_PROGRESSING_FIRST: Duration = Duration::from_mins(1);
const NOT_PROGRESSING_CAP: Duration = Duration::from_hours(1);

/// What a transition needs to know of the run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What the write must still match.
    pub fence: Fence,
    /// The job's counters as the row has them.
    pub counters: Counters,
    /// What the job may use up.
    pub budget: Budget,
    /// The refusal that stands on the row, so that its repetition adds no line to the history.
    pub refused: Option<RefusedBy>,
}

/// When a settled job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Due {
    /// As before: it keeps its place.
    Unchanged,
    /// After a span, by the clock that the store judges due times by.
    In(Duration),
    /// At an instant.
    At(Timestamp),
}

/// A run's outcome, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// What must still hold.
    pub fence: Fence,
    /// The next state, unless a cancel was requested and this is neither succeeded nor dead.
    pub state: State,
    /// When it is due; without meaning for a finished state.
    pub due: Due,
    /// The new counters.
    pub counters: Counters,
    /// The class and the text of the failure; `None` leaves the latest ones.
    pub error: Option<ErrorNote>,
    /// The refusal that stands on the row from now on; `None` clears it.
    pub refused: Option<RefusedBy>,
    /// A line of history.
    pub event: Option<NewEvent>,
    /// What the handler leaves for people.
    pub notes: Notes,
}

/// A failure as it stands on a row: storable and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorNote {
    /// Its class, at most [`MAX_CLASS_BYTES`].
    pub class: String,
    /// Its text, at most [`MAX_ERROR_BYTES`].
    pub text: String,
}

/// Turns the end of a run into what is written. `draw` moves the waits.
pub fn transition(run: &Run, ending: &Ending, ladder: &Ladder, draw: u64) -> Settlement {
    match ending {
        Ending::Done => settled(run, State::Succeeded, Due::Unchanged),
        Ending::Snoozed(wait) if *wait > MAX_WAIT => {
            let text = format!("the handler asked for a snooze of {}", too_long(*wait));
            let class = WAIT_TOO_LONG.to_owned();
            failed(run, &Failure { class, text, retry: Retry::Ladder }, ladder, draw)
        }
        Ending::Snoozed(wait) => {
            let mut settlement = waiting(run, *wait);
            grow(&mut settlement.counters.snoozes);
            settlement.counters.crashes = 0;
            settlement
        }
        Ending::Failed(failure) => failed(run, failure, ladder, draw),
        Ending::Unreadable(failure) => {
            failed(run, &Failure { retry: Retry::Never, ..failure.clone() }, ladder, draw)
        }
        Ending::Expired => dead(run, crate::store::EXPIRED, "no run was started in time"),
        Ending::Retired => dead(run, "retired", "this build declares the kind retired"),
        Ending::MalformedVersion(text) => dead(run, "malformed_version", text),
        Ending::Refused { refusal, build, text } => {
            refused(run, refusal.as_str(), build, text, draw)
        }
        Ending::Interrupted(interruption) => interrupted(run, interruption, draw),
        Ending::Unstarted => Settlement {
            refused: run.refused.clone(),
            ..settled(run, State::Ready, Due::Unchanged)
        },
        Ending::Crashed(company) => crashed(run, *company, draw),
    }
}

fn failed(run: &Run, failure: &Failure, ladder: &Ladder, draw: u64) -> Settlement {
    let mut counters = run.counters;
    grow(&mut counters.failures);
    counters.crashes = 0;
    let is_spent = counters.failures >= run.budget.max_failures;
    let wait = match failure.retry {
        Retry::Never => None,
        Retry::Ladder | Retry::After(_) if is_spent => None,
        Retry::After(wait) if wait <= MAX_WAIT => Some(wait),
        Retry::Ladder | Retry::After(_) => Some(ladder.wait(counters.failures, draw)),
    };
    let note = match failure.retry {
        Retry::After(wait) if wait > MAX_WAIT => {
            let asked = format!("it asked for a retry after {}", too_long(wait));
            ErrorNote::new(&failure.class, &format!("{} ({asked})", failure.text))
        }
        Retry::Ladder | Retry::After(_) | Retry::Never => {
            ErrorNote::new(&failure.class, &failure.text)
        }
    };
    Settlement {
        counters,
        event: Some(note.event(EventKind::Failed)),
        error: Some(note),
        ..wait.map_or_else(|| settled(run, State::Dead, Due::Unchanged), |wait| waiting(run, wait))
    }
}

fn too_long(wait: Duration) -> String {
    let days = |span: Duration| span.as_secs() / (24 * 3_600);
    format!(
        "{} days, and the longest wait is {}: the ladder's was taken",
        days(wait),
        days(MAX_WAIT)
    )
}

fn refused(run: &Run, reason: &str, build: &str, text: &str, draw: u64) -> Settlement {
    let now = RefusedBy { reason: reason.to_owned(), build: build.to_owned() };
    let is_news = run.refused.as_ref() != Some(&now);
    let note = ErrorNote::new(reason, text);
    let mut settlement = waiting(run, jittered(RELEASE_DELAY, draw));
    grow(&mut settlement.counters.refusals);
    settlement.event = is_news.then(|| note.event(EventKind::Refused));
    settlement.refused = Some(now);
    settlement
}

/// The wait for infrastructure grows with all interruptions since the job last got on: the row counts no
/// kind of them apart.
fn interrupted(run: &Run, interruption: &Interruption, draw: u64) -> Settlement {
    let mut counters = run.counters;
    grow(&mut counters.interruptions);
    let count = counters.interruptions;
    let wait = match interruption {
        Interruption::Infrastructure(_) => {
            Some(doubling(INFRASTRUCTURE_FIRST, count, INFRASTRUCTURE_CAP))
        }
        Interruption::Stopped(_) | Interruption::GivenUp | Interruption::UndoFailed(_) => None,
    };
    let note = ErrorNote::new(interruption.class(), interruption.text());
    interruption_settled(run, counters, wait, &note.event(EventKind::Interrupted), draw)
}

/// Only a run that was alone on its worker dies of its crash: beside others it may be their crash.
fn crashed(run: &Run, company: Company, draw: u64) -> Settlement {
    let mut counters = run.counters;
    grow(&mut counters.interruptions);
    grow(&mut counters.crashes);
    let text = "the worker ended with no word: its process is gone, or its lease expired";
    let note = ErrorNote::new("crash", text);
    if counters.crashes >= MAX_CRASHES && company == Company::Alone {
        let text = format!(
            "{} runs in a row ended with the death of their worker, the last one alone on it",
            counters.crashes
        );
        let note = ErrorNote::new("crash_loop", &text);
        return Settlement {
            counters,
            event: Some(note.event(EventKind::Crashed)),
            error: Some(note),
            ..settled(run, State::Dead, Due::Unchanged)
        };
    }
    let wait = (counters.crashes > 1)
        .then(|| doubling(INFRASTRUCTURE_FIRST, counters.crashes - 1, INFRASTRUCTURE_CAP));
    interruption_settled(run, counters, wait, &note.event(EventKind::Crashed), draw)
}

/// Where an interruption that is not yet deadly leads: by the wait asked for, or by the longer one
/// of a job that does not get on.
fn interruption_settled(
    run: &Run,
    counters: Counters,
    wait: Option<Duration>,
    event: &NewEvent,
    draw: u64,
) -> Settlement {
    let count = counters.interruptions;
    if run.budget.max_interruptions.is_some_and(|most| count >= most) {
        let text = format!("{count} interruptions without progress");
        return Settlement {
            counters,
            event: Some(event.clone()),
            error: Some(ErrorNote::new("interrupted", &text)),
            ..settled(run, State::Dead, Due::Unchanged)
        };
    }
    let stuck = (count >= NOT_PROGRESSING)
        .then(|| doubling(NOT_PROGRESSING_FIRST, count - NOT_PROGRESSING + 1, NOT_PROGRESSING_CAP));
    let base = match wait.max(stuck) {
        None => settled(run, State::Ready, Due::Unchanged),
        Some(wait) => waiting(run, jittered(wait, draw)),
    };
    Settlement { counters, event: Some(event.clone()), ..base }
}

fn dead(run: &Run, class: &str, text: &str) -> Settlement {
    let note = ErrorNote::new(class, text);
    Settlement {
        event: Some(note.event(EventKind::Failed)),
        error: Some(note),
        ..settled(run, State::Dead, Due::Unchanged)
    }
}

/// Waiting for its time, or ready where that is now.
fn waiting(run: &Run, wait: Duration) -> Settlement {
    let state = if wait.is_zero() { State::Ready } else { State::Scheduled };
    settled(run, state, Due::In(wait))
}

fn settled(run: &Run, state: State, due: Due) -> Settlement {
    let counters = run.counters;
    Settlement {
        fence: run.fence,
        state,
        due,
        counters,
        error: None,
        refused: None,
        event: None,
        notes: Notes::default(),
    }
}

fn grow(counter: &mut u32) {
    *counter = counter.saturating_add(1).min(COUNTER_MAX);
}

impl ErrorNote {
    /// Makes a class and a text storable and bounded.
    pub fn new(class: &str, text: &str) -> Self {
        let class = storable(class, MAX_CLASS_BYTES);
        Self { class, text: storable(text, MAX_ERROR_BYTES) }
    }

    fn event(&self, kind: EventKind) -> NewEvent {
        NewEvent { kind, class: self.class.clone(), text: self.text.clone() }
    }
}

impl From<&ClaimedJob> for Run {
    fn from(job: &ClaimedJob) -> Self {
        let ClaimedJob { fence, counters, budget, refused, .. } = job;
        Self { fence: *fence, counters: *counters, budget: *budget, refused: refused.clone() }
    }
}

#[cfg(test)]
mod tests;
