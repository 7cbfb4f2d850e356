//! The waits, the fields of a unique key and what belongs to a schedule are checked where they stand.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "a", version = "1.0.0", retry = "1h..2s", expires_in = "soon")]
struct Waits;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "b", version = "1.0.0", unique("order", "ordr", "order"))]
struct Fields {
    order: u8,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "c", version = "1.0.0", unique("order"), catch_up = "latest")]
enum Cases {
    One,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "d", version = "1.0.0", schedule = "0 3 * * *", catch_up = "some")]
struct Missed;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "e", version = "1.0.0", cron = "0 3 * * *")]
struct Named;

fn main() {}
