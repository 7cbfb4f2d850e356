//! What waits in the store and would be left unread.
//!
//! Each kind and version that waits is judged by what workers judge it by. So it makes no difference
//! whether the builds that read it are live at this moment, or ended a minute ago.

use std::collections::{BTreeMap, BTreeSet};

use jobs_core::store::Waiting;

use super::{Comparison, finding, jobs_wait};
use crate::manifest::Manifest;
use crate::manifest::finding::{Code, Finding, Severity};

/// How many versions a finding names.
const NAMED: usize = 5;

impl Comparison<'_> {
    /// Waiting jobs that the candidate can't read or would end, where no earlier finding counts those
    /// of their kind.
    pub(super) fn left_behind(&self, earlier: &[Finding]) -> Vec<Finding> {
        let waiting = self.waiting.into_iter().flatten();
        let kinds: BTreeSet<&str> = waiting.map(|waiting| waiting.kind.as_str()).collect();
        let is_counted = |kind: &str| {
            let counts = |it: &Finding| it.code.is_gone() && it.severity == Severity::Error;
            earlier.iter().any(|it| it.kind == kind && counts(it))
        };
        let told = kinds.into_iter().filter(|kind| !is_counted(kind)).filter_map(|kind| {
            if self.candidate.retired.iter().any(|retired| retired == kind) {
                self.retired(kind)
            } else if self.candidate.handled(kind).is_some() {
                self.stranded(kind)
            } else {
                self.of_nobody(kind)
            }
        });
        told.collect()
    }

    /// Jobs of a kind that the candidate does not handle.
    fn of_nobody(&self, kind: &str) -> Option<Finding> {
        if self.live.iter().any(|live| live.handled(kind).is_some()) {
            return self.gone(kind);
        }
        let jobs = self.unreadable(kind).filter(|jobs| *jobs > 0)?;
        let what = format!("{}, and neither a live build nor this one handles it", jobs_wait(jobs));
        let instead = "Deploy a build that does, or declare it `retired`; see `jobs stranded`";
        Some(finding(Code::KindRemoved, Severity::Error, kind, what, instead))
    }

    /// Jobs of a kind that the candidate handles, as versions that it can't read.
    fn stranded(&self, kind: &str) -> Option<Finding> {
        let of_kind = self.waiting?.iter().filter(|it| it.kind == kind);
        let unread: Vec<&Waiting> = of_kind.filter(|it| !takes(self.candidate, it)).collect();
        if unread.is_empty() {
            return None;
        }
        let is_read = |it: &&&Waiting| self.live.iter().any(|live| takes(live, it));
        let (what, instead) = if unread.iter().any(|it| is_read(&it)) {
            let what = format!("this build can't read {}; only live ones can", counted(&unread));
            (what, "Keep a live one until they have run, or read them here too")
        } else {
            let what = format!("this build can't read {}, nor can a live one", counted(&unread));
            let instead = "They wait for a build that reads them, and nothing is lost: run one until \
                           they have ended; see `jobs stranded`";
            (what, instead)
        };
        Some(finding(Code::Stranded, Severity::Error, kind, what, instead))
    }
}

fn takes(build: &Manifest, waiting: &Waiting) -> bool {
    build.takes(&waiting.kind, &waiting.version, waiting.min_reader.as_deref())
}

/// How many wait as which version.
fn counted(waiting: &[&Waiting]) -> String {
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    for it in waiting {
        *versions.entry(&it.version).or_default() += it.jobs;
    }
    let mut parts: Vec<String> = Vec::new();
    for (version, jobs) in versions.iter().take(NAMED) {
        let noun = match (parts.is_empty(), *jobs) {
            (true, 1) => " job",
            (true, _) => " jobs",
            (false, _) => "",
        };
        let verb = if *jobs == 1 { "waits" } else { "wait" };
        parts.push(format!("{jobs}{noun} that {verb} as {version}"));
    }
    if versions.len() > NAMED {
        let jobs: u64 = versions.values().skip(NAMED).sum();
        parts.push(format!("{jobs} of other versions"));
    }
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
