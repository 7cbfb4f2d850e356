//! `jobs reschedule`.

use std::time::Duration;

use clap::{ArgGroup, Args};
use serde::Serialize;

use super::Context;
use super::exit::{Exit, Failure, Result};
use super::output::{Shown, json_lines};
use super::select::{ids, job_id, priority};
use super::when;
use crate::store::Reschedule;
use crate::{Due, JobId, Priority, Timestamp};

#[derive(Debug, Clone, Args)]
#[command(
    group = ArgGroup::new("due").multiple(false),
    group = ArgGroup::new("change").args(["in", "at", "priority"]).multiple(true).required(true),
    after_help = "Examples:\n  jobs reschedule 4711 4712 --in 2h\n  \
                  jobs reschedule 4711 --priority 50"
)]
pub struct Options {
    /// The jobs.
    #[arg(required = true, value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
    /// Due this long from now, such as `2h`; `0s` is at once.
    #[arg(id = "in", long = "in", value_name = "LENGTH", group = "due", value_parser = when::span)]
    due_in: Option<Duration>,
    /// Due at an instant, such as `2026-11-30T02:15:00Z`.
    #[arg(long, value_name = "INSTANT", group = "due", value_parser = when::instant)]
    at: Option<Timestamp>,
    /// From -100 to 100, higher first.
    #[arg(long, allow_negative_numbers = true, value_parser = priority)]
    priority: Option<Priority>,
}

#[derive(Serialize)]
struct Answer {
    id: i64,
    is_changed: bool,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let wanted = ids(&self.jobs);
        let due = self.due_in.map(Due::In).or(self.at.map(Due::At));
        let change = Reschedule { due, priority: self.priority };
        let changed = jobs.reschedule(&wanted, change).await?;
        let answers = wanted.iter().zip(&changed);
        if cx.output.is_json {
            let answer = |(id, changed): (&JobId, &bool)| Answer { id: id.0, is_changed: *changed };
            json_lines(answers.map(answer))?;
        } else {
            let row = |(id, changed): (&JobId, &bool)| {
                let text = if *changed { "changed" } else { "does not wait: see `jobs show`" };
                vec![Shown::new(id.to_string()), Shown::new(text)]
            };
            cx.output.table(&["ID", "RESCHEDULE"], answers.map(row).collect())?;
        }
        let is_done = changed.iter().all(|changed| *changed);
        if is_done { Ok(()) } else { Err(Failure::silent(Exit::Finding)) }
    }
}
