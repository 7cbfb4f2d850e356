//! What is measured.

use std::time::Duration;

use clap::ValueEnum;
use jobs_runtime::{Jobs, Worker};
use tokio::sync::oneshot;

use super::app::{App, Stamp, elapsed, handlers};
use super::drain::{self, Drain};
use super::floor::Rows;
use super::place::Place;
use super::{Options, Result, Store, checkpoint, child, night, pickup, usage};

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// SQL written by hand.
    Floor,
    /// The framework.
    Framework,
}

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Scenario {
    /// One producer enqueues jobs one after another.
    EnqueueOne,
    /// One producer enqueues 1,000 jobs at a time.
    EnqueueBulk,
    /// A worker of 10 slots works off what waits.
    Drain10,
    /// As `drain10`, with 100 slots.
    Drain100,
    /// As `drain10`, with 1,000 slots.
    Drain1000,
    /// An idle worker and a producer in one process.
    Pickup,
    /// An idle worker and a producer in another process.
    PickupAcross,
    /// Jobs of a higher priority behind a standing backlog.
    Priority,
    /// Two workers of 50 slots and 800 jobs a second: most of their time they wait.
    Paced,
    /// As `paced`, while another connection holds a snapshot.
    PacedSnapshot,
    /// As `drain1000`, beside finished rows.
    BesideFinished,
    /// As `drain1000`, beside rows that are due in a day or later.
    BesideFuture,
    /// As `drain1000`, beside ready rows that nobody here reads.
    BesideForeign,
    /// As `drain1000`, over millions of jobs.
    Sustained,
    /// As `drain1000`, while another connection holds a snapshot.
    Snapshot,
    /// One process of 1,000 slots.
    Processes1,
    /// Four processes of 1,000 slots each.
    Processes4,
    /// Four processes that share the slots of one: 250 each, so that their batches are smaller too.
    Processes4Split,
    /// One run that saves checkpoints, against the same upsert of one row.
    Checkpoint,
    /// As `checkpoint`, where all but one in 5 s are put off: what such a call costs.
    CheckpointPutOff,
    /// A worker with nothing to do.
    Idle,
    /// Lists and counts over rows of all states.
    Look,
    /// A worker of 100 slots, before, while and after a tenth of the dead letters is brought back.
    BesideRedrive,
    /// The memory of a worker of 1,000 slots with many jobs waiting.
    Memory,
}

/// How much of each.
pub(crate) struct Sizes {
    drain: u64,
    one: usize,
    bulk: usize,
    pickups: usize,
    checkpoints: u32,
    rows: u64,
    sustained: u64,
    snapshot: u64,
    idle: Duration,
    paced: Duration,
}

impl Sizes {
    pub(crate) fn of(options: &Options) -> Self {
        let scale = |quick, whole| if options.quick { quick } else { whole };
        Self {
            drain: options.jobs.unwrap_or(scale(10_000, 20_000)),
            one: if options.quick { 1_000 } else { 5_000 },
            bulk: if options.quick { 50 } else { 200 },
            pickups: if options.quick { 40 } else { 200 },
            checkpoints: if options.quick { 1_000 } else { 5_000 },
            rows: options.rows,
            sustained: options.sustained,
            snapshot: 300_000.min(options.sustained),
            idle: Duration::from_secs(options.idle_seconds.unwrap_or(scale(10, 60))),
            paced: Duration::from_secs(options.paced_seconds.unwrap_or(scale(10, 60))),
        }
    }

    /// Larger batches are faster, and a drain should take about a second.
    fn drained(&self, concurrency: u32) -> u64 {
        match concurrency {
            0..100 => self.drain,
            100..1_000 => self.drain * 4,
            _ => self.drain * 10,
        }
    }
}

impl Scenario {
    /// What `--quick` measures.
    pub(crate) const QUICK: [Self; 9] = [
        Self::EnqueueOne,
        Self::EnqueueBulk,
        Self::Drain10,
        Self::Drain100,
        Self::Drain1000,
        Self::Pickup,
        Self::PickupAcross,
        Self::Checkpoint,
        Self::CheckpointPutOff,
    ];

    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// One measurement; `None` where a side has nothing to compare.
    pub(crate) async fn measure(
        self,
        side: Side,
        place: &Place,
        sizes: &Sizes,
    ) -> Result<Option<Figures>> {
        let beside = |rows| Drain {
            beside: Some((rows, sizes.rows)),
            ..Drain::plain(1_000, sizes.drained(1_000))
        };
        let plain = |concurrency| Drain::plain(concurrency, sizes.drained(concurrency));
        let drain = match self {
            Self::Drain10 => plain(10),
            Self::Drain100 => plain(100),
            Self::Drain1000 => plain(1_000),
            Self::BesideFinished => beside(Rows::Finished),
            Self::BesideFuture => beside(Rows::Future),
            Self::BesideForeign => beside(Rows::Foreign),
            Self::Sustained => Drain::plain(1_000, sizes.sustained),
            Self::Snapshot => {
                Drain { is_snapshot_held: true, ..Drain::plain(1_000, sizes.snapshot) }
            }
            Self::EnqueueOne => return enqueue(side, place, sizes.one, 1).await.map(Some),
            Self::EnqueueBulk => return enqueue(side, place, sizes.bulk, 1_000).await.map(Some),
            Self::Checkpoint => {
                return checkpoint::durable(side, place, sizes.checkpoints).await.map(Some);
            }
            Self::Pickup => return pickup::here(side, place, sizes.pickups).await.map(Some),
            Self::Processes1 if has_floors(side, place) => {
                return drain::floors(place, 1, 1_000, 2 * sizes.drained(1_000)).await.map(Some);
            }
            Self::Processes4 if has_floors(side, place) => {
                return drain::floors(place, 4, 1_000, 2 * sizes.drained(1_000)).await.map(Some);
            }
            Self::Processes4Split if has_floors(side, place) => {
                return drain::floors(place, 4, 250, 2 * sizes.drained(1_000)).await.map(Some);
            }
            Self::PickupAcross
            | Self::Priority
            | Self::Paced
            | Self::PacedSnapshot
            | Self::Processes1
            | Self::Processes4
            | Self::Processes4Split
            | Self::CheckpointPutOff
            | Self::Idle
            | Self::Look
            | Self::BesideRedrive
            | Self::Memory => match side {
                Side::Floor => return Ok(None),
                Side::Framework => return self.alone(place, sizes).await.map(Some),
            },
        };
        drain.measure(side, place).await.map(Some)
    }

    /// What only the framework does.
    async fn alone(self, place: &Place, sizes: &Sizes) -> Result<Figures> {
        let (rows, drained) = (sizes.rows, sizes.drained(1_000));
        match self {
            Self::PickupAcross => pickup::across(place, sizes.pickups).await,
            Self::Priority => pickup::over_backlog(place, rows, sizes.pickups).await,
            Self::Paced => pickup::paced(place, sizes.paced, false).await,
            Self::PacedSnapshot => pickup::paced(place, sizes.paced, true).await,
            Self::Processes1 => child::drain(place, 1, 1_000, 2 * drained, 2 * drained).await,
            Self::Processes4 => child::drain(place, 4, 1_000, 2 * drained, 2 * drained).await,
            Self::Processes4Split => child::drain(place, 4, 250, 2 * drained, 2 * drained).await,
            Self::CheckpointPutOff => checkpoint::put_off(place, 100 * sizes.checkpoints).await,
            Self::Look => night::look(place, rows).await,
            Self::BesideRedrive => night::redrive(place, rows, sizes.sustained).await,
            Self::Memory => child::drain(place, 1, 1_000, rows, rows / 2).await,
            _ => idle(place, sizes.idle).await,
        }
    }
}

/// Whether several floors drain a queue together here: those of one SQLite file would wait for its lock
/// most of the time.
fn has_floors(side: Side, place: &Place) -> bool {
    side == Side::Floor && place.store() == Store::Postgres
}

async fn enqueue(side: Side, place: &Place, calls: usize, at_once: usize) -> Result<Figures> {
    let stamps = vec![Stamp::UNTOLD; at_once];
    let mut floor = place.floor().await?;
    let jobs = Jobs::open(place.url()).await?;
    // Connections and statements are made before.
    floor.enqueue(&stamps).await?;
    jobs.enqueue_all(stamps.clone()).await?;
    let begun = elapsed();
    for _ in 0..calls {
        match (side, at_once) {
            (Side::Floor, _) => floor.enqueue(&stamps).await?,
            (Side::Framework, 1) => drop(jobs.enqueue(Stamp::UNTOLD).await?),
            (Side::Framework, _) => drop(jobs.enqueue_all(stamps.iter().copied()).await?),
        }
    }
    let took = elapsed().saturating_sub(begun).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    Ok(Figures::per_s((calls * at_once) as f64 / took))
}

/// A worker with nothing to do: what it asks of the database, and of the processor.
async fn idle(place: &Place, span: Duration) -> Result<Figures> {
    let mut floor = place.floor().await?;
    let jobs = Jobs::open(place.url()).await?;
    let (app, _ages) = App::new(u64::MAX, Duration::ZERO);
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(&jobs, handlers()?, app);
    let working = async {
        worker
            .run_until(async {
                drop(stopped.await);
            })
            .await?;
        Result::Ok(())
    };
    let watching = async {
        // A connection of the server that has nothing to do tells what it has done after ten seconds: what
        // the start took is not counted.
        tokio::time::sleep(Duration::from_secs(12)).await;
        let (commits, cpu) = (floor.commits().await?, usage::cpu());
        tokio::time::sleep(span).await;
        let mut figures = Figures::default();
        if let Some((after, before)) = floor.commits().await?.zip(commits) {
            #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
            figures.add("statements_per_s", (after - before) as f64 / span.as_secs_f64());
        }
        if let Some((after, before)) = usage::cpu().zip(cpu) {
            let used = after.saturating_sub(before).as_secs_f64();
            figures.add("cpu_ms_per_s", used * 1e3 / span.as_secs_f64());
        }
        drop(stop);
        Result::Ok(figures)
    };
    let ((), figures) = tokio::try_join!(working, watching)?;
    Ok(figures)
}

/// What one measurement gave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub(crate) per_s: Option<f64>,
    pub(crate) others: Vec<(&'static str, f64)>,
}

impl Figures {
    pub(crate) fn per_s(per_s: f64) -> Self {
        Self { per_s: Some(per_s), others: Vec::new() }
    }

    pub(crate) fn of_ages(mut ages: Vec<Duration>) -> Self {
        ages.sort_unstable();
        let at = |percent: usize| ages[(ages.len() * percent / 100).min(ages.len() - 1)];
        let ms = |age: Duration| age.as_secs_f64() * 1e3;
        Self { per_s: None, others: vec![("p50_ms", ms(at(50))), ("p99_ms", ms(at(99)))] }
    }

    pub(crate) fn add(&mut self, name: &'static str, value: f64) {
        self.others.push((name, value));
    }
}
