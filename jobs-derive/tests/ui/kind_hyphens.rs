//! The likely form of a kind with hyphens has underscores.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing/send-invoice", version = "1.0.0")]
struct Charge;

fn main() {}
