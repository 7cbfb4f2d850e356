//! How soon an idle worker starts a job, from before its enqueue to the start of its handler.

use std::time::Duration;

use jobs_runtime::{Jobs, Worker};
use tokio::sync::{oneshot, watch};

use super::Result;
use super::app::{App, Stamp, handlers};
use super::child::Producer;
use super::floor::Rows;
use super::place::Place;
use super::scenario::{Figures, Side};

/// Far enough from each other that the worker has gone idle.
pub(crate) const SPACING: Duration = Duration::from_millis(23);
/// How often jobs come at a steady pace, and how many: 800 a second.
const PACE: Duration = Duration::from_millis(10);
const AT_ONCE: usize = 8;

/// Enqueues in this process.
pub(crate) async fn here(side: Side, place: &Place, count: usize) -> Result<Figures> {
    let ages = match side {
        Side::Floor => place.floor().await?.pickups(count, SPACING).await?,
        Side::Framework => {
            let jobs = Jobs::open(place.url()).await?;
            let producer = async {
                for _ in 0..count {
                    tokio::time::sleep(SPACING).await;
                    jobs.enqueue(Stamp::now()).await?;
                }
                Result::Ok(())
            };
            picked_up(&jobs, producer, count, Duration::ZERO, 10).await?
        }
    };
    Ok(Figures::of_ages(ages))
}

/// Enqueues in another process.
pub(crate) async fn across(place: &Place, count: usize) -> Result<Figures> {
    let jobs = Jobs::open(place.url()).await?;
    let producer = async { Producer::start(place.url(), count)?.end().await };
    Ok(Figures::of_ages(picked_up(&jobs, producer, count, Duration::ZERO, 10).await?))
}

/// Enqueues jobs of a higher priority behind a backlog that never ends.
pub(crate) async fn over_backlog(place: &Place, waiting: u64, count: usize) -> Result<Figures> {
    place.floor().await?.fill(Rows::Ready, waiting).await?;
    let jobs = Jobs::open(place.url()).await?;
    let producer = async {
        for _ in 0..count {
            tokio::time::sleep(5 * SPACING).await;
            jobs.enqueue(Stamp::now()).priority(10).await?;
        }
        Result::Ok(())
    };
    let pause = Duration::from_millis(2);
    Ok(Figures::of_ages(picked_up(&jobs, producer, count, pause, 100).await?))
}

/// Two workers and jobs that come at a steady pace: how soon they start in the first and in the last tenth
/// of the time.
pub(crate) async fn paced(place: &Place, span: Duration, holds_snapshot: bool) -> Result<Figures> {
    let held =
        if holds_snapshot { Some(place.floor().await?.hold_snapshot().await?) } else { None };
    let rounds = usize::try_from(span.as_millis() / PACE.as_millis())?.max(10);
    let jobs = Jobs::open(place.url()).await?;
    let other = Jobs::open(place.url()).await?;
    let (app, mut heard) = App::new(u64::MAX, Duration::ZERO);
    let (stop, until) = watch::channel(());
    let work = async |jobs: &Jobs| {
        let mut until = until.clone();
        let worker = Worker::new(jobs, handlers()?, app.clone()).concurrency(50);
        // The sender is dropped in the end.
        worker.run_until(async move { drop(until.changed().await) }).await?;
        Result::Ok(())
    };
    let produce = async {
        let mut ticks = tokio::time::interval(PACE);
        let mut ages = Vec::with_capacity(rounds * AT_ONCE);
        for _ in 0..rounds {
            ticks.tick().await;
            jobs.enqueue_all([Stamp::now(); AT_ONCE]).await?;
            while let Ok(age) = heard.try_recv() {
                ages.push(age);
            }
        }
        while ages.len() < rounds * AT_ONCE {
            ages.push(heard.recv().await.ok_or("the workers ended early")?);
        }
        drop(stop);
        Result::Ok(ages)
    };
    let ((), (), mut ages) = tokio::try_join!(work(&jobs), work(&other), produce)?;
    drop(held);
    let tenth = ages.len() / 10;
    let last = Figures::of_ages(ages.split_off(ages.len() - tenth));
    ages.truncate(tenth);
    let mut figures = last;
    for ((_, value), name) in
        Figures::of_ages(ages).others.into_iter().zip(["first_p50_ms", "first_p99_ms"])
    {
        figures.add(name, value);
    }
    Ok(figures)
}

/// The ages of stamped jobs at the start of their handlers.
async fn picked_up(
    jobs: &Jobs,
    producer: impl Future<Output = Result<()>>,
    count: usize,
    pause: Duration,
    concurrency: usize,
) -> Result<Vec<Duration>> {
    let (app, mut heard) = App::new(u64::MAX, pause);
    let (stop, until) = oneshot::channel::<()>();
    let worker = Worker::new(jobs, handlers()?, app).concurrency(concurrency);
    let work = async {
        worker
            .run_until(async {
                drop(until.await);
            })
            .await?;
        Result::Ok(())
    };
    let measure = async {
        // The worker has registered and gone idle by then.
        tokio::time::sleep(10 * SPACING).await;
        producer.await?;
        let mut ages = Vec::with_capacity(count);
        while ages.len() < count {
            ages.push(heard.recv().await.ok_or("the worker ended early")?);
        }
        drop(stop);
        Result::Ok(ages)
    };
    let ((), ages) = tokio::try_join!(work, measure)?;
    Ok(ages)
}
