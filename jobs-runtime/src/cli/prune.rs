//! `jobs prune`: deletes finished jobs, in batches that hold nothing up.

use std::time::Duration;

use clap::{ArgGroup, Args};
use serde::Serialize;

use super::Context;
use super::exit::Result;
use super::output::{consent, json, print};
use super::when;
use crate::store::Retention;

#[derive(Debug, Clone, Args)]
#[command(
    group = ArgGroup::new("states").required(true).multiple(true),
    after_help = "A state that is not named is kept whole. Example:\n  \
                  jobs prune --succeeded 1d --cancelled 7d"
)]
pub struct Options {
    /// Succeeded jobs that ended longer ago than this.
    #[arg(long, group = "states", value_name = "LENGTH", value_parser = when::span)]
    succeeded: Option<Duration>,
    /// Cancelled jobs that ended longer ago than this.
    #[arg(long, group = "states", value_name = "LENGTH", value_parser = when::span)]
    cancelled: Option<Duration>,
    /// Dead letters that ended longer ago than this.
    #[arg(long, group = "states", value_name = "LENGTH", value_parser = when::span)]
    dead: Option<Duration>,
    /// How many jobs are deleted in one transaction.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    pruned: u64,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let place = cx.globals.place()?;
        consent(&format!("Delete from {place} for good: {}?", self.named().join(", ")), self.yes)?;
        let kept = |length: Option<Duration>| length.unwrap_or(Duration::MAX);
        let retention = Retention {
            succeeded: kept(self.succeeded),
            cancelled: kept(self.cancelled),
            dead: kept(self.dead),
        };
        let mut pruned = 0;
        loop {
            let count = jobs.prune(retention, self.batch).await?;
            pruned += u64::from(count);
            if count < self.batch {
                break;
            }
        }
        if cx.output.is_json { json(&Answer { pruned }) } else { print(&format!("{pruned}\n")) }
    }

    fn named(&self) -> Vec<String> {
        let named = [
            ("succeeded jobs", self.succeeded),
            ("cancelled jobs", self.cancelled),
            ("dead letters", self.dead),
        ];
        let told = |(what, length): (&str, Option<Duration>)| {
            length.map(|length| format!("{what} that ended over {} ago", when::length(length)))
        };
        named.into_iter().filter_map(told).collect()
    }
}
