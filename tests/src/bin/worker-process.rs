//! A worker process for the tests: runs `test.work` and `test.stay` until it is told to stop.
//!
//! Set by its environment: `URL` of the store, `LEDGER`, `NAME`, `CONCURRENCY`, `LEASE_MS`,
//! `GRACE_MS`, `QUEUE`, `RUNTIME` (`current-thread` or, by default, several).

use std::path::Path;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Clock, SystemClock};
use tests::ledger::Ledger;
use tests::{Stay, Staying, Work};

async fn work(job: Work, cx: JobContext<Ledger>) -> Result<(), JobError> {
    let now = || SystemClock.now().as_micros();
    cx.state.tell("start", cx.id().0, cx.claim().0, now());
    tokio::time::sleep(Duration::from_millis(job.millis)).await;
    cx.state.tell("end", cx.id().0, cx.claim().0, now());
    Ok(())
}

async fn stay(job: Stay, cx: JobContext<Ledger>) -> Result<(), JobError> {
    cx.state.tell("start", cx.id().0, cx.claim().0, SystemClock.now().as_micros());
    match job.how {
        Staying::Cooperative => {
            cx.stopping().await;
            cx.check().await?;
        }
        Staying::Deaf => std::future::pending().await,
        Staying::Spinning => loop {
            std::hint::spin_loop();
        },
        Staying::Blocking => {
            let block = || {
                loop {
                    std::thread::park();
                }
            };
            tokio::task::spawn_blocking(block).await?;
        }
    }
    Ok(())
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut runtime = match std::env::var("RUNTIME").as_deref() {
        Ok("current-thread") => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let name = std::env::var("NAME")?;
    let jobs = Jobs::builder().build_label("worker-process").open(&std::env::var("URL")?).await?;
    let ledger = Ledger::open(Path::new(&std::env::var("LEDGER")?));
    let handlers = Registry::new().handle(work).handle(stay).build()?;
    let queue = std::env::var("QUEUE").unwrap_or_else(|_| "default".to_owned());
    Worker::new(&jobs, handlers, ledger)
        .queue(queue)
        .name(name)
        .concurrency(usize::try_from(number("CONCURRENCY", 10))?)
        .lease(Duration::from_millis(number("LEASE_MS", 3_000)))
        .grace_period(Duration::from_millis(number("GRACE_MS", 10_000)))
        .run_until_terminated()
        .await?;
    Ok(())
}
