//! The option that was meant is named.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", quue = "billing", max_failure = 3, readableby = "1.0")]
struct Charge;

fn main() {}
