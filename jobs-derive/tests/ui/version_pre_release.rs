//! A version has no pre-release part.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0-rc.1")]
struct Charge;

fn main() {}
