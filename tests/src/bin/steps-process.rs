//! A worker process for the tests: runs jobs of many steps until it is told to stop, or until it ends
//! itself in the middle of one.
//!
//! Set by its environment: `URL` of the store, `SCHEMA` on a server, `LEDGER`, `NAME`, `CONCURRENCY`,
//! `LEASE_MS`, `GRACE_MS`, and `FATE`, the instant at which it ends itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::prelude::*;
use tests::ledger::Ledger;
use tests::steps::{Stage, handlers};

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let url = std::env::var("URL")?;
    let schema = std::env::var("SCHEMA").ok();
    let jobs = Jobs::builder().build_label("steps-process");
    let jobs = match schema.clone() {
        Some(schema) => jobs.postgres(move |options| options.schema(schema.clone())),
        None => jobs,
    };
    let jobs = jobs.open(&url).await?;
    let stage = Stage {
        ledger: Ledger::open(Path::new(&std::env::var("LEDGER")?)),
        tables: schema.map_or_else(String::new, |schema| format!("{schema}.")),
        fate: std::env::var("FATE").ok().map(|fate| fate.parse()).transpose()?,
        begun: Arc::default(),
    };
    Worker::new(&jobs, handlers(&url)?, stage)
        .name(std::env::var("NAME")?)
        .concurrency(usize::try_from(number("CONCURRENCY", 1))?)
        .lease(Duration::from_millis(number("LEASE_MS", 1_000)))
        .poll_interval(Duration::from_millis(100))
        .grace_period(Duration::from_millis(number("GRACE_MS", 10_000)))
        .run_until_terminated()
        .await?;
    Ok(())
}
