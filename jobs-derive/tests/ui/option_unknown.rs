//! An option that nothing is near to lists what there is.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", colour = "red")]
struct Charge;

fn main() {}
