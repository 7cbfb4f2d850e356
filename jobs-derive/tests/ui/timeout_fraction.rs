//! A time-out is a whole number.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", timeout = "1.5s")]
struct Charge;

fn main() {}
