//! Aliases are written in parentheses.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", aliases = "billing.old_charge")]
struct Charge;

fn main() {}
