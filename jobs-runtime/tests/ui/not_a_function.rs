//! A handler is a function, or a type that is registered as one.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

fn main() {
    let _ = Registry::<App>::new().handle(Welcome);
}
