//! A priority fits its range whatever its size.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", priority = 99999999999999999999)]
struct Charge;

fn main() {}
