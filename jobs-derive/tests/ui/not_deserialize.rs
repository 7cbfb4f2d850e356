//! A payload can be read.

use jobs_core::Job;
use serde::Serialize;

#[derive(Serialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct Charge {
    order: i64,
}

fn main() {}
