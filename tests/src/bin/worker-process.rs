//! A worker process for the tests: runs `test.work`, `test.spin`, `test.stay`, `test.die` and others until
//! it is told to stop.
//!
//! Set by its environment: `URL` of the store, `LEDGER`, `NAME`, `CONCURRENCY`, `LEASE_MS`,
//! `GRACE_MS`, `QUEUES` with commas between them, `BUILD`; `THREADS` of its runtime, 0 for one that runs on the main thread alone;
//! `SCHEMA` on a server; `SCHEDULE` by which it enqueues `test.work`, and `SCHEDULE_NAME`;
//! `CLOCK_AHEAD_MS`, by which its clock is wrong, and `CLOCK_STEP_MS`, by which SIGUSR1 steps it.
//! `GRACE_MS` gives way to `JOBS_GRACE_PERIOD`.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Clock, Schedule, SystemClock};
use rustix::process::{Signal, getpid, kill_process};
use tests::clock::WrongClock;
use tests::ledger::{self, Ledger};
use tests::{Die, Frail, Late, LateAt, Once, Spin, Stay, Staying, Work};
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

async fn die(_: Die, cx: JobContext<Ledger>) -> Result<(), JobError> {
    cx.state.tell("start", cx.id().0, cx.claim().0, now());
    kill_process(getpid(), Signal::KILL)?;
    std::future::pending().await
}

async fn frail(job: Frail, cx: JobContext<Ledger>) -> Result<(), JobError> {
    work(Work { millis: job.millis }, cx).await
}

async fn once(job: Once, cx: JobContext<Ledger>) -> Result<(), JobError> {
    work(Work { millis: job.millis }, cx).await
}

/// The first run spawns, outside of what its worker can end, a write that waits until the next run
/// has ended; the ledger then tells whether it was taken.
async fn late(job: Late, cx: JobContext<Ledger, LateAt>) -> Result<(), JobError> {
    let (id, claim, ledger) = (cx.id().0, cx.claim().0, cx.state.clone());
    ledger.tell("start", id, claim, now());
    if claim > 1 {
        cx.checkpoint(&LateAt { claim }).await?;
        ledger.tell("end", id, claim, now());
        return Ok(());
    }
    let path = std::env::var("LEDGER")?;
    let write = async move {
        let has_ended = || {
            let runs = ledger::read(Path::new(&path));
            runs[&id].values().any(|run| run.ended_us.is_some())
        };
        while !has_ended() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let answer = if job.finishes {
            finish_late(&cx).await
        } else {
            cx.checkpoint(&LateAt { claim }).await
        };
        let lost = answer.is_err_and(|error| error.to_string().contains("lost its claim"));
        eprintln!("a late write was answered: lost={lost}");
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "what this test needs is a task that nobody ends"
    )]
    drop(tokio::spawn(write));
    std::future::pending().await
}

async fn finish_late(cx: &JobContext<Ledger, LateAt>) -> Result<(), JobError> {
    if std::env::var("URL")?.starts_with("sqlite") {
        let mut tx = cx.jobs().begin::<sqlx::Sqlite>().await?;
        cx.done_in(&mut tx).await?;
        tx.commit().await?;
    } else {
        let mut tx = cx.jobs().begin::<sqlx::Postgres>().await?;
        cx.done_in(&mut tx).await?;
        tx.commit().await?;
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
    let jobs = Jobs::builder()
        .build_label(std::env::var("BUILD").unwrap_or_else(|_| "worker-process".to_owned()))
        .clock(clock.clone());
    let jobs = match std::env::var("SCHEMA") {
        Ok(schema) => jobs.postgres(move |options| options.schema(schema.clone())),
        Err(_) => jobs,
    };
    let jobs = jobs.open(&std::env::var("URL")?).await?;
    let ledger = Ledger::open(Path::new(&std::env::var("LEDGER")?));
    let mut registry = Registry::new()
        .handle(work)
        .handle(spin)
        .handle(stay)
        .handle(die)
        .handle(frail)
        .handle(once)
        .handle(late);
    if let Ok(when) = std::env::var("SCHEDULE") {
        let name = std::env::var("SCHEDULE_NAME").unwrap_or_else(|_| "test.work".to_owned());
        registry = registry.schedule(Schedule::new(when, &Work { millis: 0 }).named(name));
    }
    let handlers = registry.build()?;
    let queues = std::env::var("QUEUES").unwrap_or_else(|_| "default".to_owned());
    let worker = Worker::new(&jobs, handlers, ledger);
    let worker = queues
        .split(',')
        .fold(worker, Worker::queue)
        .name(std::env::var("NAME")?)
        .concurrency(number("CONCURRENCY", 10))
        .lease(Duration::from_millis(number("LEASE_MS", 3_000)));
    let worker = match std::env::var("JOBS_GRACE_PERIOD") {
        Ok(_) => worker,
        Err(_) => worker.grace_period(Duration::from_millis(number("GRACE_MS", 10_000))),
    };
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
