//! Only readers of its own major can be vouched for.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.1.0", readable_by = "1.4")]
struct Charge;

fn main() {}
