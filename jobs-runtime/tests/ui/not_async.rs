//! A handler function is async.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

fn welcome(_job: Welcome, _cx: JobContext<App>) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    let _ = Registry::<App>::new().handle(welcome);
}
