//! A limit of failures is not negative.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", max_failures = -1)]
struct Charge;

fn main() {}
