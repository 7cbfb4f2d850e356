//! Imports an access log into tables of the same database, while its process is killed again and again.
//!
//! `cargo run --release -p examples --bin import -- [URL] [--file LOG] [--lines N] [--kills N] [--seed N]`
//!
//! One job reads the log batch by batch and adds it up; each batch commits with the checkpoint behind
//! it. The driver kills the process that runs the job, by SIGKILL, at random places of the log, and
//! starts another one. At the end the totals must be those of a plain pass over the log, or it fails.

mod driver;
mod job;
mod log;
mod table;

use std::path::PathBuf;

use anyhow::{Context, bail};
use jobs_runtime::prelude::*;
use jobs_runtime::{OsRandom, Random as _};

const USAGE: &str = "usage: import [URL] [--file LOG] [--lines N] [--kills N] [--seed N]";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| "error".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    match arguments.works_on {
        Some(job) => driver::work(&arguments.url, job).await,
        None => driver::drive(&arguments).await,
    }
}

/// The client of an address, with the tables that go with it.
async fn open(url: &str) -> anyhow::Result<(Jobs, table::Tables)> {
    let jobs = Jobs::builder().build_label(concat!("import ", env!("CARGO_PKG_VERSION")));
    let jobs = jobs.open(url).await.with_context(|| format!("can't open {url}"))?;
    Ok((jobs, table::Tables::of(url)))
}

struct Arguments {
    /// Default: a SQLite file beside the log.
    url: String,
    /// Default: `target/import/access.log`; made when absent.
    file: PathBuf,
    /// How many lines the log gets when it is made.
    lines: u64,
    kills: usize,
    seed: u64,
    /// The job to work on, for the process that the driver starts.
    works_on: Option<i64>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/import"));
        let mut url = None;
        let mut arguments = Self {
            url: format!("sqlite://{}", folder.join("import.db").display()),
            file: folder.join("access.log"),
            lines: 200_000,
            kills: 20,
            seed: OsRandom::new().draw(),
            works_on: None,
        };
        while let Some(argument) = given.next() {
            let mut value = || given.next().with_context(|| format!("{argument} needs a value"));
            match &*argument {
                "--file" => arguments.file = value()?.into(),
                "--lines" => arguments.lines = value()?.parse().context(USAGE)?,
                "--kills" => arguments.kills = value()?.parse().context(USAGE)?,
                "--seed" => arguments.seed = value()?.parse().context(USAGE)?,
                "--works-on" => arguments.works_on = Some(value()?.parse().context(USAGE)?),
                _ if argument.starts_with('-') || url.is_some() => bail!(USAGE),
                _ => url = Some(argument),
            }
        }
        Ok(Self { url: url.unwrap_or(arguments.url), ..arguments })
    }
}
