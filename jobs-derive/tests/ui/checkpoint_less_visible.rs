//! A checkpoint is as visible as its job.

use jobs_core::{Checkpoint, Job};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct ExportAt;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", checkpoint = ExportAt)]
pub struct Charge;

fn main() {}
