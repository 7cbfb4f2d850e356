//! `jobs manifest`: is it safe to deploy this build?

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Context;
use super::exit::{Exit, Failure, Result};
use super::output::{json, print};
use crate::manifest::{Answer, Manifest, check, diff, live};

#[derive(Debug, Clone, Args)]
#[command(after_help = "Example, in a pipeline before a deploy:\n  \
                        jobs manifest check || exit 1")]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Print what this application reads, handles, produces and has retired.
    Print,
    /// Say what changes between two builds, from what they printed. Exit status 1: not safe.
    Diff {
        /// The older build: a file that `print` wrote.
        old: PathBuf,
        /// The newer one. Default: this application.
        new: Option<PathBuf>,
    },
    /// Say whether a build can be deployed beside the live ones and the jobs that wait. Exit status
    /// 1: not safe.
    Check {
        /// The candidate: a file that `print` wrote. Default: this application.
        candidate: Option<PathBuf>,
    },
}

/// How long a program counts that was seen enqueueing: it says so every hour that it does.
const PRODUCER_STAYS: std::time::Duration = std::time::Duration::from_hours(24);

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        match &self.what {
            What::Print => print_own(cx),
            What::Diff { old, new } => {
                let (old, new) = (read(old)?, candidate(cx, new.as_ref())?);
                answered(cx, &diff(&old, &new))
            }
            What::Check { candidate: file } => {
                let candidate = candidate(cx, file.as_ref())?;
                let jobs = cx.open().await?;
                let inspect = jobs.inspect();
                let live = live(&inspect.workers().await?);
                let now = jobs.clock().now();
                let builds = inspect.builds().await?;
                let seen = builds.iter().filter(|it| it.seen_at.after(PRODUCER_STAYS) >= now);
                let mut producers: Vec<Manifest> =
                    seen.filter_map(|it| Manifest::parse(&it.manifest).ok()).collect();
                producers.push(jobs.schedules_of_people().await?);
                let waiting = inspect.waiting().await?;
                answered(cx, &check(&candidate, &live, &producers, &waiting))
            }
        }
    }
}

fn print_own(cx: &Context) -> Result<()> {
    json(own(cx)?)
}

fn own(cx: &Context) -> Result<&Manifest> {
    cx.application.manifest().ok_or_else(|| {
        Failure::wrong(
            "this binary knows no kinds: mount the commands in your application's own binary, with \
             `jobs_runtime::cli::main(&handlers)`, and ask that one",
        )
    })
}

fn candidate(cx: &Context, file: Option<&PathBuf>) -> Result<Manifest> {
    file.map_or_else(|| own(cx).cloned(), read)
}

fn read(file: &PathBuf) -> Result<Manifest> {
    let said = |error: &dyn std::fmt::Display| {
        Failure::wrong(format!("{} is not a manifest: {error}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| said(&error))?;
    Manifest::parse(&text).map_err(|error| said(&error))
}

fn answered(cx: &Context, answer: &Answer) -> Result<()> {
    if cx.output.is_json {
        json(answer)?;
    } else {
        let lines: Vec<String> = answer.to_string().lines().map(super::visible::visible).collect();
        print(&format!("{}\n", lines.join("\n")))?;
    }
    if answer.is_safe { Ok(()) } else { Err(Failure::silent(Exit::Finding)) }
}
