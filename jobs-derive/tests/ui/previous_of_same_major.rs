//! The past of a job has an older major.

use jobs_core::{Job, PastJob};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PastJob)]
#[job(kind = "billing.charge", version = "2.0.0")]
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
