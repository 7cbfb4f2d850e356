//! Which jobs a command is about.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::store::Filter;
use crate::{JobId, State};

/// Narrows to some of the jobs; several narrow further.
#[derive(Debug, Clone, Args)]
pub(super) struct Selection {
    /// Only of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only of this kind.
    #[arg(long)]
    kind: Option<String>,
}

impl Selection {
    pub(super) fn filter(&self) -> Filter {
        Filter { queue: self.queue.clone(), kind: self.kind.clone(), ..Filter::default() }
    }
}

/// Reads the name of a state; the shell offers them.
pub(super) fn state() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::as_str))
        .map(|name| State::from_name(&name).expect("the parser takes only names of states"))
}

/// Reads the number of a job.
pub(super) fn job_id(text: &str) -> Result<JobId, String> {
    let id = text.parse().map(JobId);
    id.map_err(|_| "write the number of a job, as `jobs list` shows it".to_owned())
}

/// Each job once, in order.
pub(super) fn ids(jobs: &[JobId]) -> Vec<JobId> {
    let mut ids = jobs.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}
