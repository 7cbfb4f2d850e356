//! A time-out has a unit.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", timeout = 30)]
struct Charge;

fn main() {}
