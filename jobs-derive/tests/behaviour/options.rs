//! Each option arrives where it belongs.

use std::{any::TypeId, time::Duration};

use jobs_core::{
    Budget, CatchUp, Checkpoint, Job, Ladder, Line, MinReader, NewJob, NoCheckpoint, OnStop,
    Payload, Policy, Version, Versioned,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.3.4", readable_by = "2.1")]
#[job(aliases("billing.debit", "debit"), queue = "billing", priority = -100)]
#[job(max_failures = 1, timeout = "90s", on_stop = "undo", checkpoint = ChargeAt)]
struct Charge;

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "3.1.0", readable_by = "3.0")]
struct ChargeAt;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "ping", version = "1.2.0")]
struct Ping;

#[test]
fn every_option_is_where_its_trait_has_it() {
    assert_eq!(Charge::KIND, "billing.charge");
    assert_eq!(Charge::VERSION, Version::new(2, 3, 4));
    assert_eq!(Charge::MIN_READER, MinReader { major: 2, minor: 1 });
    assert_eq!(Charge::ALIASES, ["billing.debit", "debit"]);
    let policy = Policy::DEFAULT
        .queue("billing")
        .priority(-100)
        .max_failures(1)
        .timeout(Duration::from_secs(90))
        .on_stop(OnStop::Undo);
    assert_eq!(Charge::POLICY, policy);
    assert_eq!(TypeId::of::<<Charge as Job>::Checkpoint>(), TypeId::of::<ChargeAt>());
    assert_eq!(ChargeAt::VERSION, Version::new(3, 1, 0));
    assert_eq!(ChargeAt::MIN_READER, MinReader { major: 3, minor: 0 });
}

#[test]
fn a_job_that_runs_at_most_once_has_a_budget_of_one() {
    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "once", version = "1.0.0", on_stop = "at_most_once")]
    struct Once;

    assert_eq!(Once::POLICY, Policy::DEFAULT.on_stop(OnStop::AtMostOnce));
    let budget = Budget { max_failures: 1, max_interruptions: Some(1) };
    assert_eq!(Once::POLICY.budget(), budget);
    assert_eq!(Ping::POLICY.budget(), Budget::default());
}

#[test]
fn what_is_not_said_is_the_default() {
    assert_eq!(Ping::MIN_READER, MinReader { major: 1, minor: 2 });
    assert_eq!(Ping::lines(), [Line { major: 1, minor: 2 }]);
    assert!(Ping::ALIASES.is_empty());
    assert_eq!(Ping::POLICY, Policy::DEFAULT);
    assert_eq!(TypeId::of::<<Ping as Job>::Checkpoint>(), TypeId::of::<NoCheckpoint>());
}

#[derive(Serialize, Deserialize, Job, Default)]
#[job(kind = "report.daily", version = "1.0.0", retry = "2s..1h", expires_in = "10m")]
#[job(unique("list", "type"), schedule = "0 3 * * * Europe/Berlin", catch_up = "all 7")]
struct Report {
    list: String,
    day: u32,
    #[serde(rename = "t")]
    r#type: Option<u8>,
}

#[derive(Serialize, Deserialize, Job, Default)]
#[job(kind = "pair", version = "1.0.0", retry = "1s, 10s,5m", unique("1"), schedule = "every 15m")]
struct Pair(u8, String);

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "fixed", version = "1.0.0", retry = "500ms")]
struct Fixed;

#[test]
fn the_waits_between_failures_are_as_written() {
    let second = Duration::from_secs(1);
    assert_eq!(Report::retry(), Ladder::exponential(second * 2, second * 3600));
    assert_eq!(Pair::retry(), Ladder::steps([second, second * 10, second * 300]));
    assert_eq!(Fixed::retry(), Ladder::fixed(second / 2));
    assert_eq!(Ping::retry(), Ladder::default());
    assert_eq!(Report::POLICY, Policy::DEFAULT.expires_in(second * 600));
}

#[test]
fn the_chosen_fields_are_the_unique_key() {
    let report = Report { list: "a\n\"b".to_owned(), day: 3, r#type: None };
    assert_eq!(report.unique_key().unwrap().unwrap(), r#"["a\n\"b",null]"#);
    let other = Report { day: 4, ..report };
    assert_eq!(NewJob::of(&other, 100).unwrap().unique_key.unwrap().as_str(), r#"["a\n\"b",null]"#);
    assert_eq!(Pair(1, "x".to_owned()).unique_key().unwrap().unwrap(), r#"["x"]"#);
    assert!(Ping.unique_key().is_none());
    let long = Report { list: "x".repeat(600), ..Report::default() };
    let refused = NewJob::of(&long, 1_000).unwrap_err().to_string();
    assert!(refused.contains("is not a unique key: write 1 to 512 bytes"), "{refused}");
}

#[test]
fn a_schedule_enqueues_the_default_payload() {
    let [schedule] = &Report::schedules()[..] else { panic!("one schedule") };
    assert_eq!((schedule.name(), schedule.when()), ("report.daily", "0 3 * * * Europe/Berlin"));
    assert_eq!(schedule.catches_up(), CatchUp::All(7));
    assert_eq!(schedule.job().unwrap().payload, r#"{"list":"","day":0,"t":null}"#);
    assert_eq!(Pair::schedules()[0].catches_up(), CatchUp::Latest);
    assert!(Ping::schedules().is_empty());
}

#[test]
fn the_documents_say_how_long_twenty_failures_take() {
    const MIDDLE: u64 = u64::MAX / 2;
    let failures = 1..Policy::DEFAULT.max_failures;
    let waits: Duration = failures.map(|nth| Ladder::default().wait(nth, MIDDLE)).sum();
    assert!((4.25..4.75).contains(&(waits.as_secs_f64() / 86_400.0)), "{waits:?}");
    let derive = include_str!("../../src/lib.rs");
    assert!(derive.contains("20: with the default ladder, about four and a half days"));
}
