//! `jobs stats`.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::Result;
use super::output::{Output, Shown, json_lines};
use super::queues::{MOST, bounded};
use crate::State;
use crate::store::Count;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Count exactly, by queue, kind, version and state. This reads every job that there is.
    #[arg(long)]
    by_kind: bool,
}

#[derive(Serialize)]
pub(super) struct StateAnswer {
    state: &'static str,
    jobs: u64,
    /// Whether there are more than that.
    is_bounded: bool,
}

#[derive(Serialize)]
struct CountAnswer<'a> {
    queue: &'a str,
    kind: &'a str,
    version: &'a str,
    state: &'static str,
    jobs: u64,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        if self.by_kind {
            return by_kind(cx.output, &jobs.inspect().counts().await?);
        }
        let states = jobs.inspect().depth(MOST).await?.states;
        if cx.output.is_json {
            return json_lines(states.iter().map(answer));
        }
        table(cx.output, &states)
    }
}

pub(super) fn answer((state, jobs): &(State, u64)) -> StateAnswer {
    let is_bounded = *jobs >= u64::from(MOST);
    StateAnswer { state: state.as_str(), jobs: *jobs, is_bounded }
}

/// How many jobs each state has.
pub(super) fn table(output: Output, states: &[(State, u64)]) -> Result<()> {
    let row = |(state, jobs): &(State, u64)| vec![Shown::state(*state), Shown::new(bounded(*jobs))];
    output.table(&["STATE", "JOBS"], states.iter().map(row).collect())
}

fn by_kind(output: Output, counts: &[Count]) -> Result<()> {
    if output.is_json {
        return json_lines(counts.iter().map(|count| CountAnswer {
            queue: &count.queue,
            kind: &count.kind,
            version: &count.version,
            state: count.state.as_str(),
            jobs: count.jobs,
        }));
    }
    let row = |count: &Count| {
        vec![
            Shown::new(count.queue.as_str()),
            Shown::new(count.kind.as_str()),
            Shown::new(count.version.as_str()),
            Shown::state(count.state),
            Shown::new(count.jobs.to_string()),
        ]
    };
    let header = ["QUEUE", "KIND", "VERSION", "STATE", "JOBS"];
    output.table(&header, counts.iter().map(row).collect())
}
