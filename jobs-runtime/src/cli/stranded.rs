//! `jobs stranded`: what waits that no live worker can read.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::Result;
use super::output::{Shown, json_lines, say};
use super::when::second;
use crate::manifest::{Manifest, live};
use crate::store::Waiting;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "It counts the waiting jobs, which takes a moment where there are millions."
)]
pub struct Options {}

#[derive(Serialize)]
struct Answer<'a> {
    queue: &'a str,
    kind: &'a str,
    version: &'a str,
    min_reader: Option<&'a str>,
    jobs: u64,
    refused: u64,
    oldest_at: String,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let live = live(&jobs.inspect().workers().await?);
        let waiting = jobs.inspect().waiting().await?;
        let stranded: Vec<_> = waiting.iter().filter(|it| !is_read(&live, it)).collect();
        if cx.output.is_json {
            return json_lines(stranded.iter().map(|it| answer(it)));
        }
        if live.is_empty() && !stranded.is_empty() {
            say("jobs: no worker is live, so nobody reads anything; see `jobs workers --all`");
        }
        let header = ["QUEUE", "KIND", "VERSION", "JOBS", "REFUSED", "OLDEST"];
        cx.output.table(&header, stranded.iter().map(|it| row(it)).collect())
    }
}

fn is_read(live: &[Manifest], waiting: &Waiting) -> bool {
    let Waiting { kind, version, min_reader, .. } = waiting;
    live.iter().any(|manifest| manifest.takes(kind, version, min_reader.as_deref()))
}

fn answer(waiting: &Waiting) -> Answer<'_> {
    Answer {
        queue: &waiting.queue,
        kind: &waiting.kind,
        version: &waiting.version,
        min_reader: waiting.min_reader.as_deref(),
        jobs: waiting.jobs,
        refused: waiting.refused,
        oldest_at: waiting.oldest_at.to_string(),
    }
}

fn row(waiting: &Waiting) -> Vec<Shown> {
    vec![
        Shown::new(waiting.queue.as_str()),
        Shown::new(waiting.kind.as_str()),
        Shown::new(waiting.version.as_str()),
        Shown::alarming(waiting.jobs),
        Shown::new(waiting.refused.to_string()),
        Shown::new(second(waiting.oldest_at)),
    ]
}
