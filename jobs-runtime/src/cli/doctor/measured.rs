//! What the database knows: how long runs took, and what holds the store up.

use std::collections::BTreeMap;
use std::time::Duration;

use super::finding::{Finding, Severity};
use super::{DEFAULT_GRACE, Granted};
use crate::cli::exit::Result;
use crate::cli::when::length;
use crate::drain::Split;
use crate::manifest::{Manifest, live};
use crate::store::{Brief, Filter, Inspect};
use crate::{EventKind, JobId, Jobs, State};

/// So many of the latest successes are looked at.
const RUNS: u32 = 10_000;
/// A kind with fewer of them tells nothing about its slowest.
const FEWEST: usize = 20;
/// With fewer of them the slowest of all is told, and not the slowest of 99 in 100.
const MANY: usize = 100;
/// At most so many histories are read to find successes that were stored late.
const HISTORIES: usize = 500;
/// What lasts longer is worth a word.
const LASTING: Duration = Duration::from_mins(1);

/// The runs of a kind from their claims to their settlements, the longest first.
type Runs = Vec<(Duration, JobId)>;

/// How long the slowest runs of a kind took.
#[derive(Debug)]
struct Slow {
    kind: String,
    took: Duration,
    runs: usize,
    /// Whether it is known of the runs that this goes by that none was stored late.
    is_certain: bool,
}

/// Holds what files grant, or what live workers state, against what was measured.
pub(super) async fn examine(jobs: &Jobs, granted: &[(String, Granted)]) -> Result<Vec<Finding>> {
    let inspect = jobs.inspect();
    let filter = Filter { state: Some(State::Succeeded), ..Filter::default() };
    let runs = inspect.newest_briefs(&filter, RUNS).await?;
    let mut findings = Vec::new();
    if let Some(slow) = slowest(inspect, by_kind(&runs)).await? {
        if granted.is_empty() {
            let stated = stated(&live(&inspect.workers().await?));
            let by = if stated.is_some() { "as live workers state it" } else { "the default" };
            let granted = Granted { grace: stated.unwrap_or(DEFAULT_GRACE), line: None };
            findings.push(advice(&slow, granted, &format!(", {by},")));
        }
        findings.extend(
            granted.iter().map(|(file, granted)| advice(&slow, *granted, "").in_file(file)),
        );
        if !slow.is_certain {
            findings.push(doubt(&slow));
        }
    }
    let warnings = jobs.warnings(LASTING).await?;
    findings.extend(warnings.into_iter().map(|what| {
        let fix = "see above: it slows down every claim until then";
        Finding::new(Severity::Warning, "store_held_up", None, what, fix)
    }));
    Ok(findings)
}

/// The shortest drain that live workers state.
fn stated(live: &[Manifest]) -> Option<Duration> {
    live.iter().filter_map(|manifest| manifest.drain_ms).min().map(Duration::from_millis)
}

fn by_kind(runs: &[Brief]) -> BTreeMap<&str, Runs> {
    let mut by_kind: BTreeMap<&str, Runs> = BTreeMap::new();
    for run in runs {
        if let (Some(claimed), Some(finished)) = (run.claimed_at, run.finished_at) {
            by_kind.entry(&run.kind).or_default().push((finished.since(claimed), run.id));
        }
    }
    by_kind.retain(|_, took| took.len() >= FEWEST);
    for took in by_kind.values_mut() {
        took.sort_unstable_by(|a, b| b.cmp(a));
    }
    by_kind
}

/// The kind whose slowest runs took the longest. Successes that could not be stored at once are left
/// out, as far as [`HISTORIES`] tell of them: it was the store that took so long.
async fn slowest(inspect: &dyn Inspect, mut by_kind: BTreeMap<&str, Runs>) -> Result<Option<Slow>> {
    let mut histories = 0;
    let mut checked: BTreeMap<&str, usize> = BTreeMap::new();
    loop {
        let all = by_kind.iter().filter(|(_, runs)| runs.len() >= FEWEST);
        let Some((kind, runs)) = all.max_by_key(|(_, runs)| runs[place(runs.len())].0) else {
            return Ok(None);
        };
        let (kind, place) = (*kind, place(runs.len()));
        let next = checked.entry(kind).or_default();
        let is_certain = *next > place;
        if is_certain || histories == HISTORIES {
            let (took, runs) = (runs[place].0, runs.len());
            return Ok(Some(Slow { kind: kind.to_owned(), took, runs, is_certain }));
        }
        let (at, (_, id)) = (*next, runs[*next]);
        histories += 1;
        let events = inspect.events(id).await?;
        if events.last().is_some_and(|latest| latest.kind == EventKind::SettledLate) {
            by_kind.entry(kind).or_default().remove(at);
        } else {
            *next += 1;
        }
    }
}

/// Where the run stands, among so many from the longest on, by which a kind is judged.
const fn place(runs: usize) -> usize {
    if runs < MANY { 0 } else { runs / 100 }
}

fn advice(slow: &Slow, granted: Granted, by: &str) -> Finding {
    let Slow { kind, took, runs, is_certain: _ } = slow;
    let quiet = Split::of(granted.grace).quiet;
    let needed = needed(*took);
    let measured = if *runs < MANY {
        format!("the longest of {runs} runs of {kind} took {}", length(*took))
    } else {
        format!("99 of 100 runs of {kind} took at most {} ({runs} runs)", length(*took))
    };
    let told =
        format!("a drain of {}{by} lets them finish for {}", length(granted.grace), length(quiet));
    let (severity, code, fix) = if *took > quiet {
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

/// What is said where more histories would have had to be read.
fn doubt(slow: &Slow) -> Finding {
    let what = format!(
        "{HISTORIES} histories were read to find successes that could not be stored at once, and no more: \
         what is told of {} may go by such a one, and then it was the store that took so long",
        slow.kind
    );
    let fix = format!("ask again when others are the latest {RUNS} successes: no more count");
    Finding::new(Severity::Info, "histories_unread", None, what, fix)
}

/// The shortest grace period, in whole seconds, in which runs of this length finish.
fn needed(slow: Duration) -> Duration {
    Duration::from_secs(Split::grace_for(slow).as_secs().saturating_add(1))
}
