//! A version has no leading zeros.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.01.0")]
struct Charge;

fn main() {}
