//! `jobs redrive`: dead letters, back to where they run again.
//!
//! 1. What is brought back is what was shown before, and nothing else: the jobs are listed once, and
//!    the one that has run and died again since is left alone.
//! 2. It goes in batches, at a rate or else in a tenth of the database's time. Between two of them it can be ended; what is left is still dead,
//!    so the same command goes on.

mod batches;

use std::time::Duration;

use clap::Args;

use self::batches::{Batches, Done, Pace};
use super::Context;
use super::exit::{Exit, Failure, Result};
use super::found::{By, Found, count};
use super::output::{consent, say};
use super::select::{Selection, ids, job_id, one_of};
use crate::store::{Filter, Redrive};
use crate::{JobId, Jobs, State};

#[expect(clippy::struct_excessive_bools, reason = "flags of a command line, each for itself")]
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    jobs redrive 4711 4712\n  \
    jobs redrive --class gateway_down --ended-since 2h --dry-run\n  \
    jobs redrive --failed-by 'shop 1.8.0' --kind billing.charge --rate 100\n\n\
    Ctrl-C ends it behind the batch in hand; the same command goes on with the rest.")]
pub struct Options {
    /// These jobs; or narrow by what follows.
    #[arg(value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
    #[command(flatten)]
    selection: Selection,
    /// What is brought back.
    #[arg(long, default_value = "dead", value_parser = one_of(&[State::Dead, State::Cancelled]))]
    state: State,
    /// All of that state, without narrowing.
    #[arg(long, conflicts_with = "jobs")]
    all: bool,
    /// Show what would be brought back, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Keep the counters of failures, interruptions and crashes; otherwise they start from zero.
    #[arg(long)]
    keep_counters: bool,
    /// Forget the checkpoint; otherwise the job resumes from it.
    #[arg(long)]
    forget_checkpoint: bool,
    /// Give each job a new idempotency key: what it asks of others counts as asked for the first
    /// time.
    #[arg(long)]
    new_key: bool,
    /// How many jobs are brought back in one transaction.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    batch: u16,
    /// At most about this many jobs a second. Default: as many as take a tenth of the database's time,
    /// which leaves claims nine tenths of their rate.
    #[arg(long, value_name = "JOBS", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let is_narrowed = !self.selection.is_all();
        match (self.jobs.is_empty(), is_narrowed) {
            (false, true) => {
                let what = "name jobs or narrow by what they have in common, not both";
                return Err(Failure::wrong(what));
            }
            (true, false) if !self.all => {
                return Err(Failure::wrong(format!(
                    "which jobs? Name them, narrow by `--class`, `--kind`, `--failed-by`, \
                     `--ended-since` or the like, or write `--all` for every {} job",
                    self.state
                )));
            }
            (true | false, true | false) => {}
        }
        let jobs = cx.open().await?;
        let found = self.find(&jobs).await?;
        found.tell(cx.output, self.dry_run)?;
        if self.dry_run
            && !cx.output.is_json
            && let Some(until) = found.ended_before()
        {
            say(&format!(
                "jobs: nothing was changed; the same command with `--ended-until {until}` instead of \
                 `--dry-run` brings back these and no others"
            ));
        }
        let found_jobs = found.ids.len();
        let Some(ended_before) = found.ended_before().filter(|_| !self.dry_run) else {
            if found_jobs == 0 && self.jobs.is_empty() {
                say(&format!(
                    "jobs: no {0} job matches; `jobs list --state {0} --columns id,kind,class,finished` \
                     tells what there is",
                    self.state
                ));
            }
            if cx.output.is_json && !self.dry_run {
                Done::default().tell(cx.output)?;
            }
            return self.missing(found_jobs);
        };
        let place = cx.globals.place()?;
        consent(&format!("Bring {} back to run again, in {place}?", count(found_jobs)), self.yes)?;
        let redrive = Redrive {
            keeps_counters: self.keep_counters,
            forgets_checkpoint: self.forget_checkpoint,
            makes_new_key: self.new_key,
            ended_before: Some(ended_before),
        };
        let batches = Batches { redrive, size: self.batch.into(), pace: self.pace() };
        let done = batches.run(&jobs, &found.ids).await?;
        done.tell(cx.output)?;
        if done.left > 0 {
            say(&format!(
                "jobs: ended early with {} left; the same command with `--ended-until {ended_before}` \
                 goes on with these and no others",
                count(done.left)
            ));
            return Err(Failure::silent(Exit::Finding));
        }
        if done.twin_waits > 0 {
            return Err(Failure::silent(Exit::Finding));
        }
        self.missing(found_jobs)
    }

    /// Named jobs that were not there to be brought back are a finding.
    fn missing(&self, found: usize) -> Result<()> {
        let missing = ids(&self.jobs).len().saturating_sub(found);
        if missing == 0 {
            return Ok(());
        }
        let (jobs, state) = (count(missing), self.state);
        Err(Failure::finding(format!("{jobs} of those named: not {state}; see `jobs show`")))
    }

    async fn find(&self, jobs: &Jobs) -> Result<Found> {
        let mut found = Found::none(By::Class);
        if self.jobs.is_empty() {
            let filter = self.selection.filter(jobs.clock().now());
            found.add_all(jobs, Filter { state: Some(self.state), ..filter }).await?;
            return Ok(found);
        }
        let named = jobs.inspect().briefs_of(&ids(&self.jobs)).await?;
        named.iter().filter(|job| job.state == self.state).for_each(|job| found.add(job));
        Ok(found)
    }

    fn pace(&self) -> Pace {
        let seconds = |rate: u32| f64::from(self.batch) / f64::from(rate);
        self.rate.map_or(Pace::Tenth, |rate| Pace::Rest(Duration::from_secs_f64(seconds(rate))))
    }
}
