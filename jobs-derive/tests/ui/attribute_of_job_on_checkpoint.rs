//! A checkpoint reads its own attribute.

use jobs_core::Checkpoint;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Checkpoint)]
#[job(version = "1.0.0")]
struct At;

fn main() {}
