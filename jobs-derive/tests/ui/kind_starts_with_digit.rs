//! Each segment of a kind starts with a letter.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.2nd_charge", version = "1.0.0")]
struct Charge;

fn main() {}
