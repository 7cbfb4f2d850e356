//! The command line: what people and scripts see of a job store, and may change in it.
//!
//! 1. It inspects and operates; it never claims, settles or runs a job, and never decodes a stored
//!    payload. What is enqueued by hand is read before, where the application knows its kind.
//! 2. Standard output is the answer and nothing else: a table for people, one JSON value with
//!    `--json`. What is said beside it goes to standard error.
//! 3. The exit status is one of [`Exit`]'s, and every message says what to do or to type.
//! 4. No output shows a password or the address it stands in, and control characters that others
//!    have stored are shown, never sent to the terminal.
//! 5. Nothing irreversible happens without `--yes` or a person's consent at a terminal.
//!
//! An application mounts the same commands in a binary of its own, which then also know its kinds:
//!
//! ```no_run
//! # use jobs_runtime::{Handlers, Registry, RegistryError};
//! # fn handlers() -> Result<Handlers<()>, RegistryError> { Registry::new().build() }
//! fn main() -> std::process::ExitCode {
//!     jobs_runtime::cli::main(&handlers().expect("the registry is in order"))
//! }
//! ```
//!
//! or has them beside commands of its own:
//!
//! ```no_run
//! use clap::{CommandFactory as _, Parser, Subcommand};
//! use jobs_runtime::cli::{self, Application, Globals};
//! # use jobs_runtime::{Handlers, Jobs, Registry, RegistryError, Worker};
//! # fn handlers() -> Result<Handlers<()>, RegistryError> { Registry::new().build() }
//! # async fn work() -> std::process::ExitCode { std::process::ExitCode::SUCCESS }
//!
//! #[derive(Parser)]
//! struct Shop {
//!     #[command(flatten)]
//!     globals: Globals,
//!     #[command(subcommand)]
//!     command: Command,
//! }
//!
//! #[derive(Subcommand)]
//! enum Command {
//!     /// Work until told to stop.
//!     Worker,
//!     #[command(flatten)]
//!     Jobs(cli::Command),
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let Shop { globals, command } = cli::parse();
//!     let application = Application::of(&handlers().expect("the registry is in order"));
//!     cli::block_on(async {
//!         match command {
//!             Command::Worker => work().await,
//!             Command::Jobs(command) => command.run(globals, application, Shop::command()).await,
//!         }
//!     })
//! }
//! ```

mod application;
mod cancel;
mod completions;
mod database;
mod deploys;
mod doctor;
mod enqueue;
mod exit;
mod found;
mod list;
mod manifest;
mod migrate;
mod new_job;
mod output;
mod pause;
mod pretty;
mod prune;
mod queues;
mod record;
mod redrive;
mod reschedule;
mod run_now;
mod schedules;
mod select;
mod show;
mod stats;
mod stranded;
mod visible;
mod watch;
mod when;
mod workers;

use std::fmt;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

pub use self::application::Application;
pub use self::exit::{Exit, HELP};
use self::exit::{Failure, Result};
use self::output::Output;
use crate::Handlers;
use crate::client::Jobs;

/// Jobs that survive deploys: look at a job store, and operate it.
#[derive(Debug, Parser)]
#[command(version, after_help = exit::HELP)]
struct Root {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// What stands over the options of every command in its help, behind its own.
const EVERYWHERE: &str = "Options of every command";

/// What every command takes. Its debug text leaves the address out, which may hold a password.
#[derive(Clone, Args)]
pub struct Globals {
    /// The database: `postgres://user@host/database` or `sqlite://app.db`. Better in the environment
    /// than here, where every user of the machine can read it; a password may also stand in
    /// `PGPASSWORD` or a password file.
    #[arg(
        long,
        global = true,
        env = "JOBS_URL",
        hide_env_values = true,
        value_name = "ADDRESS",
        help_heading = EVERYWHERE
    )]
    url: Option<String>,
    /// The schema that holds the tables, on PostgreSQL. Default: `jobs`.
    #[arg(
        long,
        global = true,
        env = "JOBS_SCHEMA",
        hide_env_values = true,
        value_name = "NAME",
        help_heading = EVERYWHERE
    )]
    schema: Option<String>,
    /// Answer with one JSON value.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
}

/// The commands; flatten them into a command line of your own, or let [`main`] be it.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// List jobs, newest first.
    List(list::Options),
    /// Show all that is kept of a job: payload, counters, checkpoint, history.
    Show(show::Options),
    /// Enqueue a job by hand.
    Enqueue(enqueue::Options),
    /// Cancel jobs: waiting ones at once, running ones as soon as their handler returns.
    Cancel(cancel::Options),
    /// Make scheduled jobs due now.
    RunNow(run_now::Options),
    /// Change when waiting jobs are due and how urgent they are.
    Reschedule(reschedule::Options),
    /// Bring dead letters back to run again.
    Redrive(redrive::Options),
    /// Tell how full each queue is, how long its next job has waited, and which are paused.
    Queues(queues::Options),
    /// Stop claims from a queue; what runs goes on.
    Pause(pause::Pause),
    /// Let a paused queue be claimed from again.
    Resume(pause::Resume),
    /// List what is enqueued by the clock; declare, pause and resume schedules.
    Schedules(schedules::Options),
    /// Say whether a build is safe to deploy, and in which order.
    Manifest(manifest::Options),
    /// Count the waiting jobs that no live worker can read.
    Stranded(stranded::Options),
    /// List the workers that the store knows, newest first.
    Workers(workers::Options),
    /// Tell of each build whether its deploys moved work on or left it to expire.
    Deploys(deploys::Options),
    /// Count jobs by state, or by kind and version.
    Stats(stats::Options),
    /// Watch the store, live.
    Watch(watch::Options),
    /// Delete finished jobs.
    Prune(prune::Options),
    /// Bring a database to the schema of this build, or print the SQL that does.
    Migrate(migrate::Options),
    /// Examine how workers are deployed: would they be let drain?
    Doctor(doctor::Options),
    /// Print the completions of a shell.
    Completions(completions::Options),
}

/// What a command works with.
#[derive(Debug)]
struct Context {
    globals: Globals,
    application: Application,
    output: Output,
    /// The whole command line, for completions.
    root: clap::Command,
}

/// The whole command line of an application: parses the arguments, runs the command on a runtime of
/// its own and answers the exit status.
///
/// # Panics
/// When called from within an async runtime.
pub fn main<S>(handlers: &Handlers<S>) -> ExitCode {
    let Root { globals, command } = parse();
    block_on(command.run(globals, Application::of(handlers), Root::command()))
}

/// Parses the arguments of this process as [`Parser::parse`] does, with help whose examples call the
/// program by its own name.
pub fn parse<C: Parser>() -> C {
    let name = std::env::args_os().next().and_then(|path| {
        Some(std::path::Path::new(&path).file_name()?.to_string_lossy().into_owned())
    });
    let command = called(C::command(), name.as_deref().unwrap_or("jobs"));
    let matches = command.clone().get_matches();
    C::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command.clone()).exit())
}

/// A command line whose examples, and those of its commands, begin with this name.
fn called(mut command: clap::Command, name: &str) -> clap::Command {
    if let Some(help) = command.get_after_help() {
        let help = help.to_string().replace("\n  jobs ", &format!("\n  {name} "));
        let help = help.replace("`jobs ", &format!("`{name} "));
        command = command.after_help(help);
    }
    command.mut_subcommands(|inner| called(inner, name))
}

impl fmt::Debug for Globals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, schema, json } = self;
        let mut shown = f.debug_struct("Globals");
        shown.field("schema", schema).field("json", json).finish_non_exhaustive()
    }
}

impl Command {
    /// Runs a command; `root` is the whole command line that it was parsed from.
    pub async fn run(
        self,
        globals: Globals,
        application: Application,
        root: clap::Command,
    ) -> ExitCode {
        let output = Output::of_process(globals.json);
        let cx = Context { globals, application, output, root };
        exit::of(self.done(&cx).await)
    }

    async fn done(self, cx: &Context) -> Result<()> {
        match self {
            Self::List(options) => options.run(cx).await,
            Self::Show(options) => options.run(cx).await,
            Self::Enqueue(options) => options.run(cx).await,
            Self::Cancel(options) => options.run(cx).await,
            Self::RunNow(options) => options.run(cx).await,
            Self::Reschedule(options) => options.run(cx).await,
            Self::Pause(options) => options.run(cx).await,
            Self::Resume(options) => options.run(cx).await,
            Self::Schedules(options) => options.run(cx).await,
            Self::Manifest(options) => options.run(cx).await,
            Self::Stranded(options) => options.run(cx).await,
            Self::Workers(options) => options.run(cx).await,
            Self::Redrive(options) => options.run(cx).await,
            Self::Queues(options) => options.run(cx).await,
            Self::Deploys(options) => options.run(cx).await,
            Self::Stats(options) => options.run(cx).await,
            Self::Watch(options) => options.run(cx).await,
            Self::Prune(options) => options.run(cx).await,
            Self::Migrate(options) => options.run(cx).await,
            Self::Doctor(options) => options.run(cx).await,
            Self::Completions(options) => options.run(cx),
        }
    }
}

impl Context {
    /// Opens the database as it is: nothing is made or migrated.
    async fn open(&self) -> Result<Jobs> {
        database::open(&self.globals).await
    }
}

/// Runs a command to its end on a runtime of its own.
///
/// # Panics
/// When called from within an async runtime.
pub fn block_on(command: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => exit::of(Err(Failure::new(Exit::TryAgain, error.to_string()))),
    }
}

#[cfg(test)]
mod tests;
