//! The other processes of a benchmark, and how they are spoken to.

use std::process::Stdio;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jobs_runtime::{Jobs, Worker};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::app::{App, Stamp, elapsed, handlers};
use super::floor::Rows;
use super::pickup::SPACING;
use super::place::Place;
use super::scenario::Figures;
use super::{Result, usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Enqueues `count` stamps, one by one.
    Produce,
    /// Works until its input ends, and tells how many jobs it has run.
    Work,
}

/// What a process of a benchmark does.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(value_enum)]
    part: Part,
    #[arg(long)]
    url: String,
    #[arg(long)]
    count: u64,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let jobs = Jobs::open(&options.url).await?;
    match options.part {
        Part::Produce => {
            for _ in 0..options.count {
                tokio::time::sleep(SPACING).await;
                jobs.enqueue(Stamp::now()).await?;
            }
            Ok(())
        }
        Part::Work => work(&jobs, usize::try_from(options.count)?).await,
    }
}

/// Begins at the first line of input. Its own lines are how many jobs have run, and last the peak of
/// its memory.
async fn work(jobs: &Jobs, concurrency: usize) -> Result<()> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut output = tokio::io::stdout();
    input.read_line(&mut String::new()).await?;
    let (app, _ages) = App::new(u64::MAX, Duration::ZERO);
    let worker = Worker::new(jobs, handlers()?, app.clone()).concurrency(concurrency);
    let mut working = std::pin::pin!(worker.run_until(async move {
        drop(input.read_to_end(&mut Vec::new()).await);
    }));
    loop {
        let ended = tokio::time::timeout(Duration::from_millis(5), &mut working).await;
        output.write_all(format!("{}\n", app.handled()).as_bytes()).await?;
        output.flush().await?;
        if let Ok(report) = ended {
            report?;
            break;
        }
    }
    let peak = usage::peak_mib().unwrap_or_default();
    output.write_all(format!("peak {peak}\n").as_bytes()).await?;
    output.flush().await?;
    Ok(())
}

fn command(part: &str, url: &str, count: usize) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench-child", part, "--url", url, "--count", &count.to_string()]);
    command.kill_on_drop(true);
    Ok(command)
}

/// A process that enqueues.
pub(crate) struct Producer(Child);

impl Producer {
    pub(crate) fn start(url: &str, count: usize) -> Result<Self> {
        Ok(Self(command("produce", url, count)?.spawn()?))
    }

    pub(crate) async fn end(mut self) -> Result<()> {
        let status = self.0.wait().await?;
        if status.success() { Ok(()) } else { Err("the producing process failed".into()) }
    }
}

/// A process that works.
struct Working {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    handled: u64,
    peak_mib: f64,
}

impl Working {
    fn start(url: &str, concurrency: usize) -> Result<Self> {
        let mut command = command("work", url, concurrency)?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let (input, lines) = (child.stdin.take(), BufReader::new(output).lines());
        Ok(Self { child, input, lines, handled: 0, peak_mib: 0.0 })
    }

    async fn begin(&mut self) -> Result<()> {
        let input = self.input.as_mut().ok_or("no input")?;
        Ok(input.write_all(b"begin\n").await?)
    }

    /// Takes in one line; false at the end.
    async fn hear(&mut self) -> Result<bool> {
        let Some(line) = self.lines.next_line().await? else { return Ok(false) };
        match line.strip_prefix("peak ") {
            Some(peak) => self.peak_mib = peak.parse()?,
            None => self.handled = line.parse()?,
        }
        Ok(true)
    }

    async fn end(mut self) -> Result<f64> {
        drop(self.input.take());
        while self.hear().await? {}
        self.child.wait().await?;
        Ok(self.peak_mib)
    }
}

/// So many processes drain a queue together. `count` of the waiting jobs are measured.
pub(crate) async fn drain(
    place: &Place,
    processes: usize,
    concurrency: usize,
    waiting: u64,
    count: u64,
) -> Result<Figures> {
    place.floor().await?.fill(Rows::Ready, waiting).await?;
    let workers = (0..processes).map(|_| Working::start(place.url(), concurrency));
    let mut workers = workers.collect::<Result<Vec<_>>>()?;
    let begun = elapsed();
    for worker in &mut workers {
        worker.begin().await?;
    }
    while workers.iter().map(|worker| worker.handled).sum::<u64>() < count {
        for worker in &mut workers {
            if !worker.hear().await? {
                return Err("a working process ended early".into());
            }
        }
    }
    let took = elapsed().saturating_sub(begun).as_secs_f64();
    let mut peak = 0.0_f64;
    for worker in workers {
        peak = peak.max(worker.end().await?);
    }
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let mut figures = Figures::per_s(count as f64 / took);
    figures.add("peak_mib", peak);
    Ok(figures)
}
