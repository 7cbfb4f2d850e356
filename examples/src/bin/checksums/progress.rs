//! How far the run is: a bar on a terminal, a plain line now and then elsewhere.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};
use jobs_runtime::{JobId, prelude::*};

/// Waits until every job has ended.
pub(crate) async fn until_all_ended(jobs: &Jobs, ids: &[JobId]) {
    let bar = bar(ids.len());
    let is_terminal = std::io::stderr().is_terminal();
    let tenth = ids.len().div_ceil(10).max(1);
    for (done, id) in (1..).zip(ids) {
        if let Err(error) = jobs.wait(*id).await {
            eprintln!("can't follow job {id}: {error}");
        }
        bar.inc(1);
        if !is_terminal && done % tenth == 0 {
            eprintln!("{done} of {} files read", ids.len());
        }
    }
    bar.finish_and_clear();
}

fn bar(length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} files, {per_sec}, {eta} left");
    let bar = ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
