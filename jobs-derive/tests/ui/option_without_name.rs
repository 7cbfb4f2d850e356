//! A value has a name.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job("billing.charge", version = "1.0.0", kind = "billing.charge")]
struct Charge;

fn main() {}
