//! `jobs workers`.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::Result;
use super::output::{Output, Shown, json_lines, say};
use super::when::second;
use crate::store::{Phase, WorkerRecord};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Also those that have ended.
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
pub(super) struct Answer<'a> {
    id: i64,
    name: &'a str,
    build: &'a str,
    phase: &'static str,
    held: u64,
    started_at: String,
    ended_at: Option<String>,
    is_taken_back: bool,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let workers = cx.open().await?.inspect().workers().await?;
        let shown: Vec<_> =
            workers.iter().filter(|worker| self.all || worker.ended_at.is_none()).collect();
        if cx.output.is_json {
            return json_lines(shown.iter().map(|worker| answer(worker)));
        }
        if shown.is_empty() && !workers.is_empty() {
            say("jobs: no worker is live; `--all` lists those that have ended");
        }
        table(cx.output, shown.into_iter())
    }
}

/// Workers as a table.
pub(super) fn table<'a>(
    output: Output,
    workers: impl Iterator<Item = &'a WorkerRecord>,
) -> Result<()> {
    let header = ["ID", "NAME", "BUILD", "PHASE", "HELD", "STARTED", "ENDED"];
    output.table(&header, workers.map(row).collect())
}

pub(super) fn answer(worker: &WorkerRecord) -> Answer<'_> {
    Answer {
        id: worker.id.0,
        name: &worker.name,
        build: &worker.build,
        phase: worker.phase.as_str(),
        held: worker.held,
        started_at: worker.started_at.to_string(),
        ended_at: worker.ended_at.map(|at| at.to_string()),
        is_taken_back: worker.is_taken_back,
    }
}

fn row(worker: &WorkerRecord) -> Vec<Shown> {
    let has_left = worker.phase == Phase::Done;
    let phase = if worker.is_taken_back && !has_left { "gone" } else { worker.phase.as_str() };
    let ended = worker.ended_at.map(|at| {
        let how = if worker.is_taken_back { " (taken back)" } else { "" };
        format!("{}{how}", second(at))
    });
    vec![
        Shown::new(worker.id.to_string()),
        Shown::new(worker.name.as_str()),
        Shown::new(worker.build.as_str()),
        Shown::new(phase),
        Shown::new(worker.held.to_string()),
        Shown::new(second(worker.started_at)),
        Shown::maybe(ended),
    ]
}
