//! All that are enqueued are jobs.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

struct Letter;

fn post(jobs: &Jobs) {
    let _ = jobs.enqueue_all(vec![Letter]);
}

fn main() {
    let _ = (post, Welcome, App);
}
