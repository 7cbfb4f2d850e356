//! `jobs enqueue`: by hand, for a kind that this binary may know nothing of.

use clap::{ArgGroup, Args};
use serde::Serialize;

use super::Context;
use super::application::Application;
use super::exit::{Failure, Result};
use super::new_job::JobOptions;
use super::output::{json, print, say};
use super::when;
use crate::{Due, Enqueued, Headers, NewJob, Timestamp, encode_headers};

#[derive(Debug, Clone, Args)]
#[command(
    group = ArgGroup::new("due").multiple(false),
    after_help = "Example:\n  jobs enqueue billing.charge '{\"order\": 7}' --payload-version 2.1.0 --delay 5m"
)]
pub struct Options {
    #[command(flatten)]
    job: JobOptions,
    /// Due this long from now, such as `5m`.
    #[arg(long, value_name = "LENGTH", group = "due", value_parser = when::span)]
    delay: Option<std::time::Duration>,
    /// Due at an instant, such as `2026-11-30T02:15:00Z`.
    #[arg(long, value_name = "INSTANT", group = "due", value_parser = when::instant)]
    at: Option<Timestamp>,
    /// What is written beside the payload; give it once a header.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Answer {
    id: i64,
    is_new: bool,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let job = self.job(&cx.application)?;
        let jobs = cx.open().await?;
        let (id, is_new) = match jobs.enqueue_new(job).await? {
            Enqueued::Added(id) => (id, true),
            Enqueued::AlreadyThere(id) => (id, false),
        };
        if cx.output.is_json {
            return json(&Answer { id: id.0, is_new });
        }
        if !is_new {
            say(&format!("jobs: nothing was stored: {id} waits with this unique key"));
        }
        print(&format!("{id}\n"))
    }

    fn job(&self, application: &Application) -> Result<NewJob> {
        let mut job = self.job.job(application)?;
        job.due = match (self.delay, self.at) {
            (Some(delay), _) => Due::In(delay),
            (None, Some(instant)) => Due::At(instant),
            (None, None) => job.due,
        };
        let headers: Headers = self.headers.iter().cloned().collect();
        job.headers =
            encode_headers(&headers).map_err(|error| Failure::wrong(error.to_string()))?;
        Ok(job)
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let header = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let header = header.map(|(name, value)| (name.to_owned(), value.to_owned()));
    header.ok_or_else(|| "write NAME=VALUE".to_owned())
}

#[cfg(test)]
mod tests;
