//! A shape can be made from its past.

use jobs_core::{Job, PastJob};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PastJob)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct ChargeV1;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.1.0", previous = ChargeV1)]
struct Charge;

fn main() {}
