//! The budget counts failures, so it is one more than the retries.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", retries = 3)]
struct Charge;

fn main() {}
