//! `jobs watch`: the same again and again, until it is ended.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::exit::Result;
use super::output::{has_reader_left, json_line, print};
use super::visible::visible;
use super::when;
use super::{Context, queues, stats, workers};
use crate::Jobs;

/// Clears a terminal and goes to its first line.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

#[derive(Debug, Clone, Args)]
#[command(after_help = "Ctrl-C ends it. With --json each look is one line.")]
pub struct Options {
    /// How long between two looks, at least 100 ms.
    #[arg(long, default_value = "2s", value_name = "LENGTH", value_parser = interval)]
    interval: Duration,
    /// End after so many looks.
    #[arg(long, value_name = "LOOKS")]
    count: Option<u64>,
}

#[derive(Serialize)]
struct Answer<'a> {
    at: String,
    states: Vec<stats::StateAnswer>,
    queues: Vec<queues::Answer<'a>>,
    workers: Vec<workers::Answer<'a>>,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let mut looks = tokio::time::interval(self.interval);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ended = std::pin::pin!(tokio::signal::ctrl_c());
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 && !has_reader_left() {
            tokio::select! {
                biased;
                _ = &mut ended => break,
                _ = looks.tick() => look(cx, &jobs).await?,
            }
            left -= 1;
        }
        Ok(())
    }
}

/// Shorter ones would keep the store busy for nothing.
fn interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(100);
    let interval = when::span(text)?;
    if interval < SHORTEST {
        return Err(format!("the shortest is {SHORTEST:?}, since no eye follows more"));
    }
    Ok(interval)
}

async fn look(cx: &Context, jobs: &Jobs) -> Result<()> {
    let depth = jobs.inspect().depth(queues::MOST).await?;
    let queues = queues::all(jobs, depth.queues).await?;
    let mut workers = jobs.inspect().workers().await?;
    workers.retain(|worker| worker.ended_at.is_none());
    let now = jobs.clock().now();
    if cx.output.is_json {
        return json_line(&Answer {
            at: now.to_string(),
            states: depth.states.iter().map(stats::answer).collect(),
            queues: queues.iter().map(queues::Queue::answer).collect(),
            workers: workers.iter().map(workers::answer).collect(),
        });
    }
    if cx.output.is_terminal() {
        print(CLEAR)?;
    }
    print(&format!("{}  {}\n", when::second(now), visible(&cx.globals.place()?)))?;
    cx.output.heading("Jobs")?;
    stats::table(cx.output, &depth.states)?;
    cx.output.heading("Queues")?;
    queues::table(cx.output, &queues, now)?;
    cx.output.heading("Workers")?;
    workers::table(cx.output, workers.iter())
}
