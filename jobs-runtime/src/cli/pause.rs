//! `jobs pause` and `jobs resume`.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::{Failure, Result};
use super::output::{json, say};
use super::queues::PausedAnswer;
use super::when::second;
use crate::store::Paused;
use crate::{Jobs, QueueName};

#[derive(Debug, Clone, Args)]
pub struct Pause {
    /// The queue.
    queue: QueueName,
    /// Why, for whoever finds it paused.
    #[arg(long)]
    reason: String,
    /// Who pauses it. Default: the name that you are logged in with.
    #[arg(long, env = "USER")]
    by: String,
}

#[derive(Debug, Clone, Args)]
pub struct Resume {
    /// The queue.
    queue: QueueName,
}

/// What stands after a pause: where it was paused already, the first reason.
#[derive(Serialize)]
struct PauseAnswer<'a> {
    queue: &'a str,
    /// Whether it was paused before.
    was_paused: bool,
    paused: PausedAnswer<'a>,
}

#[derive(Serialize)]
struct ResumeAnswer<'a> {
    queue: &'a str,
    /// What has ended.
    was_paused: PausedAnswer<'a>,
}

impl Pause {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let before = standing(&jobs, &self.queue).await?;
        jobs.operate().pause(&self.queue, &self.by, &self.reason).await?;
        let Some(stands) = standing(&jobs, &self.queue).await? else {
            let queue = &self.queue;
            return Err(Failure::finding(format!(
                "{queue} was resumed by somebody else meanwhile"
            )));
        };
        let was_paused = before.is_some_and(|before| before == stands);
        if cx.output.is_json {
            let (queue, paused) = (stands.queue.as_str(), PausedAnswer::of(&stands));
            json(&PauseAnswer { queue, was_paused, paused })?;
        } else if was_paused {
            let (queue, told) = (&self.queue, told(&stands));
            say(&format!("jobs: {queue} was paused already, {told}; that stays"));
        } else {
            say(&format!("jobs: {} is paused; `jobs resume` lets it go on", self.queue));
        }
        // A slip of the pen would leave the right queue running.
        let depth = jobs.inspect().depth(1).await?;
        if !depth.queues.iter().any(|known| known.queue == self.queue.as_str()) {
            say("jobs: it has no ready and no running jobs; `jobs queues` lists those that have");
        }
        Ok(())
    }
}

impl Resume {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let queue = &self.queue;
        let Some(paused) = standing(&jobs, queue).await? else {
            return Err(Failure::finding(format!("{queue} is not paused; see `jobs queues`")));
        };
        jobs.operate().resume(queue).await?;
        if cx.output.is_json {
            let was_paused = PausedAnswer::of(&paused);
            return json(&ResumeAnswer { queue: queue.as_str(), was_paused });
        }
        say(&format!("jobs: {queue} goes on; it was paused {}", told(&paused)));
        Ok(())
    }
}

/// The pause of a queue, where it is paused.
async fn standing(jobs: &Jobs, queue: &QueueName) -> Result<Option<Paused>> {
    let paused = jobs.inspect().paused().await?;
    Ok(paused.into_iter().find(|paused| paused.queue == queue.as_str()))
}

fn told(paused: &Paused) -> String {
    format!("by {} at {}: {}", paused.by, second(paused.at), paused.reason)
}
