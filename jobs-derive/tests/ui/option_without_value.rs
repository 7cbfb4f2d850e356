//! An option has a value.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind, version = "1.0.0", queue = , timeout("30s"))]
struct Charge;

fn main() {}
