//! A job is enqueued by value.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

fn post(jobs: &Jobs, welcome: &Welcome) {
    let _ = jobs.enqueue(welcome);
}

fn main() {
    let _ = post;
}
