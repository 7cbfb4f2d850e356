//! A version without quotes is shown with them.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = 2.1.0)]
struct Charge;

fn main() {}
