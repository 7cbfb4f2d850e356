//! `jobs pause` and `jobs resume`.

use clap::Args;

use super::Context;
use super::exit::{Failure, Result};
use super::output::say;
use crate::QueueName;

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

impl Pause {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        jobs.operate().pause(&self.queue, &self.by, &self.reason).await?;
        say(&format!("jobs: {} is paused; `jobs resume` lets it go on", self.queue));
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
        let paused = jobs.inspect().paused().await?;
        if !paused.iter().any(|paused| paused.queue == self.queue.as_str()) {
            let queue = &self.queue;
            return Err(Failure::finding(format!("{queue} is not paused; see `jobs queues`")));
        }
        jobs.operate().resume(&self.queue).await?;
        Ok(())
    }
}
