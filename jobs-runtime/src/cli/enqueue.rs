//! `jobs enqueue`: by hand, for a kind that this binary may know nothing of.

use std::io::Read as _;

use clap::{ArgGroup, Args};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Context;
use super::application::{Application, KnownKind};
use super::exit::{Exit, Failure, Result};
use super::output::{json, print, say};
use super::when::{self, When};
use crate::{
    Due, Enqueued, Headers, Kind, MinReader, NewJob, Priority, QueueName, Timestamp, UniqueKey,
    Version, encode_headers,
};

#[derive(Debug, Clone, Args)]
#[command(
    group = ArgGroup::new("due").multiple(false),
    after_help = "Example:\n  jobs enqueue billing.charge '{\"order\": 7}' --payload-version 2.1.0 --delay 5m"
)]
pub struct Options {
    /// What the job is, such as `billing.charge`.
    kind: Kind,
    /// Its payload as JSON text, which is stored to the letter; `-` reads it from standard input.
    payload: String,
    /// The version that the payload is written in. Default: the newest that this application reads,
    /// where it knows the kind.
    #[arg(long, value_name = "VERSION", value_parser = Version::parse)]
    payload_version: Option<Version>,
    /// The oldest version whose readers may run it. Default: its own.
    #[arg(long, value_name = "VERSION", value_parser = MinReader::parse)]
    readable_by: Option<MinReader>,
    /// Where it waits. Default: the kind's own queue where this application knows the kind, or
    /// `default`.
    #[arg(long)]
    queue: Option<QueueName>,
    /// From -100 to 100, higher first.
    #[arg(long, allow_negative_numbers = true, value_parser = priority)]
    priority: Option<Priority>,
    /// Due this long from now, such as `5m`.
    #[arg(long, value_name = "LENGTH", group = "due", value_parser = when::span)]
    delay: Option<std::time::Duration>,
    /// Due at an instant, such as `2026-11-30T02:15:00Z`.
    #[arg(long, value_name = "INSTANT", group = "due", value_parser = instant)]
    at: Option<Timestamp>,
    /// At most one job of its kind with this key waits at a time.
    #[arg(long, value_name = "KEY")]
    unique_key: Option<UniqueKey>,
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
        let known = application.kind(self.kind.as_str());
        let version = self.payload_version.or(known.map(|kind| kind.version));
        let version = version.ok_or_else(|| no_version(application, &self.kind))?;
        let mut job = NewJob::from_text(self.kind.clone(), version, self.text()?);
        if let Some(KnownKind { policy, .. }) = known {
            job.queue =
                QueueName::new(policy.queue).map_err(|error| Failure::wrong(error.to_string()))?;
            job.priority = Priority::clamped(i64::from(policy.priority));
            job.budget.max_failures = policy.max_failures.max(1);
        }
        if let Some(queue) = &self.queue {
            job.queue = queue.clone();
        }
        job.min_reader = self.readable_by.unwrap_or(job.min_reader);
        job.stamp().ok_or_else(|| Failure::wrong("the payload's version can't vouch for that reader: give `--readable-by` the same major and at most its minor"))?;
        job.priority = self.priority.unwrap_or(job.priority);
        job.due = match (self.delay, self.at) {
            (Some(delay), _) => Due::In(delay),
            (None, Some(instant)) => Due::At(instant),
            (None, None) => job.due,
        };
        job.unique_key.clone_from(&self.unique_key);
        let headers: Headers = self.headers.iter().cloned().collect();
        job.headers =
            encode_headers(&headers).map_err(|error| Failure::wrong(error.to_string()))?;
        Ok(job)
    }

    fn text(&self) -> Result<String> {
        let mut text = self.payload.clone();
        if text == "-" {
            text.clear();
            std::io::stdin().lock().read_to_string(&mut text).map_err(|error| {
                Failure::wrong(format!("the payload on standard input can't be read: {error}"))
            })?;
        }
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(Failure::wrong(format!(
                "the payload is not JSON ({error}); write one value in quotes of the shell, such as \
                 '{{\"order\": 7}}', or `-` to read it from standard input"
            ))),
        }
    }
}

fn no_version(application: &Application, kind: &Kind) -> Failure {
    let mut what = format!("which version of {kind} is the payload? Add `--payload-version`");
    let kinds: Vec<_> = application.kinds().collect();
    if !kinds.is_empty() {
        what = format!("{what}; this application knows {}", kinds.join(", "));
    }
    Failure::new(Exit::WrongCommand, what)
}

fn priority(text: &str) -> Result<Priority, String> {
    let value = text.parse().ok().and_then(Priority::new);
    value.ok_or_else(|| "write a whole number from -100 to 100".to_owned())
}

fn instant(text: &str) -> Result<Timestamp, String> {
    match when::parse(text) {
        Ok(When::At(instant)) => Ok(instant),
        Ok(When::Ago(_)) => Err("write an instant, or `--delay` for a length of time".to_owned()),
        Err(error) => Err(error),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let header = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let header = header.map(|(name, value)| (name.to_owned(), value.to_owned()));
    header.ok_or_else(|| "write NAME=VALUE".to_owned())
}
