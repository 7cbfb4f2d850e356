//! The future of a handler can move to another thread.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

async fn send() {}

impl Handler<App> for Welcome {
    async fn run(self, _cx: JobContext<App>) -> Result<Outcome, JobError> {
        let name = std::rc::Rc::new(1);
        send().await;
        drop(name);
        Ok(Outcome::Done)
    }
}

fn main() {
    let _ = Registry::<App>::new().job::<Welcome>();
}
