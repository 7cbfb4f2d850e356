//! A handler function takes the job first.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

async fn welcome(_cx: JobContext<App>, _job: Welcome) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    let _ = Registry::<App>::new().handle(welcome);
}
