//! A derive is for types.

#[derive(jobs_core::Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
fn charge() {}

fn main() {}
