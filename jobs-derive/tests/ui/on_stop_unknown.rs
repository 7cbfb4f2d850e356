//! A way to stop is one of four.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", on_stop = "wait")]
struct Charge;

fn main() {}
