//! A job names its kind; one is proposed from the name of the type.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(version = "1.0.0")]
struct HTTPPing2;

fn main() {}
