//! When a schedule ticks: an expression, parsed, and the instants that follow from it.
//!
//! 1. A tick is a pure function of the expression: whoever works it out, and whenever, gets the same.
//! 2. Ticks are asked for in real time: the next one lies after the instant asked for, also in an hour
//!    that the clocks repeat.
//! 3. An expression that never ticks is refused when it is read, not searched for at run time.
//!
//! What happens when the clocks change is cron's old rule. An expression with a fixed hour and minute
//! ticks once a day: in a repeated hour at the first of the two, in a skipped hour at its end. One with
//! a `*` or a step in its hours or minutes ticks by the clock as it goes: in both of the repeated hours,
//! and not in the skipped one. Intervals know no clocks at all.
//!
//! Years are deliberately absent: an expression that has run out of years would keep its application
//! from starting.

use std::fmt;
use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Year};
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Zoned, civil};
use jobs_core::{Timestamp, micros};

/// The longest interval: 366 days.
const LONGEST: Duration = Duration::from_hours(24 * 366);
const SHORTEST: Duration = Duration::from_secs(1);

/// Forty years before the last one that is searched, 5000. The calendar repeats within 28 of them, so what
/// does not tick in these never does, and is found out at once instead of after 3,000 years.
const LAST_DECADES: civil::DateTime = civil::date(4960, 1, 1).at(0, 0, 0, 0);

/// An expression that ticks.
#[derive(Debug, Clone)]
pub(crate) enum Timetable {
    Cron {
        cron: Box<Cron>,
        zone: TimeZone,
    },
    /// At the multiples of this many microseconds since 1970-01-01T00:00:00Z.
    Every(i64),
}

/// Why a text is no timetable, in words that say what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidTimetable(String);

impl fmt::Display for InvalidTimetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Timetable {
    /// Reads `every 15m`, or a cron expression of five fields, or of six with the seconds first, with
    /// an IANA time zone behind it (UTC without one).
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidTimetable> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            [] => Err(InvalidTimetable("it is empty; write `0 3 * * * Europe/Berlin`".to_owned())),
            ["every", ref span @ ..] => every(&span.join(" ")),
            [ref fields @ .., last] => match zone(last)? {
                Some(zone) => cron(&fields.join(" "), zone),
                None => cron(&words.join(" "), TimeZone::UTC),
            },
        }
    }

    /// The first tick after an instant; `None` at the end of time.
    pub(crate) fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(step) => {
                let next = instant.as_micros().div_euclid(*step).checked_add(1)?;
                next.checked_mul(*step).map(Timestamp::from_micros)
            }
            Self::Cron { cron, zone } => {
                // Ticks are on whole seconds, and the search drops what lies below them.
                let start = zoned(instant, zone)?;
                let next = cron.find_next_occurrence(&start, false).ok()?;
                Some(Timestamp::from_micros(next.timestamp().as_microsecond()))
            }
        }
    }

    /// The last tick at or before an instant; `None` before the beginning of time.
    pub(crate) fn until(&self, instant: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(step) => {
                let last = instant.as_micros().div_euclid(*step);
                last.checked_mul(*step).map(Timestamp::from_micros)
            }
            Self::Cron { cron, zone } => {
                let start = zoned(instant, zone)?;
                let last = cron.find_previous_occurrence(&start, true).ok()?;
                Some(Timestamp::from_micros(last.timestamp().as_microsecond()))
            }
        }
    }
}

fn zoned(instant: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let whole = jiff::Timestamp::from_second(instant.as_micros().div_euclid(1_000_000)).ok()?;
    Some(whole.to_zoned(zone.clone()))
}

fn every(span: &str) -> Result<Timetable, InvalidTimetable> {
    let read =
        span.parse::<Span>().and_then(|it| it.to_duration(SpanRelativeTo::days_are_24_hours()));
    let span = read.ok().and_then(|span| Duration::try_from(span).ok()).ok_or_else(|| {
        InvalidTimetable(format!(
            "`{span}` is no span; write `every 90s`, `every 15m`, `every 6h` or `every 2d`"
        ))
    })?;
    if !(SHORTEST..=LONGEST).contains(&span) {
        return Err(InvalidTimetable(format!(
            "an interval of {span:?} is not one of 1 s to 366 days"
        )));
    }
    Ok(Timetable::Every(micros(span)))
}

/// The zone that a last word names; `None` where it is a field of cron.
fn zone(word: &str) -> Result<Option<TimeZone>, InvalidTimetable> {
    let is_name = word.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_day = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
        .iter()
        .any(|day| word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(day)));
    if !is_name || (is_day && !word.contains('/')) || word.eq_ignore_ascii_case("L") {
        return Ok(None);
    }
    TimeZone::get(word).map(Some).map_err(|_| {
        InvalidTimetable(format!("`{word}` is no time zone; write an IANA name: `Europe/Berlin`"))
    })
}

fn cron(fields: &str, zone: TimeZone) -> Result<Timetable, InvalidTimetable> {
    let parser = CronParser::builder().year(Year::Disallowed).build();
    let cron = parser.parse(fields).map_err(|error| {
        let error = error.to_string();
        let error = error.trim_end_matches('.');
        InvalidTimetable(format!(
            "`{fields}` is no cron expression ({error}); write five fields, minute first, or six with \
             the seconds first, and a time zone: `0 3 * * * Europe/Berlin`"
        ))
    })?;
    if cron.find_next_occurrence(&LAST_DECADES, false).is_err() {
        return Err(InvalidTimetable(format!("`{fields}` names a date that never comes")));
    }
    Ok(Timetable::Cron { cron: Box::new(cron), zone })
}

#[cfg(test)]
mod tests;
