//! Tokens that are no options are reported where they are.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(, kind == "billing.charge", version = "1.0.0" "more", queue = "a" = "b", (previous))]
struct Charge;

fn main() {}
