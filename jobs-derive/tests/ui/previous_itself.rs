//! A shape is not its own past.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.0.0", previous = Charge)]
struct Charge;

fn main() {}
