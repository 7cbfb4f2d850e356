//! The new build: its welcome has a locale that old readers must not drop, and there is a new kind.
//! `mixed-new DB`

use std::time::Duration;

use jobs_runtime::State;
use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Job)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[job(kind = "mail.welcome", version = "1.1.0")]
struct Welcome {
    to: String,
    #[serde(default)]
    locale: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[job(kind = "mail.digest", version = "1.0.0")]
struct Digest {
    to: String,
}

/// A long job, whose runs take turns with those of the old build.
#[derive(Debug, Serialize, Deserialize, Job)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[job(kind = "reports.walk", version = "1.0.0", checkpoint = Taken)]
struct Walk {
    steps: u32,
}

/// Old builds resume from it: what they don't know of it may be lost.
#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[checkpoint(version = "1.1.0", readable_by = "1.0")]
struct Taken {
    steps: u32,
    #[serde(default)]
    note: Option<String>,
}

impl Handler<()> for Walk {
    async fn run(self, mut cx: JobContext<(), Taken>) -> Result<Outcome, JobError> {
        let mut at = cx.resume_or(Taken { steps: 0, note: None });
        for _ in 0..5 {
            at = Taken { steps: at.steps + 1, note: Some("by the new build".to_owned()) };
            println!("new build took step {}", at.steps);
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
        let locale = self.locale.unwrap_or_else(|| "no locale".to_owned());
        println!("new build ran mail.welcome for {} in {locale}", self.to);
        Ok(Outcome::Done)
    }
}

impl Handler<()> for Digest {
    async fn run(self, _cx: JobContext<()>) -> Result<Outcome, JobError> {
        println!("new build ran mail.digest for {}", self.to);
        Ok(Outcome::Done)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "sqlite://mixed.db".to_owned());
    let jobs = Jobs::builder().build_label("mixed 1.1.0").open(&url).await?;
    let welcome = |n| Welcome { to: format!("new-{n}"), locale: Some("de".to_owned()) };
    jobs.enqueue_all((0..20).map(welcome)).await?;
    jobs.enqueue_all((0..20).map(|n| Digest { to: format!("digest-{n}") })).await?;
    // The old build alone works first, and gives back what it can't read.
    until_refused(&jobs).await?;
    // From here on both work, and take turns at this one.
    jobs.enqueue(Walk { steps: 200 }).await?;
    let handlers = Registry::new().job::<Welcome>().job::<Digest>().job::<Walk>().build()?;
    let worker = Worker::new(&jobs, handlers, ()).name("new");
    let report = worker.run_until(until_all_ended(&jobs)).await?;
    println!("new build left: {} settled, {} released", report.settled, report.released);
    for count in jobs.inspect().counts().await? {
        println!("{} {} {}: {}", count.kind, count.version, count.state, count.jobs);
    }
    Ok(())
}

/// Waits until the old build has refused one job of each of the new routes.
async fn until_refused(jobs: &Jobs) -> anyhow::Result<()> {
    while jobs.store().refused_routes().await?.len() < 2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn until_all_ended(jobs: &Jobs) {
    let is_over = async || {
        let counts = jobs.inspect().counts().await.unwrap_or_default();
        let ended = counts.iter().filter(|count| count.state == State::Succeeded);
        ended.map(|count| count.jobs).sum::<u64>() == 61
    };
    while !is_over().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
