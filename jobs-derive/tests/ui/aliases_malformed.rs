//! An alias is a kind.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", aliases("Old", "jobs.x"))]
struct Charge;

fn main() {}
