use std::time::Duration;

use jobs_core::Clock;

use super::*;
use crate::clock::SystemClock;

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond())
}

fn parsed(text: &str) -> Timetable {
    Timetable::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The ticks after the first instant, up to the second one, in UTC.
fn ticks(text: &str, from: &str, to: &str) -> Vec<String> {
    let (timetable, to) = (parsed(text), at(to));
    let mut ticks = Vec::new();
    let mut last = at(from);
    while let Some(next) = timetable.after(last).filter(|next| *next <= to) {
        assert!(next > last, "{text}: {next} does not lie after {last}");
        ticks.push(next.to_string());
        last = next;
    }
    ticks
}

fn refused(text: &str) -> String {
    let began = SystemClock.elapsed();
    let error = Timetable::parse(text).unwrap_err().to_string();
    let took = SystemClock.elapsed().saturating_sub(began);
    assert!(took < Duration::from_millis(250), "{text}: {took:?}");
    error
}

const NEW_YORK: &str = "America/New_York";

#[test]
fn a_daily_tick_comes_once_on_the_day_the_clocks_go_back() {
    let noon = format!("0 12 * * * {NEW_YORK}");
    let ticks = ticks(&noon, "2026-10-31T00:00:00Z", "2026-11-03T00:00:00Z");
    assert_eq!(ticks, ["2026-10-31T16:00:00Z", "2026-11-01T17:00:00Z", "2026-11-02T17:00:00Z"]);
}

#[test]
fn a_fixed_time_in_the_repeated_hour_ticks_at_the_first_of_the_two() {
    let half_past_one = format!("30 1 * * * {NEW_YORK}");
    let ticks = ticks(&half_past_one, "2026-10-31T12:00:00Z", "2026-11-03T00:00:00Z");
    assert_eq!(ticks, ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]);
}

#[test]
fn a_leader_that_starts_between_the_two_does_not_tick_again() {
    let half_past_one = parsed(&format!("30 1 * * * {NEW_YORK}"));
    for between in ["2026-11-01T05:30:00Z", "2026-11-01T05:45:00Z", "2026-11-01T06:15:00Z"] {
        let next = half_past_one.after(at(between)).unwrap();
        assert_eq!(next.to_string(), "2026-11-02T06:30:00Z", "after {between}");
    }
}

#[test]
fn a_half_hourly_tick_comes_every_thirty_real_minutes() {
    let half_hourly = format!("*/30 * * * * {NEW_YORK}");
    for day in [
        ("2026-11-01T03:00:00Z", "2026-11-01T09:00:00Z"),
        ("2026-03-08T03:00:00Z", "2026-03-08T09:00:00Z"),
    ] {
        let ticks = ticks(&half_hourly, day.0, day.1);
        assert_eq!(ticks.len(), 12, "{ticks:?}");
        let instants: Vec<_> = ticks.iter().map(|tick| at(tick)).collect();
        assert!(
            instants.windows(2).all(|pair| pair[1].since(pair[0]) == Duration::from_mins(30)),
            "{ticks:?}"
        );
    }
}

#[test]
fn a_fixed_time_in_the_skipped_hour_ticks_at_its_end() {
    let half_past_two = format!("30 2 * * * {NEW_YORK}");
    let ticks = ticks(&half_past_two, "2026-03-07T12:00:00Z", "2026-03-10T00:00:00Z");
    assert_eq!(ticks, ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
}

#[test]
fn a_fixed_time_before_the_skipped_hour_is_not_moved() {
    let midnight = "0 0 * * * Europe/London";
    let ticks = ticks(midnight, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(ticks, ["2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"]);
}

#[test]
fn a_zone_with_a_half_hour_change_keeps_the_rules() {
    let daily = "45 1 * * * Australia/Lord_Howe";
    let ticks = ticks(daily, "2026-04-03T20:00:00Z", "2026-04-06T12:00:00Z");
    assert_eq!(ticks, ["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"]);
}

#[test]
fn looking_back_finds_the_ticks_that_looking_ahead_finds() {
    let zones = [NEW_YORK, "Europe/Berlin", "Australia/Lord_Howe", "UTC", "America/Sao_Paulo"];
    let patterns = [
        "*/30 * * * *",
        "30 1 * * *",
        "30 2 * * *",
        "0 12 * * *",
        "15 */2 * * *",
        "0 0 1 * *",
        "0 9 * * 1-5",
    ];
    let spans = [
        ("2026-03-06T00:00:00Z", "2026-03-31T00:00:00Z"),
        ("2026-10-24T00:00:00Z", "2026-11-03T00:00:00Z"),
        ("2026-04-04T00:00:00Z", "2026-04-06T00:00:00Z"),
    ];
    for (zone, pattern) in zones.iter().flat_map(|zone| patterns.map(|pattern| (zone, pattern))) {
        let text = format!("{pattern} {zone}");
        let timetable = parsed(&text);
        for (from, to) in spans {
            let ahead = ticks(&text, from, to);
            let mut back = Vec::new();
            let mut instant = at(to);
            while let Some(last) = timetable.until(instant).filter(|last| *last > at(from)) {
                back.push(last.to_string());
                instant = Timestamp::from_micros(last.as_micros() - 1);
            }
            back.reverse();
            assert_eq!(ahead, back, "{text} from {from}");
        }
    }
}

#[test]
fn what_lies_below_a_second_does_not_skip_or_repeat_a_tick() {
    let secondly = parsed("* * * * * *");
    let early = Timestamp::from_micros(at("2026-01-01T00:00:05Z").as_micros() - 5_000);
    assert_eq!(secondly.after(early).unwrap(), at("2026-01-01T00:00:05Z"));
    assert_eq!(secondly.after(at("2026-01-01T00:00:05Z")).unwrap(), at("2026-01-01T00:00:06Z"));
    assert_eq!(secondly.until(early).unwrap(), at("2026-01-01T00:00:04Z"));
}

#[test]
fn instants_before_the_epoch_have_ticks_too() {
    let secondly = parsed("* * * * * *");
    let early = Timestamp::from_micros(-1_500_000);
    assert_eq!(secondly.after(early).unwrap(), Timestamp::from_micros(-1_000_000));
    assert_eq!(parsed("every 1s").after(early).unwrap(), Timestamp::from_micros(-1_000_000));
}

#[test]
fn an_interval_ticks_at_its_multiples_whoever_asks() {
    let ticks = ticks("every 15m", "2026-01-01T00:07:00Z", "2026-01-01T00:45:00Z");
    assert_eq!(ticks, ["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", "2026-01-01T00:45:00Z"]);
}

/// No calendar and no clocks: 24 hours, since 1970.
#[test]
fn a_day_of_an_interval_has_24_hours() {
    let daily = ticks("every 1d", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    assert_eq!(daily, ["2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"]);
    let longer = ticks("every 1d 12h", "1970-01-01T00:00:00Z", "1970-01-04T00:00:00Z");
    assert_eq!(longer, ["1970-01-02T12:00:00Z", "1970-01-04T00:00:00Z"]);
}

#[test]
fn the_29th_of_february_is_found_in_its_next_year() {
    let after = at("2026-01-01T00:00:00Z");
    assert_eq!(parsed("0 0 29 2 *").after(after).unwrap(), at("2028-02-29T00:00:00Z"));
    // Both days given: either will do.
    assert_eq!(parsed("0 0 29 2 1").after(after).unwrap(), at("2026-02-02T00:00:00Z"));
}

#[test]
fn impossible_expressions_are_refused_within_milliseconds() {
    insta::assert_snapshot!(
        [
            "",
            "0 0 30 2 *",
            "0 0 31 4 *",
            "0 0 31 2,4,6,9,11 *",
            "60 * * * *",
            "0 0 * * * * 2020",
            "* * * *",
            "0 3 * * * Europe/Atlantis",
            "0 3 * * * Foo",
            "every",
            "every 0s",
            "every 10y",
            "every -5m",
        ]
        .map(|text| format!("`{text}`: {}", refused(text)))
        .join("\n")
    );
}

#[test]
fn a_day_name_is_no_time_zone() {
    for text in [
        "0 3 * * MON",
        "0 3 * * mon-fri",
        "0 3 L * *",
        "0 3 * * 5L",
        "0 3 * * MON Asia/Tokyo",
        "@daily Asia/Tokyo",
    ] {
        parsed(text);
    }
}
