//! The smallest whole application: a job, its handler, a worker, and one job enqueued.
//!
//! `cargo run -p examples --bin quickstart`

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

/// What is stored. The kind and the version are its promise to other builds.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome {
    to: String,
}

impl Handler<()> for Welcome {
    async fn run(self, _cx: JobContext<()>) -> Result<Outcome, JobError> {
        println!("Welcome, {}!", self.to);
        Ok(Outcome::Done)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let jobs = Jobs::open(&format!("sqlite://{}/quickstart.db", folder.path().display())).await?;
    let id = jobs.enqueue(Welcome { to: "Ann".to_owned() }).await?.id();

    let handlers = Registry::new().job::<Welcome>().build()?;
    let until_welcomed = async {
        let ended = jobs.wait(id).await;
        println!("The job is {}.", ended.map_or("lost", |job| job.state.as_str()));
    };
    // An application runs until SIGTERM instead: `run_until_terminated`.
    Worker::new(&jobs, handlers, ()).run_until(until_welcomed).await?;
    Ok(())
}
