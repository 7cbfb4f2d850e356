//! What an operator does at night, and what it costs the workers: looking, and a redrive.

use std::process::Stdio;
use std::time::Duration;

use jobs_runtime::store::{Filter, Span};
use jobs_runtime::{Jobs, State, Timestamp, Worker};
use tokio::process::Command;
use tokio::sync::oneshot;

use super::Result;
use super::app::{App, elapsed, handlers};
use super::floor::Rows;
use super::place::Place;
use super::scenario::Figures;

/// How long claims are counted before and after the redrive.
const WINDOW: Duration = Duration::from_secs(5);
/// A class of the dead letters that [`Rows::Dead`] makes ten of.
const CLASS: &str = "class3";
/// How many rows a page of a list has.
const PAGE: u32 = 100;

/// How long looks take over rows of all states, a quarter each; the slowest of three.
pub(crate) async fn look(place: &Place, rows: u64) -> Result<Figures> {
    let mut floor = place.floor().await?;
    for kind in [Rows::Finished, Rows::Dead, Rows::Future, Rows::Foreign] {
        floor.fill(kind, rows / 4).await?;
    }
    let jobs = Jobs::open(place.url()).await?;
    let inspect = jobs.inspect();
    let mut figures = Figures::default();
    let none = || Some("none".to_owned());
    let plain = Filter::default;
    let long_ago = Some(Timestamp::from_micros(0));
    let recent = Span { from: Some(Timestamp::from_micros(i64::MAX)), before: None };
    let lists = [
        ("list_ms", plain()),
        ("list_dead_ms", Filter { state: Some(State::Dead), ..plain() }),
        ("list_running_ms", Filter { state: Some(State::Running), ..plain() }),
        ("list_class_ms", Filter { class: Some(CLASS.to_owned()), ..plain() }),
        ("list_no_class_ms", Filter { class: none(), ..plain() }),
        ("list_no_kind_ms", Filter { kind: none(), ..plain() }),
        ("list_no_queue_ms", Filter { queue: none(), ..plain() }),
        ("list_no_writer_ms", Filter { enqueued_by: none(), ..plain() }),
        ("list_no_failer_ms", Filter { failed_by: none(), ..plain() }),
        ("list_not_enqueued_ms", Filter { enqueued: recent, ..plain() }),
        ("list_not_ended_ms", Filter { finished: recent, ..plain() }),
        (
            "list_not_dead_ms",
            Filter {
                state: Some(State::Dead),
                finished: Span { from: None, before: long_ago },
                ..plain()
            },
        ),
    ];
    for (name, filter) in &lists {
        figures.add(name, slowest(async || Ok(inspect.newest(filter, PAGE).await?)).await?);
    }
    let some = inspect.newest(&lists[1].1, 1).await?;
    let dead = some.first().ok_or("there are dead letters")?.id;
    let looks: [(&'static str, f64); 6] = [
        ("show_ms", slowest(async || Ok(inspect.job(dead).await?)).await?),
        ("stats_ms", slowest(async || Ok(inspect.depth(100_000).await?)).await?),
        ("stats_by_kind_ms", slowest(async || Ok(inspect.counts().await?)).await?),
        ("stranded_ms", slowest(async || Ok(inspect.waiting().await?)).await?),
        ("workers_ms", slowest(async || Ok(inspect.workers().await?)).await?),
        ("schedules_ms", slowest(async || Ok(jobs.schedules().await?)).await?),
    ];
    for (name, ms) in looks {
        figures.add(name, ms);
    }
    Ok(figures)
}

/// Of three times the slowest, in milliseconds.
async fn slowest<T>(look: impl AsyncFn() -> Result<T>) -> Result<f64> {
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let begun = elapsed();
        drop(look().await?);
        slowest = slowest.max(elapsed().saturating_sub(begun));
    }
    Ok(slowest.as_secs_f64() * 1e3)
}

/// The rate of a worker's claims while a tenth of the dead letters is brought back by the command line, and
/// before and after that.
pub(crate) async fn redrive(place: &Place, dead: u64, ready: u64) -> Result<Figures> {
    let mut floor = place.floor().await?;
    floor.fill(Rows::Dead, dead).await?;
    floor.fill(Rows::Ready, ready).await?;
    let jobs = Jobs::open(place.url()).await?;
    let (app, _ages) = App::new(u64::MAX, Duration::ZERO);
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(&jobs, handlers()?, app.clone()).concurrency(100);
    let working = async { Result::Ok(worker.run_until(async { drop(stopped.await) }).await?) };
    let measuring = async {
        let rate = async |span: Duration| {
            let (begun, before) = (elapsed(), app.handled());
            tokio::time::sleep(span).await;
            per_s(app.handled() - before, elapsed().saturating_sub(begun))
        };
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = rate(WINDOW).await;
        let (begun, handled) = (elapsed(), app.handled());
        bring_back(place).await?;
        let took = elapsed().saturating_sub(begun);
        let meanwhile = per_s(app.handled() - handled, took);
        let after = rate(WINDOW).await;
        drop(stop);
        if app.handled() >= ready {
            return Err("the waiting jobs came to their end: give more `--sustained`".into());
        }
        let mut figures = Figures::per_s(meanwhile);
        figures.add("of_alone", meanwhile * 2.0 / (before + after));
        figures.add("before_per_s", before);
        figures.add("after_per_s", after);
        figures.add("redriven_per_s", per_s(dead / 10, took));
        Result::Ok(figures)
    };
    let (_, figures) = tokio::try_join!(working, measuring)?;
    Ok(figures)
}

/// As an operator does it.
async fn bring_back(place: &Place) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["redrive", "--class", CLASS, "--yes"]).env("JOBS_URL", place.url());
    command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let status = command.status().await?;
    if status.success() { Ok(()) } else { Err("the redrive failed".into()) }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn per_s(count: u64, span: Duration) -> f64 {
    count as f64 / span.as_secs_f64()
}
