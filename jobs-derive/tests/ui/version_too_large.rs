//! A number of a version fits 32 bits.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "4294967296.0.0")]
struct Charge;

fn main() {}
