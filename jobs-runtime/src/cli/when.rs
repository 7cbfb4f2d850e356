//! Instants as people write and read them.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::{SpanRelativeTo, Unit};

use crate::Timestamp;

/// An instant, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    At(Timestamp),
    Ago(Duration),
}

impl When {
    pub(super) fn resolved(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(instant) => instant,
            Self::Ago(span) => {
                Timestamp::from_micros(now.as_micros().saturating_sub(crate::micros(span)))
            }
        }
    }
}

/// Reads `2h`, `3 days`, `2026-11-30` (its first instant in UTC) or `2026-11-30T02:15:00Z`.
pub(super) fn parse(text: &str) -> Result<When, String> {
    if let Ok(span) = span(text) {
        return Ok(When::Ago(span));
    }
    let instant = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let date = text.parse::<jiff::civil::Date>().ok()?;
        Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    });
    match instant {
        Some(instant) => Ok(When::At(Timestamp::from_micros(instant.as_microsecond()))),
        None => {
            Err("write how long ago, such as `90m` or `3d`, a day such as `2026-11-30` (UTC), \
                     or an instant such as `2026-11-30T02:15:00Z`"
                .to_owned())
        }
    }
}

/// Reads an instant, where a length of time has an option of its own.
pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    match parse(text) {
        Ok(When::At(instant)) => Ok(instant),
        Ok(When::Ago(_)) | Err(_) => Err(
            "write an instant such as `2026-11-30T02:15:00Z`, or a day such as `2026-11-30` (UTC)"
                .to_owned(),
        ),
    }
}

/// Reads a length of time such as `30s`, `90m` or `1d 12h`; a day has 24 hours.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let wrong = || "write a length of time such as `30s`, `90m` or `1d 12h`".to_owned();
    let span: jiff::Span = text.trim().parse().map_err(|_| wrong())?;
    let days = SpanRelativeTo::days_are_24_hours();
    let nanos = span.total((Unit::Nanosecond, days)).map_err(|_| wrong())?;
    let is_length = nanos.is_finite() && nanos >= 0.0;
    Duration::try_from_secs_f64(nanos / 1e9).ok().filter(|_| is_length).ok_or_else(wrong)
}

/// An instant to the second, for tables.
pub(super) fn second(instant: Timestamp) -> String {
    let second = instant.as_micros().div_euclid(1_000_000).saturating_mul(1_000_000);
    Timestamp::from_micros(second).to_string()
}

/// A length of time in its two largest units, such as `2h 5m`.
pub(super) fn length(span: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let seconds = span.as_secs();
    if seconds == 0 && !span.is_zero() {
        return format!("{}ms", span.as_millis());
    }
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let (unit, name) = UNITS[first];
    let mut text = format!("{}{name}", seconds / unit);
    if let Some((smaller, name)) = UNITS.get(first + 1)
        && seconds % unit / smaller > 0
    {
        let _ = write!(text, " {}{name}", seconds % unit / smaller);
    }
    text
}

/// How far an instant lies from now, as `5m ago` or `in 2h`.
pub(super) fn distance(instant: Timestamp, now: Timestamp) -> String {
    if instant > now {
        format!("in {}", length(instant.since(now)))
    } else {
        format!("{} ago", length(now.since(instant)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_as_people_write_them() {
        let at = |text: &str| {
            let instant: jiff::Timestamp = text.parse().unwrap();
            When::At(Timestamp::from_micros(instant.as_microsecond()))
        };
        let ago = |seconds| When::Ago(Duration::from_secs(seconds));
        assert_eq!(parse("90m"), Ok(ago(5400)));
        assert_eq!(parse("3 days"), Ok(ago(3 * 86_400)));
        assert_eq!(parse("1d 12h"), Ok(ago(36 * 3600)));
        assert_eq!(parse("2026-11-30"), Ok(at("2026-11-30T00:00:00Z")));
        assert_eq!(parse("2026-11-30T02:15:00+01:00"), Ok(at("2026-11-30T01:15:00Z")));
        for text in ["", "yesterday", "-2h", "5", "2026-13-01", "2mo"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_told_in_their_two_largest_units() {
        let cases = [(0, "0s"), (59, "59s"), (60, "1m"), (3_725, "1h 2m"), (86_400 * 3, "3d")];
        for (seconds, text) in cases {
            assert_eq!(length(Duration::from_secs(seconds)), text);
        }
    }
}
