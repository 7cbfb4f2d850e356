//! A job that runs at most once has no second try.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", max_failures = 3, on_stop = "at_most_once")]
struct Charge;

fn main() {}
