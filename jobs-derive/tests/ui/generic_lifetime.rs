//! A job borrows nothing.

use jobs_core::Job;
use serde::Serialize;

#[derive(Serialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct Charge<'a>(&'a str);

fn main() {}
