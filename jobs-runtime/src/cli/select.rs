//! Which jobs a command is about.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::when::{self, When};
use crate::store::{Filter, Span};
use crate::{JobId, Priority, State, Timestamp};

/// Narrows to some of the jobs; several narrow further.
#[derive(Debug, Clone, Args)]
pub(super) struct Selection {
    /// Only of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Only with this class of error.
    #[arg(long)]
    class: Option<String>,
    /// Only enqueued by this build.
    #[arg(long, value_name = "BUILD")]
    enqueued_by: Option<String>,
    /// Only failed by this build: it wrote the latest line of the job's history.
    #[arg(long, value_name = "BUILD")]
    failed_by: Option<String>,
    /// Only enqueued since then: `90m` ago, a day such as `2026-11-30` (UTC), or an instant.
    #[arg(long, value_name = "WHEN", value_parser = when::parse)]
    enqueued_since: Option<When>,
    /// Only enqueued before then.
    #[arg(long, value_name = "WHEN", value_parser = when::parse)]
    enqueued_until: Option<When>,
    /// Only ended since then.
    #[arg(long, value_name = "WHEN", value_parser = when::parse)]
    ended_since: Option<When>,
    /// Only ended before then.
    #[arg(long, value_name = "WHEN", value_parser = when::parse)]
    ended_until: Option<When>,
}

impl Selection {
    /// Whether it lets every job through.
    pub(super) fn is_all(&self) -> bool {
        self.filter(Timestamp::from_micros(0)) == Filter::default()
    }

    pub(super) fn filter(&self, now: Timestamp) -> Filter {
        let span = |from: Option<When>, before: Option<When>| Span {
            from: from.map(|when| when.resolved(now)),
            before: before.map(|when| when.resolved(now)),
        };
        Filter {
            queue: self.queue.clone(),
            kind: self.kind.clone(),
            class: self.class.clone(),
            enqueued_by: self.enqueued_by.clone(),
            failed_by: self.failed_by.clone(),
            enqueued: span(self.enqueued_since, self.enqueued_until),
            finished: span(self.ended_since, self.ended_until),
            ..Filter::default()
        }
    }
}

/// Reads the name of a state; the shell offers them.
pub(super) fn state() -> impl TypedValueParser<Value = State> {
    one_of(&State::ALL)
}

/// Reads the name of one of these states.
pub(super) fn one_of(states: &[State]) -> impl TypedValueParser<Value = State> + use<> {
    PossibleValuesParser::new(states.iter().map(|state| state.as_str()))
        .map(|name| State::from_name(&name).expect("the parser takes only names of states"))
}

/// Reads the number of a job.
pub(super) fn job_id(text: &str) -> Result<JobId, String> {
    let id = text.parse().map(JobId);
    id.map_err(|_| "write the number of a job, as `jobs list` shows it".to_owned())
}

/// Reads a priority.
pub(super) fn priority(text: &str) -> Result<Priority, String> {
    let value = text.parse().ok().and_then(Priority::new);
    value.ok_or_else(|| "write a whole number from -100 to 100".to_owned())
}

/// Each job once, in order.
pub(super) fn ids(jobs: &[JobId]) -> Vec<JobId> {
    let mut ids = jobs.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}
