//! A state can be cloned: each run has its own.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

struct Connection;

async fn welcome(_job: Welcome, _cx: JobContext<Connection>) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    drop((Registry::<Connection>::new().handle(welcome), App));
}
