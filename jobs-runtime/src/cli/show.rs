//! `jobs show`.

use std::fmt::Write;

use clap::Args;

use super::Context;
use super::exit::{Failure, Result};
use super::output::{Output, Shown, facts, json, print};
use super::pretty::pretty;
use super::record::JobAnswer;
use super::select::job_id;
use super::visible::visible;
use super::when::{distance, length, second};
use crate::store::WorkerRecord;
use crate::{Event, JobId, JobRecord, MinReader, State, Timestamp, UniqueWhile, Version, WorkerId};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The job.
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: JobId,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let id = self.job;
        let job = jobs.inspect().job(id).await?.ok_or_else(|| {
            Failure::finding(format!(
                "there is no job {id} (any more); `jobs list` shows which are"
            ))
        })?;
        let events = jobs.inspect().events(id).await?;
        // How the worker is called that runs it or ran it, for as long as the store remembers that.
        let workers = match job.worker {
            Some(_) => jobs.inspect().workers().await?,
            None => Vec::new(),
        };
        let by = job.worker.map(|id| By { id, of: workers.iter().find(|it| it.id == id) });
        if cx.output.is_json {
            let build = by.and_then(|by| Some(by.of?.build.as_str()));
            return json(&JobAnswer::of(&job).with_history(&events).run_by(build));
        }
        told(cx.output, &job, by, &events, jobs.clock().now())
    }
}

/// The worker that runs a job, or ran it to its success.
#[derive(Clone, Copy)]
struct By<'a> {
    id: WorkerId,
    of: Option<&'a WorkerRecord>,
}

impl By<'_> {
    fn told(self) -> String {
        match self.of {
            Some(worker) => format!(
                "{} of {} (worker {})",
                visible(&worker.name),
                visible(&worker.build),
                self.id
            ),
            None => format!("worker {}, which is forgotten by now", self.id),
        }
    }
}

fn told(
    output: Output,
    job: &JobRecord,
    by: Option<By<'_>>,
    events: &[Event],
    now: Timestamp,
) -> Result<()> {
    facts(&told_facts(job, by, now))?;
    output.heading("Payload")?;
    print(&indented(&pretty(&job.payload)))?;
    if let Some(headers) = &job.headers {
        output.heading("Headers")?;
        print(&indented(&pretty(headers)))?;
    }
    if let Some(saved) = &job.checkpoint {
        output.heading(&format!("Checkpoint {}, version {}", saved.number, saved.version))?;
        print(&indented(&pretty(&saved.text)))?;
    }
    if let Some(result) = &job.result {
        output.heading("Result")?;
        print(&indented(&pretty(result)))?;
    }
    if let Some(error) = &job.error {
        output.heading("Latest error")?;
        print(&indented(error))?;
    }
    if !events.is_empty() {
        output.heading("History")?;
        let header = ["AT", "CLAIM", "EVENT", "CLASS", "BUILD", "WORKER", "TEXT"];
        output.table(&header, events.iter().map(row).collect())?;
    }
    Ok(())
}

fn told_facts(job: &JobRecord, by: Option<By<'_>>, now: Timestamp) -> Vec<(&'static str, String)> {
    let instant = |at: Timestamp| format!("{} ({})", second(at), distance(at, now));
    let mut state = job.state.as_str().to_owned();
    if let Some(class) = job.error_class.as_deref().filter(|_| job.state == State::Dead) {
        let _ = write!(state, ": {}", visible(class));
    }
    let mut version = visible(&job.version);
    let own = Version::parse(&job.version).map(Version::own_reader);
    let vouched = job.min_reader.as_deref();
    if let Some(reader) = vouched.filter(|reader| MinReader::parse(reader) != own) {
        let _ = write!(version, ", readable by {} and newer", visible(reader));
    }
    let counters = job.counters;
    let mut facts = vec![
        ("Job", job.id.to_string()),
        ("State", state),
        ("Kind", visible(&job.kind)),
        ("Version", version),
        ("Queue", visible(&job.queue)),
        ("Priority", job.priority.value().to_string()),
        ("Failures", format!("{} of {}", counters.failures, job.budget.max_failures)),
        (
            "Interruptions",
            match job.budget.max_interruptions {
                Some(most) => format!("{} of {most} since it last got on", counters.interruptions),
                None => format!("{} since it last got on", counters.interruptions),
            },
        ),
        ("Crashes", format!("{} in a row", counters.crashes)),
        ("Refusals", counters.refusals.to_string()),
        ("Snoozes", counters.snoozes.to_string()),
        ("Claim", job.claim.to_string()),
    ];
    if let Some(key) = &job.unique_key {
        let binds = match job.unique_while {
            UniqueWhile::Waiting => "while it waits",
            UniqueWhile::Running => "while it waits or runs",
            UniqueWhile::Kept => "for as long as it is kept",
        };
        facts.push(("Unique key", format!("{}, {binds}", visible(key))));
    }
    if job.key_number > 0 {
        let times = if job.key_number == 1 { "redrive" } else { "redrives" };
        facts.push(("Idempotency key", format!("new by {} {times}", job.key_number)));
    }
    if let Some(by) = &job.refused {
        facts.push(("Refused", format!("{} by {}", visible(&by.reason), visible(&by.build))));
    }
    if let Some(progress) = &job.progress {
        facts.push(("Progress", visible(progress)));
    }
    if let Some(by) = by {
        let is_over = job.state == State::Succeeded;
        facts.push((if is_over { "Run by" } else { "Runs by" }, by.told()));
    }
    if let Some(build) = &job.build {
        facts.push(("Enqueued by", visible(build)));
    }
    facts.push(("Enqueued", instant(job.enqueued_at)));
    facts.push(("Due", instant(job.due_at)));
    facts.extend(job.expires_at.map(|at| ("Starts no later than", instant(at))));
    facts.extend(job.claimed_at.map(|at| ("Claimed", instant(at))));
    facts.extend(job.finished_at.map(|at| ("Finished", instant(at))));
    if let (Some(claimed), Some(finished)) = (job.claimed_at, job.finished_at) {
        facts.push(("Last run took", length(finished.since(claimed))));
    }
    facts
}

fn row(event: &Event) -> Vec<Shown> {
    vec![
        Shown::new(second(event.at)),
        Shown::new(event.claim.to_string()),
        Shown::new(event.kind.as_str()),
        Shown::new(event.class.as_str()),
        Shown::maybe(event.build.as_deref()),
        Shown::maybe(event.worker.map(|worker| worker.to_string())),
        Shown::new(event.text.as_str()),
    ]
}

/// The lines of a text that others stored, each made visible.
fn indented(text: &str) -> String {
    text.split('\n').map(|line| format!("  {}\n", visible(line))).collect::<Vec<_>>().concat()
}
