//! The old build: it has never seen a locale, nor a digest. `mixed-old DB`

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Job)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome {
    to: String,
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
    let handlers = Registry::new().job::<Welcome>().build()?;
    let report = Worker::new(&jobs, handlers, ()).name("old").run_until_terminated().await?;
    println!("old build left: {} settled, {} released", report.settled, report.released);
    Ok(())
}
