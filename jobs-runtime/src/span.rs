//! Lengths of time as supervisors write them: one reading for the worker and for the doctor.

use std::time::Duration;

/// Reads what a variable of the worker holds: whole seconds, or a whole number with `ms`, `s`, `m`, `min`,
/// `h` or `d` behind it.
pub(crate) fn of_variable(text: &str) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = u64::from(number.parse::<u32>().ok()?);
    match unit.trim() {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => Some(Duration::from_secs(number)),
        "m" | "min" => Some(Duration::from_mins(number)),
        "h" => Some(Duration::from_hours(number)),
        "d" => Some(Duration::from_hours(24 * number)),
        _ => None,
    }
}

/// Reads a span of systemd's, as its units hold it and as it answers: `90`, `1min 30s`, `2h30min`, `1.5h`.
/// A number without a unit is seconds. `None` for `infinity` and what is no span. After systemd.time(7).
pub(crate) fn of_systemd(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut whole = None::<Duration>;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let part = Duration::try_from_secs_f64(number * seconds(unit)?).ok()?;
        whole = Some(whole.unwrap_or_default().checked_add(part)?);
        rest = behind.trim_start();
    }
    whole
}

/// How long a unit of systemd's is, in seconds; a month and a year are an average one's.
fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "us" | "usec" | "µs" | "μs" => 1e-6,
        "ms" | "msec" => 1e-3,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 7.0 * 86_400.0,
        "M" | "month" | "months" => 2_629_800.0,
        "y" | "year" | "years" => 31_557_600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_read_as_a_number_with_a_unit() {
        let cases = [
            ("30", 30_000),
            (" 30s ", 30_000),
            ("2min", 120_000),
            ("2m", 120_000),
            ("250ms", 250),
            ("1 h", 3_600_000),
            ("1d", 86_400_000),
        ];
        for (text, millis) in cases {
            assert_eq!(of_variable(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "soon", "-3", "1.5", "1min 30s", "30sec", "4294967296"] {
            assert_eq!(of_variable(text), None, "{text}");
        }
    }

    #[test]
    fn spans_of_systemd_are_read_as_it_reads_them() {
        let cases = [
            ("90", 90_000),
            ("1min 30s", 90_000),
            ("1min30s", 90_000),
            ("1 min 30", 90_000),
            ("1.5h", 5_400_000),
            ("2h 200ms", 7_200_200),
            ("55s500ms", 55_500),
            ("2 days", 2 * 86_400_000),
            ("1w", 7 * 86_400_000),
            ("1M", 2_629_800_000),
            ("0", 0),
        ];
        for (text, millis) in cases {
            assert_eq!(of_systemd(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "infinity", "soon", "5 parsecs", "-1s", "1..5s", "s"] {
            assert_eq!(of_systemd(text), None, "{text}");
        }
    }
}
