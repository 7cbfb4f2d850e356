//! `jobs cancel`: named jobs, or all that match.
//!
//! What is cancelled is what was shown before, and nothing else: the jobs are listed once.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::{Exit, Failure, Result};
use super::found::{By, Found, count};
use super::output::{Output, Shown, consent, facts, json, json_lines, say};
use super::select::{Selection, ids, job_id, one_of};
use crate::store::{Cancelled, Filter};
use crate::{JobId, Jobs, State};

/// What can still be cancelled.
const OPEN: [State; 3] = [State::Scheduled, State::Ready, State::Running];

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    jobs cancel 4711 4712\n  \
    jobs cancel --kind mail.digest --state scheduled --dry-run\n  \
    jobs cancel --queue slow --enqueued-until 2026-11-30T02:15:00Z\n\n\
    A cancelled job can be brought back by `redrive --state cancelled`.")]
pub struct Options {
    /// These jobs; or narrow by what follows.
    #[arg(value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
    #[command(flatten)]
    selection: Selection,
    /// Only in this state. Default: all that wait or run.
    #[arg(long, value_parser = one_of(&OPEN), conflicts_with = "jobs")]
    state: Option<State>,
    /// Show what would be cancelled, and change nothing.
    #[arg(long, conflicts_with = "jobs")]
    dry_run: bool,
    /// How many jobs are cancelled in one transaction.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    batch: u16,
    /// Do not ask, where jobs are not named.
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    id: i64,
    cancel: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

/// What became of jobs that were not named one by one.
#[derive(Debug, Default, Serialize)]
struct Done {
    /// They waited, and will not run.
    cancelled: u64,
    /// They run, and their workers will hear of it.
    requested: u64,
    /// They had ended, or were pruned, since they were listed.
    moved: u64,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let is_narrowed = !self.selection.is_all() || self.state.is_some();
        match (self.jobs.is_empty(), is_narrowed) {
            (false, true) => {
                Err(Failure::wrong("name jobs or narrow by what they have in common, not both"))
            }
            (true, false) => Err(Failure::wrong(
                "which jobs? Name them, or narrow by `--kind`, `--queue`, `--state`, \
                 `--enqueued-until` or the like",
            )),
            (false, false) => self.named(cx).await,
            (true, true) => self.matching(cx).await,
        }
    }

    async fn named(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let wanted = ids(&self.jobs);
        let cancelled = jobs.operate().cancel(&wanted).await?;
        let answers = || wanted.iter().zip(&cancelled);
        if cx.output.is_json {
            json_lines(answers().map(|(id, done)| answer(*id, *done)))?;
        } else {
            let row = |(id, done): (&JobId, &Cancelled)| {
                let told = answer(*id, *done).cancel;
                vec![Shown::new(id.to_string()), Shown::new(told), Shown::new(meaning(*done))]
            };
            cx.output.table(&["ID", "CANCEL", "MEANING"], answers().map(row).collect())?;
        }
        let is_done =
            |done: &Cancelled| matches!(done, Cancelled::Cancelled | Cancelled::Requested);
        if cancelled.iter().all(is_done) { Ok(()) } else { Err(Failure::silent(Exit::Finding)) }
    }

    async fn matching(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let filter = self.selection.filter(jobs.clock().now());
        let mut found = Found::none(By::State);
        for state in OPEN.into_iter().filter(|state| self.state.is_none_or(|it| it == *state)) {
            found.add_all(&jobs, Filter { state: Some(state), ..filter.clone() }).await?;
        }
        found.tell(cx.output, self.dry_run)?;
        if self.dry_run {
            if !cx.output.is_json {
                say("jobs: nothing was changed");
            }
            return Ok(());
        }
        if !found.ids.is_empty() {
            let (what, place) = (count(found.ids.len()), cx.globals.place()?);
            consent(&format!("Cancel {what}, in {place}?"), self.yes)?;
        }
        self.cancel(&jobs, &found.ids).await?.tell(cx.output)
    }

    async fn cancel(&self, jobs: &Jobs, ids: &[JobId]) -> Result<Done> {
        let mut done = Done::default();
        for batch in ids.chunks(self.batch.into()) {
            for answer in jobs.operate().cancel(batch).await? {
                let count = match answer {
                    Cancelled::Cancelled => &mut done.cancelled,
                    Cancelled::Requested => &mut done.requested,
                    Cancelled::Finished(_) | Cancelled::Missing => &mut done.moved,
                };
                *count += 1;
            }
        }
        Ok(done)
    }
}

impl Done {
    fn tell(&self, output: Output) -> Result<()> {
        if output.is_json {
            return json(self);
        }
        let mut told = vec![("Cancelled", self.cancelled.to_string())];
        let more = [
            ("They run, and their workers will hear of it", self.requested),
            ("Ended meanwhile", self.moved),
        ];
        told.extend(more.iter().filter(|(_, n)| *n > 0).map(|(name, n)| (*name, n.to_string())));
        facts(&told)
    }
}

fn meaning(done: Cancelled) -> String {
    match done {
        Cancelled::Cancelled => "it waited, and will not run".to_owned(),
        Cancelled::Requested => "it runs, and its worker will hear of it".to_owned(),
        Cancelled::Finished(state) => format!("it had ended already: {state}"),
        Cancelled::Missing => "there is no such job (any more)".to_owned(),
    }
}

fn answer(id: JobId, done: Cancelled) -> Answer {
    let (cancel, state) = match done {
        Cancelled::Cancelled => ("cancelled", None),
        Cancelled::Requested => ("requested", None),
        Cancelled::Finished(state) => ("finished", Some(state.as_str())),
        Cancelled::Missing => ("missing", None),
    };
    Answer { id: id.0, cancel, state }
}
