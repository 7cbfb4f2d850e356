//! The old build of the rollout tests: it has never seen a note, nor a digest.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};
use tests::ledger::Ledger;

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "rollout.mail", version = "1.0.0")]
struct Mail {
    millis: u64,
}

async fn mail(job: Mail, cx: JobContext<Ledger>) -> Result<(), JobError> {
    tests::rollout::work(job.millis, &cx).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::rollout::run("old", Registry::new().handle(mail).build()?).await
}
