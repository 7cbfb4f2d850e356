//! The driver: starts the process that works, kills it, starts it again, and checks what came of it.

use std::cmp::Reverse;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use jobs_runtime::prelude::*;
use jobs_runtime::{Clock as _, JobId, Random as _, SeededRandom, State, SystemClock, below};
use tokio::sync::oneshot;

use crate::job::{Import, ImportedTo};
use crate::{Arguments, log, open, table};

/// Short, so that on a server a killed process is found dead soon. In a file it is at once.
const LEASE: Duration = Duration::from_secs(1);
/// How often the driver looks how far the import is.
const LOOK: Duration = Duration::from_millis(2);

/// Works on the import until it is done.
pub(crate) async fn work(url: &str, job: i64) -> anyhow::Result<()> {
    let (jobs, tables) = open(url).await?;
    let handlers = Registry::new().job::<Import>().build()?;
    let worker = Worker::new(&jobs, handlers, tables).lease(LEASE);
    let done = async {
        if let Err(error) = jobs.wait(JobId(job)).await {
            eprintln!("can't follow the import: {error}");
        }
    };
    worker.run_until(done).await?;
    Ok(())
}

/// Imports the log under kills, and compares.
pub(crate) async fn drive(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { url, file, lines, kills, seed, .. } = arguments;
    log::make(file, *lines)?;
    let wanted = log::read(file, 0, u64::MAX)?;
    forget(url)?;
    let (jobs, tables) = open(url).await?;
    tables.make(&jobs).await?;
    let id = jobs.enqueue(Import { file: std::path::absolute(file)? }).await?.id();
    println!("importing {} lines, {kills} kills, seed {seed}", wanted.lines);

    let bar = bar(wanted.lines);
    let import = Watched { jobs: &jobs, id, bar: &bar };
    let begun = SystemClock.elapsed();
    let (stop, stopped) = oneshot::channel::<()>();
    // A worker of another queue, which takes back what the killed ones held.
    let sweeper = Worker::new(&jobs, Registry::new().build()?, ()).queue("none").lease(LEASE);
    let sweeping = sweeper.run_until(async {
        drop(stopped.await);
    });
    let killing = async {
        let killed = import.under_kills(url, *kills, *seed, wanted.lines).await;
        drop(stop);
        killed
    };
    let (swept, killed) = tokio::join!(sweeping, killing);
    let record = killed?;
    swept?;
    bar.finish_and_clear();

    ensure!(
        record.state == State::Succeeded,
        "the import ended {}: {:?}",
        record.state,
        record.error
    );
    ensure!(tables.totals(&jobs).await? == wanted.totals, "the totals differ from a plain pass");
    ensure!(record.result_as()? == Some(wanted.lines), "its result is {:?}", record.result);
    tell(&wanted, SystemClock.elapsed().saturating_sub(begun));
    println!("{} lines, {kills} kills: the totals are those of a plain pass", wanted.lines);
    Ok(())
}

/// Prints what the log adds up to, and how fast it was imported.
fn tell(imported: &log::Batch, took: Duration) {
    let log::Totals { pages, statuses } = &imported.totals;
    for (status, hits) in statuses {
        println!("{hits:>9} hits answered {status}");
    }
    let mut pages: Vec<_> = pages.iter().collect();
    pages.sort_by_key(|(_, (hits, _))| Reverse(*hits));
    for (page, (hits, bytes)) in pages.iter().take(3) {
        println!("{hits:>9} hits of {page}, {bytes} bytes");
    }
    let rate = imported.lines * 1_000 / u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    println!("{took:.1?} with kills and restarts, {rate} lines a second");
}

struct Watched<'a> {
    jobs: &'a Jobs,
    id: JobId,
    bar: &'a ProgressBar,
}

impl Watched<'_> {
    /// Runs the import to its end; its process is killed at so many random places of the log.
    async fn under_kills(
        &self,
        url: &str,
        kills: usize,
        seed: u64,
        lines: u64,
    ) -> anyhow::Result<jobs_runtime::JobRecord> {
        let random = SeededRandom::new(seed);
        let mut places: Vec<u64> =
            (0..kills).map(|_| below(random.draw(), lines * 9 / 10)).collect();
        places.sort_unstable();
        for (kill, place) in (1..).zip(places) {
            let mut process = Process::start(url, self.id)?;
            let begun_at = self.lines().await?;
            // It gets on first, so that no run of kills looks like a job that kills its worker.
            while self.lines().await? <= place.max(begun_at) {
                ensure!(process.is_running()?, "the process has ended by itself");
                tokio::time::sleep(LOOK).await;
            }
            tokio::time::sleep(Duration::from_micros(below(random.draw(), 3_000))).await;
            process.kill()?;
            self.bar.set_message(format!("{kill} kills"));
        }
        let _process = Process::start(url, self.id)?;
        let mut ended = std::pin::pin!(self.jobs.wait(self.id).into_future());
        loop {
            tokio::select! {
                record = &mut ended => return Ok(record?),
                () = tokio::time::sleep(LOOK * 10) => drop(self.lines().await?),
            }
        }
    }

    /// How many lines are imported for good.
    async fn lines(&self) -> anyhow::Result<u64> {
        let record = self.jobs.job(self.id).await?.context("the job is gone")?;
        let Some(saved) = record.checkpoint else { return Ok(0) };
        let at = <ImportedTo as jobs_runtime::Versioned>::decode(1, &saved.text)?;
        self.bar.set_position(at.lines);
        Ok(at.lines)
    }
}

/// The process that works; killed when dropped.
struct Process(Child);

impl Process {
    fn start(url: &str, id: JobId) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(Self(command.args([url, "--works-on", &id.to_string()]).spawn()?))
    }

    fn is_running(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }

    /// By SIGKILL: it can't hear of it.
    fn kill(&mut self) -> anyhow::Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended needs nothing.
        let _ = self.kill();
    }
}

/// Removes the SQLite file of an earlier import. On a server its job stays, and only its tables go.
fn forget(url: &str) -> anyhow::Result<()> {
    let Some(file) = url.strip_prefix("sqlite://") else { return Ok(()) };
    if table::Tables::of(url) == table::Tables::Sqlite && Path::new(file).exists() {
        for end in ["", "-wal", "-shm"] {
            let file = format!("{file}{end}");
            if Path::new(&file).exists() {
                std::fs::remove_file(&file)?;
            }
        }
    }
    Ok(())
}

fn bar(lines: u64) -> ProgressBar {
    let template = "{bar:40} {pos}/{len} lines, {per_sec}, {eta} left, {msg}";
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::new(lines);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
