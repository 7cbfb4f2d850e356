//! A kind is not empty.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "", version = "1.0.0")]
struct Charge;

fn main() {}
