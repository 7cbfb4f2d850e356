//! The units of time-outs are ms, s, m, h and d.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", timeout = "2 days")]
struct Charge;

fn main() {}
