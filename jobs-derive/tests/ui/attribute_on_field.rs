//! Options go on the type, where they are read.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
enum Charge {
    #[job(queue = "slow")]
    Card {
        #[job(version = "1.0.0")]
        order: i64,
    },
}

fn main() {}
