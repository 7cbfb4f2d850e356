//! A priority is from -100 to 100.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", priority = -101)]
struct Charge;

fn main() {}
