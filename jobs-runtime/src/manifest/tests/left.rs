//! What waits and would be left unread.

use super::super::finding::{Code, Order, Severity};
use super::super::{Manifest, check};
use super::{build, kind, told, waiting};

/// A rollback whose newer workers are gone is no safer than one beside them.
#[test]
fn versions_that_neither_a_live_build_nor_the_candidate_reads_are_an_error() {
    let old = build(&[kind("a", "1.4.0", &["1.4"])]);
    let rows = [waiting("a", "1.4.0", 5), waiting("a", "2.0.0", 30), waiting("a", "1.5.1", 1)];
    let wanted = (vec![(Code::Stranded, Severity::Error)], Order::Any);
    for live in [vec![], vec![old.clone()]] {
        let answer = check(&old, &live, &[], &rows);
        assert_eq!(told(&answer), wanted, "{answer}");
        assert!(!answer.is_safe);
        let what = "this build can't read 1 job that waits as 1.5.1 and 30 that wait as 2.0.0, nor \
                    can a live one";
        assert_eq!(answer.findings[0].what, what);
    }
    let mut other = kind("b", "1.0.0", &["1.0"]);
    other.aliases.push("a".to_owned());
    let older = check(&build(&[other]), &[], &[], &[waiting("a", "2.0.0", 2)]);
    assert_eq!(told(&older), wanted, "under an alias: {older}");
}

#[test]
fn versions_that_the_candidate_reads_are_left_to_nobody() {
    let new = build(&[kind("a", "2.0.0", &["1.4", "2.0"])]);
    let rows = [waiting("a", "1.2.0", 1), waiting("a", "2.0.7", 1), waiting("a", "two", 1)];
    assert_eq!(told(&check(&new, &[], &[], &rows)), (vec![], Order::Any));
    let old = build(&[kind("a", "1.4.0", &["1.4"])]);
    let mut vouched = waiting("a", "1.6.0", 9);
    vouched.min_reader = Some("1.4".to_owned());
    assert_eq!(told(&check(&old, &[], &[], &[vouched])), (vec![], Order::Any));
}

/// The finding about the builds counts those jobs already.
#[test]
fn what_a_rollback_beside_live_builds_leaves_unread_is_told_once() {
    let (old, new) = (kind("a", "1.0.0", &["1.0"]), kind("a", "2.0.0", &["1.0", "2.0"]));
    let answer = check(&build(&[old]), &[build(&[new])], &[], &[waiting("a", "2.0.0", 3)]);
    let wanted = vec![(Code::VersionRegressed, Severity::Error)];
    assert_eq!(told(&answer), (wanted, Order::ProducersFirst), "{answer}");
}

/// Only live builds read them, under an alias or a name that the candidate reads otherwise.
#[test]
fn jobs_under_an_alias_are_not_forgotten() {
    let renamed = || {
        let mut it = kind("b", "2.0.0", &["1.0", "2.0"]);
        it.aliases.push("a".to_owned());
        it
    };
    let rows = [waiting("a", "2.0.0", 3)];
    let of_a = |answer: &super::super::Answer| {
        let of_a = answer.findings.iter().filter(|it| it.kind == "a");
        of_a.map(|it| (it.code, it.severity)).collect::<Vec<_>>()
    };
    let live = [build(&[renamed()])];
    // The candidate reads the new name alone.
    let alone = build(&[kind("b", "2.0.0", &["1.0", "2.0"])]);
    let answer = check(&alone, &live, &[], &rows);
    assert_eq!(of_a(&answer), [(Code::KindRemoved, Severity::Error)], "{answer}");
    // It has the old name back, as it was.
    let back = build(&[kind("a", "1.0.0", &["1.0"]), kind("b", "2.0.0", &["2.0"])]);
    let answer = check(&back, &live, &[], &rows);
    assert_eq!(of_a(&answer), [(Code::Stranded, Severity::Error)], "{answer}");
    // It has retired the old name.
    let retired = vec!["a".to_owned()];
    let answer = check(&Manifest { retired, ..alone }, &live, &[], &rows);
    assert_eq!(of_a(&answer), [(Code::RetiredWithRows, Severity::Error)], "{answer}");
}

/// Whether a worker happens to be up makes no difference to them.
#[test]
fn jobs_of_a_kind_that_nobody_handles_are_an_error() {
    let answer = check(&build(&[]), &[], &[], &[waiting("lost", "1.0.0", 4)]);
    let wanted = vec![(Code::KindRemoved, Severity::Error)];
    assert_eq!(told(&answer), (wanted, Order::ProducersFirst));
    assert!(answer.findings[0].what.contains("4 jobs of it wait"), "{answer}");
}
