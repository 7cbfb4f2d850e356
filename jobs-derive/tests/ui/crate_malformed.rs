//! The crate is a path.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", crate = "not a path")]
struct Charge;

fn main() {}
