//! An empty attribute is a missing one.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job]
struct Charge;

fn main() {}
