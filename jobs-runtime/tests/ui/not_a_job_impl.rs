//! A handler is of a job.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

struct Letter;

impl Handler<App> for Letter {
    async fn run(self, _cx: JobContext<App>) -> Result<Outcome, JobError> {
        Ok(Outcome::Done)
    }
}

fn main() {
    let _ = Welcome;
}
