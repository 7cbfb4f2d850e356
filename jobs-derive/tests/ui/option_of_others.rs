//! Options of other job systems are translated.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", max_attempts = 3, min_reader = "1.0")]
struct Charge;

fn main() {}
