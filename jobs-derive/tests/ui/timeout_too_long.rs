//! A time-out is at most 365 days.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", timeout = "8761h")]
struct Charge;

fn main() {}
