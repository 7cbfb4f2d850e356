//! The new build of the rollout tests: its mail has another shape, and there is a new kind.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};
use tests::ledger::Ledger;

#[derive(Debug, Serialize, Deserialize, PastJob)]
#[job(kind = "rollout.mail", version = "1.0.0")]
struct MailV1 {
    millis: u64,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "rollout.mail", version = "2.0.0", previous = MailV1)]
struct Mail {
    micros: u64,
    note: String,
}

impl From<MailV1> for Mail {
    fn from(past: MailV1) -> Self {
        Self { micros: past.millis * 1_000, note: String::new() }
    }
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "rollout.digest", version = "1.0.0")]
struct Digest {
    millis: u64,
}

async fn mail(job: Mail, cx: JobContext<Ledger>) -> Result<(), JobError> {
    assert!(job.note.is_empty() || job.note.starts_with("note "), "{}", job.note);
    tests::rollout::work(job.micros / 1_000, &cx).await;
    Ok(())
}

async fn digest(job: Digest, cx: JobContext<Ledger>) -> Result<(), JobError> {
    tests::rollout::work(job.millis, &cx).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::rollout::run("new", Registry::new().handle(mail).handle(digest).build()?).await
}
