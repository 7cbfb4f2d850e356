//! A kind is not a Rust path, and its likely form is shown.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "Billing::HTTPCharge", version = "1.0.0")]
struct Charge;

fn main() {}
