//! `jobs list`.

use clap::{Args, ValueEnum};

use super::Context;
use super::exit::Result;
use super::output::{Shown, json_lines, say};
use super::record::JobAnswer;
use super::select::{Selection, job_id, state};
use super::when::second;
use crate::store::{Brief, Filter, Inspect};
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

/// Where a column's text comes from.
enum Source {
    /// What every listing reads.
    Brief(fn(&Brief) -> Shown),
    /// The whole job: it may be large, so that it is read only where somebody wants it.
    Whole(fn(&JobRecord) -> Option<&str>),
}

/// A job of the list, as much of it as was read.
struct Listed {
    brief: Brief,
    whole: Option<JobRecord>,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let now = jobs.clock().now();
        let filter = Filter { state: self.state, after: self.after, ..self.selection.filter(now) };
        // One more tells whether there are more.
        let found = self.read(jobs.inspect(), &filter, self.limit + 1, cx.output.is_json).await?;
        let page = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let shown = &found[..page.min(found.len())];
        if cx.output.is_json {
            json_lines(shown.iter().filter_map(|job| job.whole.as_ref()).map(JobAnswer::of))?;
        } else {
            let header: Vec<&str> =
                self.columns.iter().map(|column| column.title_and_source().0).collect();
            cx.output.table(&header, shown.iter().map(|job| self.row(job)).collect())?;
        }
        match shown.last() {
            None => say("jobs: no job matches; `jobs stats --by-kind` tells what there is"),
            Some(last) if found.len() > page => {
                say(&format!("jobs: there are more; go on with `--after {}`", last.brief.id));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// The jobs in the order that was asked for; whole ones where all of each is shown, or a column
    /// needs it.
    async fn read(
        &self,
        inspect: &dyn Inspect,
        filter: &Filter,
        most: u32,
        is_all_shown: bool,
    ) -> Result<Vec<Listed>> {
        let is_wide = |column: &Column| matches!(column.title_and_source().1, Source::Whole(_));
        if is_all_shown || self.columns.iter().any(is_wide) {
            let jobs = if self.oldest {
                inspect.jobs(filter, most).await?
            } else {
                inspect.newest(filter, most).await?
            };
            let listed = |job| Listed { brief: Brief::of(&job), whole: Some(job) };
            return Ok(jobs.into_iter().map(listed).collect());
        }
        let jobs = if self.oldest {
            inspect.briefs(filter, most).await?
        } else {
            inspect.newest_briefs(filter, most).await?
        };
        Ok(jobs.into_iter().map(|brief| Listed { brief, whole: None }).collect())
    }

    fn row(&self, job: &Listed) -> Vec<Shown> {
        let shown = |column: &Column| match column.title_and_source().1 {
            Source::Brief(of) => of(&job.brief),
            Source::Whole(of) => Shown::maybe(job.whole.as_ref().and_then(of)),
        };
        self.columns.iter().map(shown).collect()
    }
}

impl Column {
    /// Its title, and where its text comes from.
    fn title_and_source(self) -> (&'static str, Source) {
        use Source::{Brief, Whole};
        match self {
            Self::Id => ("ID", Brief(|job| Shown::new(job.id.to_string()))),
            Self::State => ("STATE", Brief(|job| Shown::state(job.state))),
            Self::Queue => ("QUEUE", Brief(|job| Shown::new(job.queue.as_str()))),
            Self::Kind => ("KIND", Brief(|job| Shown::new(job.kind.as_str()))),
            Self::Version => ("VERSION", Brief(|job| Shown::new(job.version.as_str()))),
            Self::Priority => {
                ("PRIORITY", Brief(|job| Shown::new(job.priority.value().to_string())))
            }
            Self::Failures => {
                ("FAILURES", Brief(|job| Shown::alarming(job.counters.failures.into())))
            }
            Self::Interruptions => {
                ("INTERRUPTIONS", Brief(|job| count(job.counters.interruptions)))
            }
            Self::Crashes => ("CRASHES", Brief(|job| Shown::alarming(job.counters.crashes.into()))),
            Self::Refusals => ("REFUSALS", Brief(|job| count(job.counters.refusals))),
            Self::Snoozes => ("SNOOZES", Brief(|job| count(job.counters.snoozes))),
            Self::Refused => (
                "REFUSED",
                Brief(|job| Shown::maybe(job.refused.as_ref().map(|by| by.reason.as_str()))),
            ),
            Self::Class => ("CLASS", Brief(|job| Shown::maybe(job.class.as_deref()))),
            Self::Error => ("ERROR", Whole(|job| job.error.as_deref())),
            Self::Build => ("BUILD", Brief(|job| Shown::maybe(job.build.as_deref()))),
            Self::Worker => {
                ("WORKER", Brief(|job| Shown::maybe(job.worker.map(|worker| worker.to_string()))))
            }
            Self::Key => ("KEY", Brief(|job| Shown::maybe(job.unique_key.as_deref()))),
            Self::Enqueued => ("ENQUEUED", Brief(|job| Shown::new(second(job.enqueued_at)))),
            Self::Due => ("DUE", Brief(|job| Shown::new(second(job.due_at)))),
            Self::Claimed => ("CLAIMED", Brief(|job| Shown::maybe(job.claimed_at.map(second)))),
            Self::Finished => ("FINISHED", Brief(|job| Shown::maybe(job.finished_at.map(second)))),
            Self::Progress => ("PROGRESS", Whole(|job| job.progress.as_deref())),
            Self::Result => ("RESULT", Whole(|job| job.result.as_deref())),
            Self::Payload => ("PAYLOAD", Whole(|job| Some(&job.payload))),
        }
    }
}

fn count(count: u32) -> Shown {
    Shown::new(count.to_string())
}
