//! One compile tells every mistake, and no use of the type adds to them.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "Billing", version = 2.1, readable_by = "9.9", queue = "", quue = 1, priority = 500, timeout = 3, aliases(4))]
struct Charge;

fn enqueue(_: impl jobs_core::Job) {}

fn main() {
    enqueue(Charge);
    let _ = <Charge as jobs_core::Payload>::KIND;
}
