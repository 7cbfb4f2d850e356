use clap::Parser;
use jobs_core::Versioned as _;
use serde::{Deserialize, Serialize};

use super::*;
use crate::{Job, JobContext, JobError, Registry, Version};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "report.build", version = "1.0.0", unique("day"), crate = "crate")]
struct Report {
    day: u32,
}

async fn report(_: Report, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(
    kind = "billing.charge",
    version = "2.1.0",
    queue = "billing",
    priority = 5,
    max_failures = 3,
    crate = "crate"
)]
struct Charge {
    order: u64,
}

async fn charge(_: Charge, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

fn job(arguments: &[&str]) -> std::result::Result<NewJob, String> {
    let handlers =
        Registry::new().handle(charge).handle(report).build().expect("the registry is in order");
    let line = Line::try_parse_from([&["enqueue"], arguments].concat()).expect("a right command");
    line.options.job(&Application::of(&handlers)).map_err(|failure| format!("{failure:?}"))
}

#[test]
fn an_application_knows_the_policy_of_its_kinds() {
    let job = job(&["billing.charge", r#"{"order": 18446744073709551615}"#]).unwrap();
    assert_eq!(job.version, Charge::VERSION);
    assert_eq!(
        (job.queue.as_str(), job.priority.value(), job.budget.max_failures),
        ("billing", 5, 3)
    );
    assert_eq!(job.payload, r#"{"order": 18446744073709551615}"#, "no digit is lost");
}

#[test]
fn what_is_typed_goes_before_what_is_known() {
    let typed = ["--queue", "slow", "--priority", "-7", "--payload-version", "2.0.3"];
    let job = job(&[&["billing.charge", r#"{"order": 7}"#], &typed[..]].concat()).unwrap();
    assert_eq!((job.queue.as_str(), job.priority.value()), ("slow", -7));
    assert_eq!(job.version, Version::new(2, 0, 3));
}

#[test]
fn a_kind_that_is_not_known_needs_its_version() {
    let said = job(&["mail.send", "{}"]).unwrap_err();
    assert!(said.contains("this application knows billing.charge, report.build"), "{said}");
    let job = job(&["mail.send", "{}", "--payload-version", "1.0.0"]).unwrap();
    assert_eq!((job.queue.as_str(), job.budget.max_failures), ("default", 20));
}

#[test]
fn a_payload_that_its_kind_can_not_read_is_refused_unless_it_is_forced_in() {
    let wrong = ["billing.charge", r#"{"ordr": 7}"#];
    let said = job(&wrong).unwrap_err();
    assert!(said.contains("as billing.charge 2.1.0: ") && said.contains("`order`"), "{said}");
    assert!(said.contains("--unchecked"), "{said}");
    let job_of_later = ["billing.charge", r#"{"order": 7}"#, "--payload-version", "3.0.0"];
    assert!(job(&job_of_later).unwrap_err().contains("as billing.charge 3.0.0: "));
    let forced = job(&[&wrong[..], &["--unchecked"]].concat()).unwrap();
    assert_eq!(forced.payload, r#"{"ordr": 7}"#);
}

#[test]
fn a_kind_that_is_unique_by_its_fields_makes_its_key() {
    let by_field = job(&["report.build", r#"{"day": 7}"#]).unwrap();
    let of_type = NewJob::of(&Report { day: 7 }, usize::MAX).unwrap();
    assert!(by_field.unique_key.is_some());
    assert_eq!(by_field.unique_key, of_type.unique_key);
    let typed = job(&["report.build", r#"{"day": 7}"#, "--unique-key", "mine"]).unwrap();
    assert_eq!(typed.unique_key.unwrap().as_str(), "mine");
}
