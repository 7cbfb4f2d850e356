//! How fast jobs that wait are worked off, and what stands beside them.

use std::time::Duration;

use jobs_runtime::{Jobs, Worker};
use tokio::task::JoinSet;

use super::Result;
use super::app::{App, elapsed, handlers};
use super::floor::{Rows, Tenths};
use super::place::Place;
use super::scenario::{Figures, Side};
use super::usage;

/// How often it is looked how far a worker is: seldom, since the look is paid for by what is measured.
const TENTH_LOOK: Duration = Duration::from_millis(5);

/// What a drain finds.
#[derive(Clone, Copy)]
pub(crate) struct Drain {
    pub(crate) concurrency: u32,
    pub(crate) jobs: u64,
    pub(crate) beside: Option<(Rows, u64)>,
    pub(crate) is_snapshot_held: bool,
}

impl Drain {
    pub(crate) fn plain(concurrency: u32, jobs: u64) -> Self {
        Self { concurrency, jobs, beside: None, is_snapshot_held: false }
    }

    /// Fills the place and drains it by one side.
    pub(crate) async fn measure(self, side: Side, place: &Place) -> Result<Figures> {
        let mut floor = place.floor().await?;
        if let Some((rows, count)) = self.beside {
            floor.fill(rows, count).await?;
        }
        floor.fill(Rows::Ready, self.jobs).await?;
        let held = if self.is_snapshot_held { Some(floor.hold_snapshot().await?) } else { None };
        let cpu = usage::cpu();
        let ends = match side {
            Side::Floor => floor.drain(self.concurrency, self.jobs).await?,
            Side::Framework => framework(place, self.concurrency, self.jobs).await?,
        };
        let used = usage::cpu().zip(cpu).map(|(after, before)| after.saturating_sub(before));
        drop(held);
        Ok(figures(self.jobs, &ends, used))
    }
}

/// So many floors drain a queue together, as workers of several processes do; `count` jobs are measured.
pub(crate) async fn floors(place: &Place, floors: u32, batch: u32, count: u64) -> Result<Figures> {
    // A floor ends with a batch that it has claimed and not completed, and steps over what others hold.
    let surplus = 8 * u64::from(floors * batch);
    place.floor().await?.fill(Rows::Ready, count + surplus).await?;
    let mut draining = JoinSet::new();
    let begun = elapsed();
    for _ in 0..floors {
        let mut floor = place.floor().await?;
        let share = count / u64::from(floors);
        draining.spawn(async move { floor.drain(batch, share).await.map_err(|e| e.to_string()) });
    }
    while let Some(drained) = draining.join_next().await {
        drained??;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let per_s = count as f64 / elapsed().saturating_sub(begun).as_secs_f64();
    Ok(Figures::per_s(per_s))
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn figures(jobs: u64, ends: &[Duration], used: Option<Duration>) -> Figures {
    let jobs = jobs as f64;
    let (first, last) = (ends[0], ends[9]);
    let last_tenth = last.saturating_sub(ends[8]);
    let mut figures = Figures::per_s(jobs / last.as_secs_f64());
    figures.add("last_tenth_of_first", first.as_secs_f64() / last_tenth.as_secs_f64());
    if let Some(used) = used {
        figures.add("cpu_us_per_job", used.as_secs_f64() * 1e6 / jobs);
    }
    figures
}

/// The ends of the tenths of a drain by a worker, from before it is made until it has left.
async fn framework(place: &Place, concurrency: u32, count: u64) -> Result<Vec<Duration>> {
    let mut tenths = Tenths::begin(count);
    let jobs = Jobs::open(place.url()).await?;
    let (app, _ages) = App::new(count, Duration::ZERO);
    let begun = elapsed();
    let worker = Worker::new(&jobs, handlers()?, app.clone()).concurrency(concurrency as usize);
    let mut working = std::pin::pin!(worker.run_until({
        let app = app.clone();
        async move { app.done().await }
    }));
    loop {
        match tokio::time::timeout(TENTH_LOOK, &mut working).await {
            Ok(report) => {
                let report = report?;
                assert_eq!(report.settled, count, "every job of the drain is settled once");
                let mut ends = tenths.ends();
                ends.truncate(9);
                ends.push(elapsed().saturating_sub(begun));
                return Ok(ends);
            }
            Err(_) => tenths.note(app.handled().min(count - 1)),
        }
    }
}
