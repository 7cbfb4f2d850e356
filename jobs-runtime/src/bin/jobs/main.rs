//! `jobs`: the command line beside the library. This file only picks the command.

mod bench;
mod migrate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Jobs that survive deploys.
#[derive(Parser)]
#[command(name = "jobs", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compares the framework with hand-written SQL, side by side in one run.
    Bench(bench::Options),
    /// Brings a database to the schema of this build, or prints the SQL that does.
    Migrate(migrate::Options),
    /// A process of a benchmark.
    #[command(hide = true)]
    BenchChild(bench::child::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Bench(options) => bench::run(options).await,
        Command::BenchChild(options) => bench::child::run(options).await,
        Command::Migrate(options) => return migrate::run(&options).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("jobs: {error}");
            ExitCode::FAILURE
        }
    }
}
