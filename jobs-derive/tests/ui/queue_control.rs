//! A queue has no control characters.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", queue = "a\0b")]
struct Charge;

fn main() {}
