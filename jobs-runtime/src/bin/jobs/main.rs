//! `jobs`: the library's commands, and the benchmark, which is for this project alone.

mod bench;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use jobs_runtime::cli::{self, Application, Globals};

/// Jobs that survive deploys: look at a job store, and operate it.
#[derive(Parser)]
#[command(name = "jobs", version, after_help = cli::HELP)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Shared(cli::Command),
    /// Compare the framework with hand-written SQL, side by side in one run.
    Bench(bench::Options),
    /// A process of a benchmark.
    #[command(hide = true)]
    BenchChild(bench::child::Options),
}

fn main() -> ExitCode {
    let Cli { globals, command } = Cli::parse();
    cli::block_on(async {
        match command {
            Command::Shared(command) => {
                command.run(globals, Application::default(), Cli::command()).await
            }
            Command::Bench(options) => benched(bench::run(options).await),
            Command::BenchChild(options) => benched(bench::child::run(options).await),
        }
    })
}

fn benched<E: std::fmt::Display>(done: Result<(), E>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("jobs: {error}");
            ExitCode::FAILURE
        }
    }
}
