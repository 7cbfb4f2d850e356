//! A handler function takes a job.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

struct Letter;

async fn post(_job: Letter, _cx: JobContext<App>) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    let _ = (Registry::<App>::new().handle(post), Welcome);
}
