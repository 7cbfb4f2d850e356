//! A past job has no policy: it is never enqueued.

use jobs_core::PastJob;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PastJob)]
#[job(kind = "billing.charge", version = "1.0.0", queue = "billing", aliases("old"))]
struct ChargeV1;

fn main() {}
