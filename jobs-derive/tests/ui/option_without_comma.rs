//! Options are separated by commas.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge" version = "1.0.0")]
struct Charge;

fn main() {}
