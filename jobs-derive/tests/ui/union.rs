//! A union can't be stored.

use jobs_core::Job;

#[derive(Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
union Charge {
    order: i64,
    other: u64,
}

fn main() {}
