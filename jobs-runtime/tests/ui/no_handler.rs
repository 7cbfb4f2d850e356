//! A job that is registered by its type has a handler.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

fn main() {
    let _ = Registry::<App>::new().job::<Welcome>();
}
