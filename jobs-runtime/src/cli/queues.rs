//! `jobs queues`.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::Result;
use super::output::{Output, Shown, json_lines};
use super::when::{length, second};
use crate::store::{Paused, QueueDepth};
use crate::{Jobs, Timestamp};

/// Counts stop here, so that the answer comes at once however much there is.
pub(super) const MOST: u32 = 100_000;

#[derive(Debug, Clone, Args)]
pub struct Options {}

/// A queue that has ready or running jobs, or is paused.
#[derive(Debug)]
pub(super) struct Queue {
    depth: QueueDepth,
    paused: Option<Paused>,
}

#[derive(Serialize)]
pub(super) struct Answer<'a> {
    queue: &'a str,
    ready: u64,
    /// Whether there are more than that.
    is_ready_bounded: bool,
    head_due_at: Option<String>,
    running: u64,
    paused: Option<PausedAnswer<'a>>,
}

#[derive(Serialize)]
pub(super) struct PausedAnswer<'a> {
    by: &'a str,
    reason: &'a str,
    at: String,
}

impl<'a> PausedAnswer<'a> {
    pub(super) fn of(paused: &'a Paused) -> Self {
        let Paused { queue: _, by, reason, at } = paused;
        Self { by, reason, at: at.to_string() }
    }
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let queues = all(&jobs, jobs.inspect().depth(MOST).await?.queues).await?;
        if cx.output.is_json {
            return json_lines(queues.iter().map(Queue::answer));
        }
        table(cx.output, &queues, jobs.clock().now())
    }
}

/// These queues, and those that are paused.
pub(super) async fn all(jobs: &Jobs, depths: Vec<QueueDepth>) -> Result<Vec<Queue>> {
    let mut queues: BTreeMap<String, Queue> = depths
        .into_iter()
        .map(|depth| (depth.queue.clone(), Queue { depth, paused: None }))
        .collect();
    for paused in jobs.inspect().paused().await? {
        let name = paused.queue.clone();
        let queue = queues.entry(name.clone()).or_insert_with(|| Queue {
            depth: QueueDepth { queue: name, ready: 0, head_due_at: None, running: 0 },
            paused: None,
        });
        queue.paused = Some(paused);
    }
    Ok(queues.into_values().collect())
}

/// The queues as a table.
pub(super) fn table(output: Output, queues: &[Queue], now: Timestamp) -> Result<()> {
    let header = ["QUEUE", "READY", "WAITS SINCE", "FOR", "RUNNING", "PAUSED"];
    output.table(&header, queues.iter().map(|queue| queue.row(now)).collect())
}

/// A count that may have stopped.
pub(super) fn bounded(count: u64) -> String {
    if count >= u64::from(MOST) { format!("{count}+") } else { count.to_string() }
}

impl Queue {
    pub(super) fn answer(&self) -> Answer<'_> {
        Answer {
            queue: &self.depth.queue,
            ready: self.depth.ready,
            is_ready_bounded: self.depth.ready >= u64::from(MOST),
            head_due_at: self.depth.head_due_at.map(|at| at.to_string()),
            running: self.depth.running,
            paused: self.paused.as_ref().map(PausedAnswer::of),
        }
    }

    fn row(&self, now: Timestamp) -> Vec<Shown> {
        let QueueDepth { queue, ready, head_due_at, running } = &self.depth;
        let paused = self
            .paused
            .as_ref()
            .map(|paused| format!("by {} at {}: {}", paused.by, second(paused.at), paused.reason));
        vec![
            Shown::new(queue.as_str()),
            Shown::new(bounded(*ready)),
            Shown::maybe(head_due_at.map(second)),
            Shown::maybe(
                head_due_at.map(|at| length(Duration::from_secs(now.since(at).as_secs()))),
            ),
            Shown::new(running.to_string()),
            Shown::maybe(paused),
        ]
    }
}
