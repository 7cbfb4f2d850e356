//! The SHA-256 of every file below a folder, one job a file.
//!
//! `cargo run --release -p examples --bin checksums -- [DIR] [--db FILE] [--enqueue-only]`
//!
//! Each digest is kept in the same SQLite file, in the same transaction as its job's success. A
//! second run does only what changed; a killed run goes on at once. Standard output has one line a
//! file, as `sha256sum` writes it; everything else goes to standard error.

mod files;
mod job;
mod progress;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, bail};
use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{Enqueued, JobId, State};

use self::job::Checksum;
use self::table::Table;

/// How many files are read at once.
const CONCURRENCY: usize = 8;

/// How many jobs are looked at in one call.
const PAGE: u32 = 1_000;

const USAGE: &str = "usage: checksums [DIR] [--db FILE] [--enqueue-only]";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| "error".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let arguments = Arguments::parse(std::env::args_os().skip(1))?;
    let jobs = Jobs::builder()
        .build_label(concat!("checksums ", env!("CARGO_PKG_VERSION")))
        .open(&format!("sqlite://{}", arguments.database.display()))
        .await
        .with_context(|| format!("can't open {}", arguments.database.display()))?;
    let table = Table::open(&jobs).await?;

    let found = files::below(&arguments.folder, &arguments.database)?;
    let known = table.stamps().await?;
    let changed = found.iter().filter(|file| known.get(&file.path) != Some(&file.stamp));
    let mut ids = Vec::new();
    for file in changed {
        let job = Checksum { path: file.path.clone() };
        let enqueued = jobs.enqueue(job).unique_key(file.path.key()).await?;
        match enqueued {
            Enqueued::Added(id) | Enqueued::AlreadyThere(id) => ids.push(id),
        }
    }
    ids.extend(left_behind(&jobs).await?);
    ids.sort();
    ids.dedup();
    eprintln!("{} files, {} to read", found.len(), ids.len());

    if arguments.is_enqueue_only {
        return Ok(());
    }

    let handlers = Registry::new().job::<Checksum>().build()?;
    Worker::new(&jobs, handlers, table.clone())
        .concurrency(CONCURRENCY)
        .run_until(progress::until_all_ended(&jobs, &ids))
        .await?;

    table.print(&found).await?;
    report_dead(&jobs, &ids).await
}

/// The jobs that an earlier run enqueued and did not end, such as those of files that are gone by
/// now.
async fn left_behind(jobs: &Jobs) -> anyhow::Result<Vec<JobId>> {
    let mut left = Vec::new();
    for state in [State::Scheduled, State::Ready, State::Running] {
        let mut filter = Filter { state: Some(state), ..Filter::default() };
        loop {
            let page = jobs.inspect().briefs(&filter, PAGE).await?;
            left.extend(page.iter().map(|job| job.id));
            filter.after = page.last().map(|job| job.id);
            if filter.after.is_none() {
                break;
            }
        }
    }
    Ok(left)
}

/// Says which files could not be read, and fails if there are any.
async fn report_dead(jobs: &Jobs, ids: &[JobId]) -> anyhow::Result<()> {
    let mut dead = 0;
    for id in ids {
        let Some(job) = jobs.job(*id).await? else { continue };
        if job.state == State::Dead {
            dead += 1;
            let class = job.error_class.unwrap_or_default();
            eprintln!("dead letter {id}, {class}: {}", job.error.unwrap_or_default());
        }
    }
    if dead > 0 {
        bail!("{dead} of {} files could not be read", ids.len());
    }
    Ok(())
}

struct Arguments {
    /// Default: this repository.
    folder: PathBuf,
    /// Default: `checksums.db` in the current folder.
    database: PathBuf,
    /// Leave the work to the next run.
    is_enqueue_only: bool,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = OsString>) -> anyhow::Result<Self> {
        let mut folder = None;
        let mut database = PathBuf::from("checksums.db");
        let mut is_enqueue_only = false;
        while let Some(argument) = given.next() {
            if argument == "--db" {
                database = given.next().context("--db needs a file")?.into();
            } else if argument == "--enqueue-only" {
                is_enqueue_only = true;
            } else if argument.as_encoded_bytes().starts_with(b"-")
                || folder.replace(PathBuf::from(argument)).is_some()
            {
                bail!(USAGE);
            }
        }
        let repository = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        Ok(Self { folder: folder.unwrap_or_else(repository), database, is_enqueue_only })
    }
}
