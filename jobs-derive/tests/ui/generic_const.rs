//! A job has no const parameters.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct Charge<const N: usize>(String);

fn main() {}
