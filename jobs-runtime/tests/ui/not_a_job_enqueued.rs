//! What is enqueued is a job.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

struct Letter;

fn post(jobs: &Jobs) {
    let _ = jobs.enqueue(Letter);
}

fn main() {
    let _ = (post, Welcome, App);
}
