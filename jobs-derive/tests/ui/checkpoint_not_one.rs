//! The checkpoint of a job is a checkpoint.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct ExportAt;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0", checkpoint = ExportAt)]
struct Charge;

fn main() {}
