//! Checkpoints between two builds: each is judged by what the workers of the other judge it by.

use jobs_core::{Reader, Refusal, Stamp, Verdict, judge};

use super::finding;
use crate::manifest::finding::{Code, Finding, Severity};
use crate::manifest::{HandledKind, lines};

/// What a build does with a job that has saved a checkpoint of the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meets {
    Reads,
    BeginsAnew,
    Refuses(Refusal),
}

/// What a candidate and a live build do to the checkpoints of each other.
pub(super) fn checkpoint(old: &HandledKind, new: &HandledKind) -> Option<Finding> {
    let (before, after) = (old.saves(), new.saves());
    let of = |saved: Option<Stamp>| {
        saved.map_or("none".to_owned(), |saved| saved.version().own_reader().to_string())
    };
    let (from, to) = (of(before), of(after));
    if from == to {
        return dropped(old, new);
    }
    let ahead = before.map_or(Meets::Reads, |saved| meets(new, saved));
    let back = after.map_or(Meets::Reads, |saved| meets(old, saved));
    let (severity, instead) = match (ahead, back) {
        (Meets::Refuses(Refusal::Newer), _) => {
            let instead = format!(
                "Jobs that have saved {from} wait for a build that reads it: keep one running until \
                 they have ended"
            );
            (Severity::Error, instead)
        }
        (Meets::Refuses(_), _) => {
            let instead = format!(
                "Jobs that have saved {from} could not resume: keep its shape and name it as \
                 `previous` of the checkpoint"
            );
            (Severity::Error, instead)
        }
        (Meets::BeginsAnew, _) => {
            let instead = format!(
                "Jobs that have saved {from} begin anew, as `on_old_checkpoint` says; to resume them \
                 keep its shape and name it as `previous` of the checkpoint"
            );
            (Severity::Warning, instead)
        }
        (Meets::Reads, Meets::Refuses(_)) => {
            let instead = format!(
                "Older workers give back what has saved {to}: a rollback leaves those jobs waiting \
                 until this build is back"
            );
            (Severity::Warning, instead)
        }
        (Meets::Reads, Meets::BeginsAnew) => {
            (Severity::Warning, format!("On live workers jobs that have saved {to} begin anew"))
        }
        (Meets::Reads, Meets::Reads) => {
            let instead =
                "Each of the two resumes what the other has saved; that a `readable_by` is \
                           true only the tests `jobs_lock_checkpoint_…` of the drift check can tell"
                    .to_owned();
            (Severity::Info, instead)
        }
    };
    let what = format!("its checkpoint is {to} instead of {from}");
    Some(finding(Code::CheckpointBumped, severity, &old.newest.kind, what, instead))
}

/// Older majors of a checkpoint that only the live build still reads.
fn dropped(old: &HandledKind, new: &HandledKind) -> Option<Finding> {
    let after = lines(&new.checkpoint_reads);
    let is_dropped = |major: u32| !after.iter().any(|line| line.major == major);
    let before = lines(&old.checkpoint_reads);
    let line = before.iter().find(|line| is_dropped(line.major))?;
    let (major, minor) = (line.major, line.minor);
    let what = format!("a live build reads its checkpoint {major}.{minor}, this one does not");
    let instead = "Jobs that have saved it and not run since could not resume: keep its shape in the \
                   chain of `previous` until none of them is left";
    Some(finding(Code::CheckpointBumped, Severity::Warning, &old.newest.kind, what, instead))
}

fn meets(build: &HandledKind, saved: Stamp) -> Meets {
    let lines = lines(&build.checkpoint_reads);
    if lines.is_empty() {
        return Meets::Refuses(Refusal::Checkpoint);
    }
    match judge(saved, Reader::Reads(&lines)) {
        Verdict::Run | Verdict::Upcast { .. } | Verdict::TolerantRead { .. } => Meets::Reads,
        Verdict::Refuse(Refusal::Older) if build.restarts => Meets::BeginsAnew,
        Verdict::Refuse(refusal) => Meets::Refuses(refusal),
        Verdict::Retired => Meets::Refuses(Refusal::Checkpoint),
    }
}
