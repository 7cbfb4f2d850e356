//! A job has no type parameters: one kind is one stored shape.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct Charge<T>(T);

fn main() {}
