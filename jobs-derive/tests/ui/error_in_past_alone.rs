//! The mistake of a past shape is not repeated by the shape that follows.

use jobs_core::{Job, PastJob};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PastJob)]
#[job(kind = "billing charge", version = "7.1")]
struct ChargeV1;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.0.0", previous = ChargeV1)]
struct Charge;

impl From<ChargeV1> for Charge {
    fn from(_: ChargeV1) -> Self {
        Self
    }
}

fn main() {}
