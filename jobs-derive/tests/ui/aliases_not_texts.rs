//! Each alias is a text.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", aliases(billing.old_charge, "old", 5))]
struct Charge;

fn main() {}
