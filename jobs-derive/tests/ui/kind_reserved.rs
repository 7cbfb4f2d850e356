//! Kinds of the framework are reserved.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "jobs.prune", version = "1.0.0")]
struct Charge;

fn main() {}
