//! Jobs of many steps, and processes that end themselves at a chosen instant of one.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Postgres, Sqlite};

use crate::ledger::Ledger;

/// A job that writes a row a step, each with its checkpoint, and one with its success.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.rows", version = "1.0.0", checkpoint = StepsTaken, max_failures = 1)]
pub struct WriteRows {
    /// How many steps.
    pub steps: u32,
}

/// A job that tells the ledger of each step, and saves a checkpoint behind it.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.walk", version = "1.0.0", checkpoint = StepsTaken, max_failures = 1)]
pub struct Walk {
    /// How many steps.
    pub steps: u32,
    /// How long each takes.
    pub millis: u64,
}

/// How many steps were taken.
#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
pub struct StepsTaken(pub u32);

/// An instant of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instant {
    /// Something was written, and no checkpoint yet.
    Written,
    /// The checkpoint was written too, and nothing is committed.
    Saved,
    /// The commit is on its way; so many microseconds after it left.
    Committing(u64),
    /// The answer to the commit has come.
    Committed,
}

/// When this process ends itself: at an instant of its n-th step.
#[derive(Debug, Clone, Copy)]
pub struct Fate {
    /// Counted from 1, over all runs of the process.
    pub step: u32,
    /// The instant.
    pub at: Instant,
}

/// What the handlers share.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Where they tell of their steps.
    pub ledger: Ledger,
    /// Where the rows go: the beginning of a table's name.
    pub tables: String,
    /// When the process ends itself, if it does.
    pub fate: Option<Fate>,
    /// The steps begun so far.
    pub begun: Arc<AtomicU32>,
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, delay_us) = match self.at {
            Instant::Written => ("written", 0),
            Instant::Saved => ("saved", 0),
            Instant::Committing(delay_us) => ("committing", delay_us),
            Instant::Committed => ("committed", 0),
        };
        write!(f, "{} {name} {delay_us}", self.step)
    }
}

impl FromStr for Fate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no fate");
        let [step, name, delay_us] = text.split(' ').collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        let at = match name {
            "written" => Instant::Written,
            "saved" => Instant::Saved,
            "committing" => Instant::Committing(delay_us.parse().map_err(|_| wrong())?),
            "committed" => Instant::Committed,
            _ => return Err(wrong()),
        };
        Ok(Self { step: step.parse().map_err(|_| wrong())?, at })
    }
}

impl Stage {
    /// Begins a step; answers whether it is the one at which the process ends itself.
    fn begin(&self) -> Option<Instant> {
        let step = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        self.fate.filter(|fate| fate.step == step).map(|fate| fate.at)
    }
}

/// Ends this process as SIGKILL does, if this is its instant.
fn end_if(fate: Option<Instant>, here: Instant) {
    if fate == Some(here) {
        end();
    }
}

fn end() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a process may end itself");
    loop {
        std::thread::park();
    }
}

/// Ends this process a moment from now, if that is its fate.
fn end_while_committing(fate: Option<Instant>) {
    if let Some(Instant::Committing(delay_us)) = fate {
        std::thread::spawn(move || {
            std::thread::park_timeout(Duration::from_micros(delay_us));
            end()
        });
    }
}

macro_rules! write_rows {
    ($name:ident over $database:ty) => {
        async fn $name(job: WriteRows, cx: JobContext<Stage, StepsTaken>) -> Result<(), JobError> {
            let stage = &cx.state;
            let insert = |table: &str, columns: &str| {
                AssertSqlSafe(format!("INSERT INTO {}{table} {columns}", stage.tables))
            };
            let tell =
                |what, step: u32| stage.ledger.tell(what, cx.id().0, cx.claim().0, step.into());
            let mut cursor = cx.cursor(StepsTaken(0));
            while let Some(mut batch) = cursor.begin::<$database>().await? {
                let (fate, step) = (stage.begin(), batch.at().0 + 1);
                let is_last = step > job.steps;
                if is_last {
                    let finish = sqlx::query(insert("finish", "(job) VALUES ($1)"));
                    finish.bind(cx.id().0).execute(&mut *batch.tx).await?;
                } else {
                    let row = sqlx::query(insert("step", "(job, step) VALUES ($1, $2)"));
                    row.bind(cx.id().0).bind(i64::from(step)).execute(&mut *batch.tx).await?;
                }
                tell("written", step);
                end_if(fate, Instant::Written);
                if fate == Some(Instant::Saved) {
                    if is_last {
                        cx.done_in(&mut batch.tx).await?;
                    } else {
                        cx.checkpoint_in(&mut batch.tx, &StepsTaken(step)).await?;
                    }
                    end();
                }
                end_while_committing(fate);
                batch.commit((!is_last).then_some(StepsTaken(step))).await?;
                tell("committed", step);
                end_if(fate, Instant::Committed);
            }
            Ok(())
        }
    };
}

write_rows!(write_sqlite_rows over Sqlite);
write_rows!(write_postgres_rows over Postgres);

async fn walk(job: Walk, cx: JobContext<Stage, StepsTaken>) -> Result<(), JobError> {
    let mut cursor = cx.cursor(StepsTaken(0));
    while let Some(StepsTaken(taken)) = cursor.at() {
        let (fate, step) = (cx.state.begin(), taken + 1);
        tokio::time::sleep(Duration::from_millis(job.millis)).await;
        cx.state.ledger.tell("written", cx.id().0, cx.claim().0, step.into());
        end_if(fate, Instant::Written);
        end_while_committing(fate);
        cursor.move_to((step < job.steps).then_some(StepsTaken(step))).await?;
        cx.state.ledger.tell("committed", cx.id().0, cx.claim().0, step.into());
        end_if(fate, Instant::Committed);
    }
    Ok(())
}

/// The handlers of these jobs over a store at an address.
///
/// # Errors
/// None, as long as their kinds differ.
pub fn handlers(url: &str) -> Result<jobs_runtime::Handlers<Stage>, jobs_runtime::RegistryError> {
    let registry = Registry::new().handle(walk);
    if url.starts_with("sqlite:") {
        registry.handle(write_sqlite_rows).build()
    } else {
        registry.handle(write_postgres_rows).build()
    }
}
