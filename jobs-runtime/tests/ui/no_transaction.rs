//! A job is enqueued in a transaction of its database.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

fn post(jobs: &Jobs, tx: &mut String) {
    let _ = jobs.enqueue(Welcome).in_tx(tx);
}

fn main() {
    let _ = (post, App);
}
