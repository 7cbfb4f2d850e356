//! The past of a job is of its kind or of one of its aliases.

use jobs_core::{Job, PastJob};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PastJob)]
#[job(kind = "billing.refund", version = "1.0.0")]
struct ChargeV1;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.0.0", previous = ChargeV1, aliases("billing.old"))]
struct Charge;

impl From<ChargeV1> for Charge {
    fn from(_: ChargeV1) -> Self {
        Self
    }
}

fn main() {}
