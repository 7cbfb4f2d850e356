//! A job may fail at least once.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", max_failures = 0)]
struct Charge;

fn main() {}
