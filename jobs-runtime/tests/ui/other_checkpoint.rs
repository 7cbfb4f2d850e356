//! A handler function saves the checkpoint that its job names.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At;

async fn welcome(_job: Welcome, _cx: JobContext<App, At>) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    let _ = Registry::<App>::new().handle(welcome);
}
