//! A checkpoint is a type, not a text.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", checkpoint = "ExportAt")]
struct Charge;

fn main() {}
