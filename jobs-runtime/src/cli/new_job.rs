//! The job that a command writes, for a kind that this binary may know nothing of.

use std::io::Read as _;

use clap::Args;
use jobs_core::check_levels;
use serde_json::value::RawValue;

use super::application::{Application, KnownKind};
use super::exit::{Failure, Result};
use super::select::priority;
use crate::{Kind, MinReader, NewJob, Priority, QueueName, UniqueKey, Version};

#[derive(Debug, Clone, Args)]
pub(super) struct JobOptions {
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
    /// At most one job of its kind with this key waits at a time. Default: the key that the kind makes of
    /// the payload, where this application knows the kind and it makes one.
    #[arg(long, value_name = "KEY")]
    unique_key: Option<UniqueKey>,
    /// Store the payload as it is, though this application, which knows the kind, may not read it.
    #[arg(long)]
    unchecked: bool,
}

impl JobOptions {
    /// What this application knows of the kind, and what was typed before that.
    pub(super) fn job(&self, application: &Application) -> Result<NewJob> {
        let known = application.kind(self.kind.as_str());
        let version = self.payload_version.or(known.map(|kind| kind.version));
        let version = version.ok_or_else(|| no_version(application, &self.kind))?;
        let mut job = NewJob::from_text(self.kind.clone(), version, self.text()?);
        if let Some(kind) = known {
            let policy = kind.policy;
            job.unique_key = self.read(kind, version, &job.payload)?;
            job.queue =
                QueueName::new(policy.queue).map_err(|error| Failure::wrong(error.to_string()))?;
            job.priority = Priority::clamped(i64::from(policy.priority));
            job.budget = policy.budget();
            job.expires_in = policy.expires_in;
        }
        if let Some(queue) = &self.queue {
            job.queue = queue.clone();
        }
        job.min_reader = self.readable_by.unwrap_or(job.min_reader);
        job.stamp().ok_or_else(|| Failure::wrong("the payload's version can't vouch for that reader: give `--readable-by` the same major and at most its minor"))?;
        job.priority = self.priority.unwrap_or(job.priority);
        job.unique_key = self.unique_key.clone().or(job.unique_key);
        Ok(job)
    }

    /// Reads the payload as a worker of this application will, and answers the key that it makes.
    fn read(&self, kind: &KnownKind, version: Version, payload: &str) -> Result<Option<UniqueKey>> {
        let wrong = |why: String| {
            Failure::wrong(format!(
                "this application can't read the payload as {} {version}: {why}; mend it, or add \
                 `--unchecked` to store it as it is",
                kind.name
            ))
        };
        let key = match kind.read(version, payload) {
            Ok(key) => key,
            Err(_) if self.unchecked => return Ok(None),
            Err(why) => return Err(wrong(why)),
        };
        key.map(UniqueKey::new).transpose().map_err(|error| wrong(error.to_string()))
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
            Ok(_) => {
                check_levels(&text).map_err(|error| Failure::wrong(error.to_string()))?;
                Ok(text)
            }
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
    Failure::wrong(what)
}
