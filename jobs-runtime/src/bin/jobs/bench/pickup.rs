//! How soon an idle worker starts a job, from before its enqueue to the start of its handler.

use std::time::Duration;

use jobs_runtime::{Jobs, Worker};
use tokio::sync::oneshot;

use super::Result;
use super::app::{App, Stamp, handlers};
use super::child::Producer;
use super::floor::Rows;
use super::place::Place;
use super::scenario::{Figures, Side};

/// Far enough from each other that the worker has gone idle.
pub(crate) const SPACING: Duration = Duration::from_millis(23);

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
