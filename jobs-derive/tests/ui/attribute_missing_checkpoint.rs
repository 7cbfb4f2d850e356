//! A checkpoint has its attribute.

use jobs_core::Checkpoint;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Checkpoint)]
struct At;

fn main() {}
