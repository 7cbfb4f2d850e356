//! A payload can be written.

use jobs_core::Job;
use serde::Deserialize;

#[derive(Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct Charge {
    order: i64,
}

fn main() {}
