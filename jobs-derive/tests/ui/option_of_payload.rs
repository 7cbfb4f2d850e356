//! A checkpoint has no kind and no policy.

use jobs_core::Checkpoint;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(kind = "billing.charge", version = "1.0.0", timeout = "30s")]
struct At;

fn main() {}
