//! A version is not a range.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "^1.2.0")]
struct Charge;

fn main() {}
