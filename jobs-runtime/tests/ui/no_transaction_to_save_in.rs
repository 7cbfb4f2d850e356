//! A checkpoint is saved in a transaction of its database.

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

async fn save(cx: JobContext<App, At>, mut tx: String) -> Result<(), JobError> {
    cx.checkpoint_in(&mut tx, &At).await
}

fn main() {
    let _ = (save, Welcome);
}
