//! What follows from what a store says of a schedule: pure, so that every leader does the same.
//!
//! 1. Of several declarations a person's counts, else the one whose text is the newest. A build that
//!    is rolled out takes a schedule over, and gives it back when it is rolled back.
//! 2. A new expression ticks at its first instant after now, and never at once. A new payload or build
//!    behind the same expression changes no tick.
//! 3. A schedule that no live worker declares does not tick, and is forgotten a day after it should have:
//!    within that day its catch-up rule holds once somebody declares it again.
//! 4. A person's pause ends the ticks that have not come, and no catch-up rule makes up for them: what
//!    counts behind a pause is a new expression.
//! 5. Whatever has been missed is bounded: no look at a schedule walks all the ticks of a long outage.

use std::time::Duration;

use jobs_core::store::{Declared, ScheduleRecord, Step};
use jobs_core::{CatchUp, NewJob, Timestamp};

use super::{Pause, Spec, Timetable};

/// A tick that comes up to this late is in time.
const IN_TIME: Duration = Duration::from_mins(1);
/// A schedule that nobody declares is forgotten when this has passed since it was to tick.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(24);

/// What to do about a schedule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing, until it ticks; `None`: until something about it changes.
    Wait(Option<Timestamp>),
    /// Move it on.
    Step(Box<Step>),
    /// Leave it to others: the text that counts can't be read here, for this reason.
    Unreadable(String),
}

/// Decides what to do about a schedule at an instant.
pub(crate) fn decide(now: Timestamp, record: &ScheduleRecord) -> Decision {
    let Some(declared) = counting(&record.declared) else {
        let is_forgotten = record.next_at.is_some_and(|at| at.after(FORGOTTEN_AFTER) < now);
        return if is_forgotten {
            step(record, None, None, Vec::new())
        } else {
            Decision::Wait(None)
        };
    };
    if Pause::read(&declared.text).is_some() {
        let is_known = record.next_at.is_none() && record.text.as_ref() == Some(&declared.text);
        return if is_known {
            Decision::Wait(None)
        } else {
            step(record, Some(declared.text.clone()), None, Vec::new())
        };
    }
    let (spec, timetable) = match Spec::read(&declared.text) {
        Ok(read) => read,
        Err(why) => return Decision::Unreadable(why),
    };
    let is_same = |text: &str| Spec::read(text).is_ok_and(|(before, _)| before.when == spec.when);
    let text = Some(declared.text.clone());
    let Some(next_at) = record.next_at.filter(|_| record.text.as_deref().is_some_and(is_same))
    else {
        return step(record, text, timetable.after(now), Vec::new());
    };
    if next_at > now {
        return if record.text == text {
            Decision::Wait(Some(next_at))
        } else {
            step(record, text, Some(next_at), Vec::new())
        };
    }
    let come = come(&timetable, spec.catch_up, next_at, now);
    let job = |at: &Timestamp| spec.job_at(*at, record.name.as_str()).map(|job| (*at, job));
    match come.iter().map(job).collect() {
        Ok(ticks) => step(record, text, timetable.after(now), ticks),
        Err(why) => Decision::Unreadable(why),
    }
}

/// The declaration that counts.
pub(super) fn counting(declared: &[Declared]) -> Option<&Declared> {
    // Of equal ages any rule will do that all leaders share.
    let rank = |one: &&Declared| (one.by.is_none(), one.since, one.text.clone());
    declared.iter().max_by_key(rank)
}

/// The ticks from one instant to another that get a job, oldest first.
fn come(
    timetable: &Timetable,
    catch_up: CatchUp,
    from: Timestamp,
    to: Timestamp,
) -> Vec<Timestamp> {
    let in_time = Timestamp::from_micros(to.as_micros() - jobs_core::micros(IN_TIME));
    let is_late = |tick: &Timestamp| *tick < in_time;
    let mut ticks = Vec::new();
    let mut late = 0;
    let mut before = to;
    while let Some(tick) = timetable.until(before).filter(|tick| *tick >= from) {
        if is_late(&tick) {
            late += 1;
            let may_be_made_up = match catch_up {
                CatchUp::None => false,
                CatchUp::Latest => ticks.is_empty(),
                CatchUp::All(most) => late <= most,
            };
            if !may_be_made_up {
                break;
            }
        }
        ticks.push(tick);
        before = Timestamp::from_micros(tick.as_micros() - 1);
    }
    ticks.reverse();
    ticks
}

fn step(
    record: &ScheduleRecord,
    text: Option<String>,
    next_at: Option<Timestamp>,
    ticks: Vec<(Timestamp, NewJob)>,
) -> Decision {
    Decision::Step(Box::new(Step {
        name: record.name.clone(),
        seen_text: record.text.clone(),
        seen_next_at: record.next_at,
        text,
        next_at,
        ticks,
    }))
}

#[cfg(test)]
#[path = "decide/tests.rs"]
mod tests;
