//! A worker process for the tests: runs `test.work`, `test.spin` and `test.stay` until it is told
//! to stop.
//!
//! Set by its environment: `URL` of the store, `LEDGER`, `NAME`, `CONCURRENCY`, `LEASE_MS`,
//! `GRACE_MS`, `QUEUE`; `THREADS` of its runtime, 0 for one that runs on the main thread alone;
//! `SCHEMA` on a server; `SCHEDULE` by which it
//! enqueues `test.work`, and `SCHEDULE_NAME`; `CLOCK_AHEAD_MS`, by which its clock is wrong, and `CLOCK_STEP_MS`, by which SIGUSR1 steps it.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Clock, Schedule, SystemClock};
use tests::clock::WrongClock;
use tests::ledger::Ledger;
use tests::{Spin, Stay, Staying, Work};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The time by which the ledger is written: the right one, whatever this process believes.
fn now() -> i64 {
    SystemClock.now().as_micros()
}

async fn work(job: Work, cx: JobContext<Ledger>) -> Result<(), JobError> {
    cx.state.tell("start", cx.id().0, cx.claim().0, now());
    tokio::time::sleep(Duration::from_millis(job.millis)).await;
    cx.state.tell("end", cx.id().0, cx.claim().0, now());
    Ok(())
}

async fn spin(job: Spin, cx: JobContext<Ledger>) -> Result<(), JobError> {
    cx.state.tell("start", cx.id().0, cx.claim().0, now());
    let ends_at = SystemClock.elapsed() + Duration::from_millis(job.millis);
    while SystemClock.elapsed() < ends_at {
        std::hint::spin_loop();
    }
    cx.state.tell("end", cx.id().0, cx.claim().0, now());
    Ok(())
}

async fn stay(job: Stay, cx: JobContext<Ledger>) -> Result<(), JobError> {
    cx.state.tell("start", cx.id().0, cx.claim().0, now());
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

fn number<T: FromStr>(name: &str, default: T) -> T {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn main() -> Outcome {
    let runtime = match number("THREADS", 2) {
        0 => Builder::new_current_thread().enable_all().build(),
        threads => Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    runtime?.block_on(run())
}

async fn run() -> Outcome {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let clock = Arc::new(WrongClock::default());
    clock.step(number("CLOCK_AHEAD_MS", 0));
    let jobs = Jobs::builder().build_label("worker-process").clock(clock.clone());
    let jobs = match std::env::var("SCHEMA") {
        Ok(schema) => jobs.postgres(move |options| options.schema(schema.clone())),
        Err(_) => jobs,
    };
    let jobs = jobs.open(&std::env::var("URL")?).await?;
    let ledger = Ledger::open(Path::new(&std::env::var("LEDGER")?));
    let mut registry = Registry::new().handle(work).handle(spin).handle(stay);
    if let Ok(when) = std::env::var("SCHEDULE") {
        let name = std::env::var("SCHEDULE_NAME").unwrap_or_else(|_| "test.work".to_owned());
        registry = registry.schedule(Schedule::new(when, &Work { millis: 0 }).named(name));
    }
    let handlers = registry.build()?;
    let queue = std::env::var("QUEUE").unwrap_or_else(|_| "default".to_owned());
    let worker = Worker::new(&jobs, handlers, ledger)
        .queue(queue)
        .name(std::env::var("NAME")?)
        .concurrency(number("CONCURRENCY", 10))
        .lease(Duration::from_millis(number("LEASE_MS", 3_000)))
        .grace_period(Duration::from_millis(number("GRACE_MS", 10_000)));
    let mut steps = signal(SignalKind::user_defined1())?;
    let stepping = async {
        while steps.recv().await.is_some() {
            clock.step(number("CLOCK_STEP_MS", 0));
        }
    };
    tokio::select! {
        report = worker.run_until_terminated() => report.map(drop)?,
        () = stepping => unreachable!("signals never end"),
    }
    Ok(())
}
