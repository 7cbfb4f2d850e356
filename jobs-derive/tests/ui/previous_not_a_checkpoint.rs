//! The past of a checkpoint is a checkpoint.

use jobs_core::Checkpoint;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct AtV1;

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "2.0.0", previous = AtV1)]
struct At;

impl From<AtV1> for At {
    fn from(_: AtV1) -> Self {
        Self
    }
}

fn main() {}
