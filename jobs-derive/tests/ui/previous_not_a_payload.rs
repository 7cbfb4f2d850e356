//! A previous shape is a payload.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct ChargeV1;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.1.0", previous = ChargeV1)]
struct Charge;

impl From<ChargeV1> for Charge {
    fn from(_: ChargeV1) -> Self {
        Self
    }
}

fn main() {}
