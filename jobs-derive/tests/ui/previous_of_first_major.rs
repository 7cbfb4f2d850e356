//! Major 1 has no past.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.1.0", previous = ChargeV0)]
struct Charge;

fn main() {}
