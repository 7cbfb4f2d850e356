//! Each option arrives where it belongs.

use std::{any::TypeId, time::Duration};

use jobs_core::{
    Budget, Checkpoint, Job, Line, MinReader, NoCheckpoint, OnStop, Payload, Policy, Version,
    Versioned,
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
