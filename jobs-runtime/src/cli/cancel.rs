//! `jobs cancel`.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::{Exit, Failure, Result};
use super::output::{Shown, json_lines};
use super::select::{ids, job_id};
use crate::JobId;
use crate::store::Cancelled;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The jobs.
    #[arg(required = true, value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
}

#[derive(Serialize)]
struct Answer {
    id: i64,
    cancel: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
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
