//! What the database knows: how long runs took, and what holds the store up.

use std::collections::BTreeMap;
use std::time::Duration;

use super::finding::{Finding, Severity};
use super::{DEFAULT_GRACE, Granted};
use crate::Jobs;
use crate::cli::exit::Result;
use crate::cli::when::length;
use crate::drain::Split;
use crate::store::Filter;
use crate::{JobRecord, State};

/// So many of the latest successes are looked at.
const RUNS: u32 = 10_000;
/// A kind with fewer of them tells nothing about its slowest.
const FEWEST: usize = 20;
/// What lasts longer is worth a word.
const LASTING: Duration = Duration::from_mins(1);

/// Holds what files grant, or the default, against what was measured.
pub(super) async fn examine(jobs: &Jobs, granted: &[(String, Granted)]) -> Result<Vec<Finding>> {
    let filter = Filter { state: Some(State::Succeeded), ..Filter::default() };
    let runs = jobs.inspect().newest(&filter, RUNS).await?;
    let mut findings = Vec::new();
    if let Some((kind, slow, count)) = slowest(&runs) {
        let default = Granted { grace: DEFAULT_GRACE, line: None };
        let nobody = (String::new(), default);
        let all = if granted.is_empty() { std::slice::from_ref(&nobody) } else { granted };
        findings.extend(all.iter().map(|(file, granted)| {
            let finding = advice(&kind, slow, count, *granted);
            if file.is_empty() { finding } else { finding.in_file(file) }
        }));
    }
    let warnings = jobs.warnings(LASTING).await?;
    findings.extend(warnings.into_iter().map(|what| {
        let fix = "see above: it slows down every claim until then";
        Finding::new(Severity::Warning, "store_held_up", None, what, fix)
    }));
    Ok(findings)
}

/// The kind whose 99th percentile is the longest, that, and of how many runs.
fn slowest(runs: &[JobRecord]) -> Option<(String, Duration, usize)> {
    let mut by_kind: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for run in runs {
        if let (Some(claimed), Some(finished)) = (run.claimed_at, run.finished_at) {
            by_kind.entry(&run.kind).or_default().push(finished.since(claimed));
        }
    }
    by_kind.retain(|_, took| took.len() >= FEWEST);
    let slow = by_kind.into_iter().map(|(kind, mut took)| {
        took.sort_unstable();
        let at = (took.len() * 99).div_ceil(100) - 1;
        (kind.to_owned(), took[at], took.len())
    });
    slow.max_by_key(|(_, p99, _)| *p99)
}

fn advice(kind: &str, slow: Duration, count: usize, granted: Granted) -> Finding {
    let quiet = Split::of(granted.grace).quiet;
    let needed = needed(slow);
    let measured = format!("99 of 100 runs of {kind} took at most {} ({count} runs)", length(slow));
    let told =
        format!("a drain of {} lets them finish for {}", length(granted.grace), length(quiet));
    let (severity, code, fix) = if slow > quiet {
        let fix = format!(
            "grant at least {} s, or save checkpoints so that a run goes on where it was cut off",
            needed.as_secs()
        );
        (Severity::Warning, "grace_shorter_than_runs", fix)
    } else {
        let fix = format!("{} s would do", needed.as_secs());
        (Severity::Info, "grace_holds_runs", fix)
    };
    Finding::new(severity, code, granted.line, format!("{measured}; {told}"), fix)
}

/// The shortest grace period, in whole seconds, in which runs of this length finish.
fn needed(slow: Duration) -> Duration {
    Duration::from_secs(Split::grace_for(slow).as_secs().saturating_add(1))
}
