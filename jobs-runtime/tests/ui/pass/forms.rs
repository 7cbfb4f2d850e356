//! Every form of a handler, with the state named once at most.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct App;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.welcome", version = "1.0.0")]
struct Welcome;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "reports.export", version = "1.0.0", checkpoint = ExportAt)]
struct Export;

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct ExportAt;

impl Handler<App> for Welcome {
    async fn run(self, _cx: JobContext<App>) -> Result<Outcome, JobError> {
        Ok(Outcome::Done)
    }
}

impl Handler<App> for Export {
    async fn run(self, cx: JobContext<App, ExportAt>) -> Result<Outcome, JobError> {
        cx.checkpoint(&ExportAt).await?;
        Ok(Outcome::Done)
    }
}

async fn welcome(_: Welcome, cx: JobContext<App>) -> Result<(), JobError> {
    cx.check().await
}

async fn export(_: Export, mut cx: JobContext<App, ExportAt>) -> Result<Outcome, JobError> {
    let at = cx.resume_or(ExportAt);
    cx.checkpoint(&at).await?;
    Ok(Outcome::Done)
}

fn generic<S: Clone + Send + Sync + 'static>() -> Registry<S>
where
    Welcome: Handler<S>,
{
    Registry::new().job::<Welcome>()
}

fn main() {
    let _ = Registry::new().handle(welcome).handle(export).build();
    let _ = Registry::new().job::<Welcome>().handle(export).build();
    let _ = Registry::<App>::new().job::<Welcome>().job::<Export>().build();
    let _ = Registry::new()
        .handle(|_: Welcome, cx: JobContext<App>| async move {
            drop(cx.state);
            Ok(())
        })
        .handle(|_: Export, cx: JobContext<App, ExportAt>| async move {
            cx.checkpoint(&ExportAt).await?;
            Ok(Outcome::Done)
        })
        .build();
    let _ = generic::<App>().build();
    let registry: Registry<App> = Registry::new().job::<Welcome>();
    let _ = registry.handle(async |_: Export, _: JobContext<App, ExportAt>| Ok(())).build();
}
