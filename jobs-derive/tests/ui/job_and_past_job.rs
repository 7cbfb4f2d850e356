//! A type is one shape, not two.

use jobs_core::{Job, PastJob};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job, PastJob)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct Charge;

fn main() {}
