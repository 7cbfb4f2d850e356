//! A handler saves the checkpoint that its job names.

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

impl Handler<App> for Welcome {
    async fn run(self, _cx: JobContext<App, At>) -> Result<Outcome, JobError> {
        Ok(Outcome::Done)
    }
}

fn main() {
    let _ = Registry::<App>::new().job::<Welcome>();
}
