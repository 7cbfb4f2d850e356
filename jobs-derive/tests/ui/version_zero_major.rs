//! There is no version 0.x.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "0.3.1")]
struct Charge;

fn main() {}
