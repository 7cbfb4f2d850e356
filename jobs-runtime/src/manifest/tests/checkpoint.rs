//! Checkpoints between two builds.

use super::super::finding::{Code, Order, Severity};
use super::super::{HandledKind, Manifest, diff};
use super::{build, kind, told};

/// A build whose checkpoint reads these lines, vouched for from a reader on.
fn saves(reads: &[&str], readable_by: &str) -> HandledKind {
    HandledKind {
        checkpoint_reads: reads.iter().map(|&line| line.to_owned()).collect(),
        checkpoint_readable_by: readable_by.to_owned(),
        ..kind("a", "1.0.0", &["1.0"])
    }
}

fn between(old: &HandledKind, new: &HandledKind) -> super::super::Answer {
    let [old, new]: [Manifest; 2] = [old, new].map(|it| build(std::slice::from_ref(it)));
    diff(&old, &new)
}

#[test]
fn another_checkpoint_is_told_and_one_that_can_not_resume_is_an_error() {
    let code = Code::CheckpointBumped;
    for (from, to, severity) in [
        (&["1.0"][..], &["1.0 to 1.1"][..], Severity::Warning),
        (&["1.0"], &["1.0", "2.0"], Severity::Warning),
        (&["1.0"], &["2.0"], Severity::Error),
        (&["1.0 to 1.1"], &["1.0"], Severity::Error),
        (&["1.0"], &[], Severity::Error),
        (&[], &["1.0"], Severity::Warning),
        (&["1.0", "2.0"], &["2.0"], Severity::Warning),
    ] {
        let answer = between(&saves(from, ""), &saves(to, ""));
        assert_eq!(told(&answer), (vec![(code, severity)], Order::Any), "{from:?} {to:?}");
    }
    let same = saves(&["1.0", "2.0"], "");
    assert_eq!(told(&between(&same, &same)), (vec![], Order::Any));
}

#[test]
fn a_checkpoint_that_older_workers_read_blocks_neither_the_deploy_nor_the_rollback() {
    let (old, new) = (saves(&["1.0"], "1.0"), saves(&["1.0 to 1.1"], "1.0"));
    for (from, to) in [(&old, &new), (&new, &old)] {
        let answer = between(from, to);
        let wanted = vec![(Code::CheckpointBumped, Severity::Info)];
        assert_eq!(told(&answer), (wanted, Order::Any));
        assert!(answer.is_safe);
        let instead = &answer.findings[0].instead;
        assert!(
            instead.starts_with("Each of the two resumes what the other has saved"),
            "{answer}"
        );
    }
    // Vouched for from a reader on that the older build is not.
    let later = saves(&["1.0 to 1.2"], "1.1");
    let wanted = vec![(Code::CheckpointBumped, Severity::Warning)];
    assert_eq!(told(&between(&old, &later)), (wanted, Order::Any));
    let back = between(&later, &old);
    assert_eq!(told(&back), (vec![(Code::CheckpointBumped, Severity::Error)], Order::Any));
    let wanted = "Jobs that have saved 1.2 wait for a build that reads it: keep one running until they \
                  have ended";
    assert_eq!(back.findings[0].instead, wanted);
}

#[test]
fn a_job_that_begins_anew_does_not_wait() {
    let (old, new) = (saves(&["1.0"], ""), saves(&["2.0"], ""));
    let anew = HandledKind { restarts: true, ..new };
    let answer = between(&old, &anew);
    let wanted = vec![(Code::CheckpointBumped, Severity::Warning)];
    assert_eq!(told(&answer), (wanted, Order::Any));
    assert!(answer.findings[0].instead.contains("begin anew"), "{answer}");
    // What is newer is refused all the same.
    let old = HandledKind { restarts: true, ..old };
    let back = between(&saves(&["1.0 to 1.1"], ""), &old);
    assert_eq!(told(&back), (vec![(Code::CheckpointBumped, Severity::Error)], Order::Any));
}
