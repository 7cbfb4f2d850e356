//! A past job names its kind; the proposal leaves its number out.

use jobs_core::PastJob;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PastJob)]
#[job(version = "1.0.0")]
struct ChargeV1;

fn main() {}
