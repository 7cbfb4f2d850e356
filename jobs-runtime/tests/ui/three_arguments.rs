//! A handler function takes two arguments.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

async fn welcome(_job: Welcome, _cx: JobContext<App>, _more: u8) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    let _ = Registry::<App>::new().handle(welcome);
}
