//! `jobs bench`: what the framework costs over SQL written by hand.
//!
//! 1. Floor and framework do the same work on the same schema, the same rows and the same kind of
//!    disk, in turn within one run, so that a ratio survives a noisy machine.
//! 2. The floor claims and completes in the same lanes and batches as a worker does: a slot is free
//!    when its handler returns, and at most one batch waits for its settlement. It fences what it
//!    writes by the claim number, as whoever must not write twice does; it has no lease, no history
//!    and no handler but the decoding of the payload.
//! 3. It works in databases of its own and removes them: a file in a temporary folder, and databases
//!    named `jobs_bench_…` on the server.

mod app;
mod checkpoint;
pub(crate) mod child;
mod drain;
mod floor;
mod floor_postgres;
mod floor_sqlite;
mod night;
mod pickup;
mod place;
mod report;
mod scenario;
mod usage;

use std::error::Error;

use clap::{Args, ValueEnum};

use self::place::{Place, Server};
use self::report::Report;
use self::scenario::{Scenario, Side, Sizes};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A database that jobs are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// The embedded store.
    Sqlite,
    /// The store for fleets; needs `--url`.
    Postgres,
}

impl Store {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// What is measured, and how.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only this store; may be repeated. Default: SQLite, and PostgreSQL where `--url` is given.
    #[arg(long, value_enum)]
    store: Vec<Store>,
    /// The PostgreSQL server, as `postgres://…`, by a role that may create databases.
    #[arg(long)]
    url: Option<String>,
    /// Only this scenario; may be repeated. Default: all, or with `--quick` the short ones.
    #[arg(long, value_enum)]
    scenario: Vec<Scenario>,
    /// Only this side, for a profiler: then there are no ratios.
    #[arg(long, value_enum)]
    side: Option<Side>,
    /// How often each scenario is measured; the medians are printed. Default: 5, quick 3.
    #[arg(long)]
    rounds: Option<usize>,
    /// The short scenarios with few jobs: about two minutes.
    #[arg(long)]
    quick: bool,
    /// Rows as JSON, one a line.
    #[arg(long)]
    json: bool,
    /// How many jobs a drain takes, for each 100 of its concurrency up to 1,000.
    #[arg(long)]
    jobs: Option<u64>,
    /// How many finished, future, foreign or waiting rows there are beside.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How many jobs the sustained drain takes.
    #[arg(long, default_value_t = 2_000_000)]
    sustained: u64,
    /// How long an idle worker is watched.
    #[arg(long)]
    idle_seconds: Option<u64>,
    /// For how long jobs come at a steady pace.
    #[arg(long)]
    paced_seconds: Option<u64>,
}

/// Measures and prints.
pub(crate) async fn run(options: Options) -> Result<()> {
    let stores = match (options.store.is_empty(), &options.url) {
        (false, _) => options.store.clone(),
        (true, None) => vec![Store::Sqlite],
        (true, Some(_)) => vec![Store::Sqlite, Store::Postgres],
    };
    let scenarios = match (options.scenario.is_empty(), options.quick) {
        (false, _) => options.scenario.clone(),
        (true, false) => Scenario::value_variants().to_vec(),
        (true, true) => Scenario::QUICK.to_vec(),
    };
    let rounds = options.rounds.unwrap_or(if options.quick { 3 } else { 5 }).max(1);
    let sizes = Sizes::of(&options);
    let mut report = Report::new(options.json);
    for store in stores {
        let server = Server::of(store, options.url.as_deref())?;
        for scenario in &scenarios {
            let (mut floor, mut framework) = (Vec::new(), Vec::new());
            for round in 0..rounds {
                let mut order = [Side::Floor, Side::Framework];
                // Whoever comes second finds a warmer machine.
                order.rotate_left(round % 2);
                for side in
                    order.into_iter().filter(|side| options.side.is_none_or(|only| only == *side))
                {
                    let place = Place::make(&server).await?;
                    let answer = scenario.measure(side, &place, &sizes).await;
                    place.remove().await?;
                    match (side, answer?) {
                        (_, None) => {}
                        (Side::Floor, Some(figures)) => floor.push(figures),
                        (Side::Framework, Some(figures)) => framework.push(figures),
                    }
                }
            }
            report.add(store, *scenario, &floor, &framework);
        }
    }
    report.finish();
    Ok(())
}
