//! `jobs run-now`.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::{Exit, Failure, Result};
use super::output::{Shown, json_lines};
use super::select::{ids, job_id};
use crate::JobId;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The jobs.
    #[arg(required = true, value_name = "JOB", value_parser = job_id)]
    jobs: Vec<JobId>,
}

#[derive(Serialize)]
struct Answer {
    id: i64,
    is_made_ready: bool,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let wanted = ids(&self.jobs);
        let made_ready = jobs.operate().run_now(&wanted).await?;
        let answers = wanted.iter().zip(&made_ready);
        if cx.output.is_json {
            let answer = |(id, made): (&JobId, &bool)| Answer { id: id.0, is_made_ready: *made };
            json_lines(answers.map(answer))?;
        } else {
            let row = |(id, made): (&JobId, &bool)| {
                let text = if *made { "ready" } else { "not scheduled: see `jobs show`" };
                vec![Shown::new(id.to_string()), Shown::new(text)]
            };
            cx.output.table(&["ID", "RUN NOW"], answers.map(row).collect())?;
        }
        let is_done = made_ready.iter().all(|made| *made);
        if is_done { Ok(()) } else { Err(Failure::silent(Exit::Finding)) }
    }
}
