//! Options are in parentheses.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job = "billing.charge"]
struct Charge;

fn main() {}
