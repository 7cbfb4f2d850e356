//! The error of an upcast can be shown.

use jobs_core::{Job, PastJob};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PastJob)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct ChargeV1;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.1.0", previous = ChargeV1)]
struct Charge;

struct Silent;

impl TryFrom<ChargeV1> for Charge {
    type Error = Silent;

    fn try_from(_: ChargeV1) -> Result<Self, Silent> {
        Err(Silent)
    }
}

fn main() {}
