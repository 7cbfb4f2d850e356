//! The first minor of a major has no older reader.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.0.0", readable_by = "1.9")]
struct Charge;

fn main() {}
