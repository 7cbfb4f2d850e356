//! The future of a handler function can move to another thread.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

async fn send() {}

async fn welcome(_job: Welcome, _cx: JobContext<App>) -> Result<(), JobError> {
    let name = std::rc::Rc::new(1);
    send().await;
    drop(name);
    Ok(())
}

fn main() {
    let _ = Registry::<App>::new().handle(welcome);
}
