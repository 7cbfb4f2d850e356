//! What the two builds of the rollout tests share: everything but their jobs.

use std::path::Path;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Clock, Handlers, SystemClock};

use crate::ledger::Ledger;

/// Works for a while, and tells the ledger of its start and its end.
pub async fn work<C>(millis: u64, cx: &JobContext<Ledger, C>) {
    let tell = |what| cx.state.tell(what, cx.id().0, cx.claim().0, SystemClock.now().as_micros());
    tell("start");
    tokio::time::sleep(Duration::from_millis(millis)).await;
    tell("end");
}

/// The process of one build: works until it is told to stop. Set by its environment, as
/// `worker-process` is: `URL`, `SCHEMA`, `LEDGER`, `NAME`.
///
/// # Errors
/// When the store can't be opened or a setting is missing.
pub async fn run(
    build: &str,
    handlers: Handlers<Ledger>,
) -> Result<(), Box<dyn std::error::Error>> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let jobs = Jobs::builder().build_label(build);
    let jobs = match std::env::var("SCHEMA") {
        Ok(schema) => jobs.postgres(move |options| options.schema(schema.clone())),
        Err(_) => jobs,
    };
    let jobs = jobs.open(&std::env::var("URL")?).await?;
    let ledger = Ledger::open(Path::new(&std::env::var("LEDGER")?));
    let worker = Worker::new(&jobs, handlers, ledger).name(std::env::var("NAME")?);
    worker.queue("default").run_until_terminated().await?;
    Ok(())
}
