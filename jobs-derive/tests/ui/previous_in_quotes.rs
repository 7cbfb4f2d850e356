//! A previous shape is a type, not a text.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.0.0", previous = "ChargeV1")]
struct Charge;

fn main() {}
