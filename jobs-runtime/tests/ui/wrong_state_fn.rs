//! A handler function is of the state of its registry.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

async fn welcome(_job: Welcome, _cx: JobContext<App>) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    let _ = Registry::<String>::new().handle(welcome);
}
