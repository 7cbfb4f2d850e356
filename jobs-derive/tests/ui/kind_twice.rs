//! An option is written once, over all attributes.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", kind = "billing.refund", version = "1.0.0")]
#[job(version = "1.0.1")]
struct Charge;

fn main() {}
