//! What the clock enqueues must come from somewhere.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "report.daily", version = "1.0.0", schedule = "0 3 * * *")]
struct Report {
    list: String,
}

fn main() {}
