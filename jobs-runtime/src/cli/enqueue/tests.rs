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
#[job(
    kind = "billing.charge",
    version = "2.1.0",
    queue = "billing",
    priority = 5,
    max_failures = 3,
    crate = "crate"
)]
struct Charge {
    order: i64,
}

async fn charge(_: Charge, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

fn job(arguments: &[&str]) -> std::result::Result<NewJob, String> {
    let handlers = Registry::new().handle(charge).build().expect("the registry is in order");
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
    let job = job(&[&["billing.charge", "{}"], &typed[..]].concat()).unwrap();
    assert_eq!((job.queue.as_str(), job.priority.value()), ("slow", -7));
    assert_eq!(job.version, Version::new(2, 0, 3));
}

#[test]
fn a_kind_that_is_not_known_needs_its_version() {
    let said = job(&["mail.send", "{}"]).unwrap_err();
    assert!(said.contains("this application knows billing.charge"), "{said}");
    let job = job(&["mail.send", "{}", "--payload-version", "1.0.0"]).unwrap();
    assert_eq!((job.queue.as_str(), job.budget.max_failures), ("default", 20));
}
