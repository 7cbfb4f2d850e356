//! `jobs list`.

use clap::{Args, ValueEnum};

use super::Context;
use super::exit::Result;
use super::output::{Shown, json_lines, say};
use super::record::JobAnswer;
use super::select::{Selection, job_id, state};
use super::when::second;
use crate::store::{Brief, Filter};
use crate::{JobId, JobRecord, State};

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  jobs list --state dead --kind billing.charge\n  \
                        jobs list --columns id,kind,error --limit 500\n  \
                        jobs list --json --oldest --after 1200 | jq '.[].payload'")]
pub struct Options {
    /// Only in this state.
    #[arg(long, value_parser = state())]
    state: Option<State>,
    #[command(flatten)]
    selection: Selection,
    /// The oldest first, instead of the newest.
    #[arg(long)]
    oldest: bool,
    /// Only behind this job in the order of the list: where the page before ended.
    #[arg(long, value_name = "JOB", value_parser = job_id)]
    after: Option<JobId>,
    /// At most this many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// The columns of the table, in this order. JSON has them all.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "id,state,queue,kind,version,failures,due,class"
    )]
    columns: Vec<Column>,
}

/// What a table can show of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Column {
    Id,
    State,
    Queue,
    Kind,
    Version,
    Priority,
    Failures,
    Interruptions,
    Crashes,
    Refusals,
    Snoozes,
    Refused,
    Class,
    Error,
    Build,
    Worker,
    Key,
    Enqueued,
    Due,
    Claimed,
    Finished,
    Progress,
    Result,
    Payload,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let now = jobs.clock().now();
        let filter = Filter { state: self.state, after: self.after, ..self.selection.filter(now) };
        // One more tells whether there are more.
        let most = self.limit + 1;
        let page = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let inspect = jobs.inspect();
        let ids: Vec<JobId> = if cx.output.is_json || self.columns.iter().any(|it| it.is_wide()) {
            let found = if self.oldest {
                inspect.jobs(&filter, most).await?
            } else {
                inspect.newest(&filter, most).await?
            };
            let shown = &found[..page.min(found.len())];
            if cx.output.is_json {
                json_lines(shown.iter().map(JobAnswer::of))?;
            } else {
                let rows = shown.iter().map(|job| self.row(&Brief::of(job), Some(job)));
                cx.output.table(&self.header(), rows.collect())?;
            }
            found.iter().map(|job| job.id).collect()
        } else {
            let found = if self.oldest {
                inspect.briefs(&filter, most).await?
            } else {
                inspect.newest_briefs(&filter, most).await?
            };
            let shown = &found[..page.min(found.len())];
            let rows = shown.iter().map(|job| self.row(job, None));
            cx.output.table(&self.header(), rows.collect())?;
            found.iter().map(|job| job.id).collect()
        };
        if ids.is_empty() {
            say("jobs: no job matches; `jobs stats --by-kind` tells what there is");
        }
        if ids.len() > page {
            say(&format!("jobs: there are more; go on with `--after {}`", ids[page - 1]));
        }
        Ok(())
    }

    fn header(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.title()).collect()
    }

    fn row(&self, job: &Brief, whole: Option<&JobRecord>) -> Vec<Shown> {
        self.columns.iter().map(|column| column.of(job, whole)).collect()
    }
}

impl Column {
    /// Whether it may be large, and is read only where somebody wants it.
    const fn is_wide(self) -> bool {
        matches!(self, Self::Error | Self::Progress | Self::Result | Self::Payload)
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Id => "ID",
            Self::State => "STATE",
            Self::Queue => "QUEUE",
            Self::Kind => "KIND",
            Self::Version => "VERSION",
            Self::Priority => "PRIORITY",
            Self::Failures => "FAILURES",
            Self::Interruptions => "INTERRUPTIONS",
            Self::Crashes => "CRASHES",
            Self::Refusals => "REFUSALS",
            Self::Snoozes => "SNOOZES",
            Self::Refused => "REFUSED",
            Self::Class => "CLASS",
            Self::Error => "ERROR",
            Self::Build => "BUILD",
            Self::Worker => "WORKER",
            Self::Key => "KEY",
            Self::Enqueued => "ENQUEUED",
            Self::Due => "DUE",
            Self::Claimed => "CLAIMED",
            Self::Finished => "FINISHED",
            Self::Progress => "PROGRESS",
            Self::Result => "RESULT",
            Self::Payload => "PAYLOAD",
        }
    }

    fn of(self, job: &Brief, whole: Option<&JobRecord>) -> Shown {
        let count = |count: u32| Shown::new(count.to_string());
        let text = |text: &Option<String>| Shown::maybe(text.as_deref());
        let wide = |of: fn(&JobRecord) -> Option<&str>| Shown::maybe(whole.and_then(of));
        match self {
            Self::Id => Shown::new(job.id.to_string()),
            Self::State => Shown::state(job.state),
            Self::Queue => Shown::new(job.queue.as_str()),
            Self::Kind => Shown::new(job.kind.as_str()),
            Self::Version => Shown::new(job.version.as_str()),
            Self::Priority => Shown::new(job.priority.value().to_string()),
            Self::Failures => Shown::alarming(job.counters.failures.into()),
            Self::Interruptions => count(job.counters.interruptions),
            Self::Crashes => Shown::alarming(job.counters.crashes.into()),
            Self::Refusals => count(job.counters.refusals),
            Self::Snoozes => count(job.counters.snoozes),
            Self::Refused => Shown::maybe(job.refused.as_ref().map(|by| by.reason.as_str())),
            Self::Class => text(&job.class),
            Self::Error => wide(|job| job.error.as_deref()),
            Self::Build => text(&job.build),
            Self::Worker => Shown::maybe(job.worker.map(|worker| worker.to_string())),
            Self::Key => text(&job.unique_key),
            Self::Enqueued => Shown::new(second(job.enqueued_at)),
            Self::Due => Shown::new(second(job.due_at)),
            Self::Claimed => Shown::maybe(job.claimed_at.map(second)),
            Self::Finished => Shown::maybe(job.finished_at.map(second)),
            Self::Progress => wide(|job| job.progress.as_deref()),
            Self::Result => wide(|job| job.result.as_deref()),
            Self::Payload => wide(|job| Some(&job.payload)),
        }
    }
}
