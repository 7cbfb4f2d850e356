//! The old build: it has never seen a locale, nor a digest. `mixed-old DB`

use std::time::Duration;

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Job)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome {
    to: String,
}

/// A long job, whose runs take turns with those of the new build.
#[derive(Debug, Serialize, Deserialize, Job)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[job(kind = "reports.walk", version = "1.0.0", checkpoint = Taken)]
struct Walk {
    steps: u32,
}

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[checkpoint(version = "1.0.0")]
struct Taken {
    steps: u32,
}

impl Handler<()> for Walk {
    async fn run(self, mut cx: JobContext<(), Taken>) -> Result<Outcome, JobError> {
        let mut at = cx.resume_or(Taken { steps: 0 });
        for _ in 0..5 {
            at.steps += 1;
            println!("old build took step {}", at.steps);
            cx.checkpoint(&at).await?;
            if at.steps == self.steps {
                return Ok(Outcome::Done);
            }
        }
        // For a moment, so that either build may be the one that goes on.
        Ok(Outcome::Snooze(Duration::from_millis(50)))
    }
}

impl Handler<()> for Welcome {
    async fn run(self, _cx: JobContext<()>) -> Result<Outcome, JobError> {
        println!("old build ran mail.welcome for {}", self.to);
        Ok(Outcome::Done)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "sqlite://mixed.db".to_owned());
    let jobs = Jobs::builder().build_label("mixed 1.0.0").open(&url).await?;
    jobs.enqueue_all((0..20).map(|n| Welcome { to: format!("old-{n}") })).await?;
    let handlers = Registry::new().job::<Welcome>().job::<Walk>().build()?;
    let report = Worker::new(&jobs, handlers, ()).name("old").run_until_terminated().await?;
    println!("old build left: {} settled, {} released", report.settled, report.released);
    Ok(())
}
