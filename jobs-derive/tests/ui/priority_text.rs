//! A priority is a number without quotes.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", priority = "5")]
struct Charge;

fn main() {}
