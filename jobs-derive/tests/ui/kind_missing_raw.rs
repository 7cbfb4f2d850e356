//! A proposed kind has no `r#`.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(version = "1.0.0")]
#[expect(non_camel_case_types)]
struct r#move;

fn main() {}
