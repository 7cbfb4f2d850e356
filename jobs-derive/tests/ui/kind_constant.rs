//! A kind is written out: it must be readable where it is declared.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

const KIND: &str = "billing.charge";

#[derive(Serialize, Deserialize, Job)]
#[job(kind = KIND, version = "1.0.0")]
struct Charge;

fn main() {}
