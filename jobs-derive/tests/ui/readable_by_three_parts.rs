//! A reader has two parts.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.1.0", readable_by = "2.0.0")]
struct Charge;

fn main() {}
