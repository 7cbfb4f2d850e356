//! The crate is one that re-exports the framework.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", crate = "std")]
struct Charge;

fn main() {}
