//! Every finding: what brings it up, how bad it is, and the order that follows.

use jobs_core::Timestamp;
use jobs_core::store::Waiting;

use super::finding::{Code, Order, Severity};
use super::{HandledKind, Manifest, ProducedKind, ScheduledKind, check, diff};

mod checkpoint;
mod left;

fn produced(kind: &str, version: &str) -> ProducedKind {
    ProducedKind {
        kind: kind.to_owned(),
        version: version.to_owned(),
        readable_by: version.rsplit_once('.').expect("three numbers").0.to_owned(),
        queue: "default".to_owned(),
        fingerprint: format!("{kind} {version}"),
    }
}

/// A kind at a version, which reads these lines.
fn kind(kind: &str, version: &str, reads: &[&str]) -> HandledKind {
    HandledKind {
        newest: produced(kind, version),
        aliases: Vec::new(),
        reads: reads.iter().map(|&line| line.to_owned()).collect(),
        checkpoint_reads: vec!["1.0".to_owned()],
        checkpoint_readable_by: "1.0".to_owned(),
        restarts: false,
        priority: 0,
        max_failures: 20,
        timeout_ms: None,
    }
}

fn build(handles: &[HandledKind]) -> Manifest {
    Manifest { handles: handles.to_vec(), ..Manifest::default() }
}

fn waiting(kind: &str, version: &str, jobs: u64) -> Waiting {
    Waiting {
        queue: "default".to_owned(),
        kind: kind.to_owned(),
        version: version.to_owned(),
        min_reader: None,
        jobs,
        refused: 0,
        oldest_at: Timestamp::from_micros(0),
    }
}

/// The codes and severities of a comparison, and its order.
fn told(answer: &super::Answer) -> (Vec<(Code, Severity)>, Order) {
    let findings = answer.findings.iter().map(|it| (it.code, it.severity)).collect();
    (findings, answer.order)
}

#[test]
fn the_same_build_finds_nothing() {
    let same = build(&[kind("a", "1.2.0", &["1.2"])]);
    let answer = diff(&same, &same);
    assert_eq!(told(&answer), (vec![], Order::Any));
    assert!(answer.is_safe);
    assert_eq!(answer.to_string(), "safe to deploy: deploy workers and producers in any order\n");
}

#[test]
fn a_removed_kind_is_an_error_until_nothing_of_it_waits() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let new = build(&[]);
    let code = Code::KindRemoved;
    let order = Order::ProducersFirst;
    assert_eq!(told(&diff(&old, &new)), (vec![(code, Severity::Error)], order));
    let live = [old];
    let some = check(&new, &live, &[], &[waiting("a", "1.0.0", 3)]);
    assert_eq!(told(&some), (vec![(code, Severity::Error)], order));
    assert!(some.findings[0].what.contains("3 jobs of it wait"), "{some}");
    assert_eq!(told(&check(&new, &live, &[], &[])), (vec![(code, Severity::Warning)], order));
}

#[test]
fn a_kind_under_an_alias_is_not_removed() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let mut renamed = kind("b", "1.0.0", &["1.0"]);
    renamed.aliases.push("a".to_owned());
    renamed.newest.fingerprint.clone_from(&old.handles[0].newest.fingerprint);
    let answer = check(&build(&[renamed]), &[old], &[], &[waiting("a", "1.0.0", 3)]);
    let codes: Vec<Code> = answer.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [Code::KindAddedAndProduced], "{answer}");
}

#[test]
fn what_only_the_candidate_handles_needs_its_workers_first() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let new = build(&[kind("a", "1.0.0", &["1.0"]), kind("b", "1.0.0", &["1.0"])]);
    let wanted = vec![(Code::KindAddedAndProduced, Severity::Info)];
    assert_eq!(told(&diff(&old, &new)), (wanted, Order::WorkersFirst));
    assert_eq!(told(&check(&new, &[], &[], &[])), (vec![], Order::Any), "the first deploy of all");
}

#[test]
fn what_nobody_handles_is_an_error() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let handles = old.handles.clone();
    let produces = vec![produced("a", "1.1.0"), produced("b", "1.0.0")];
    let new = Manifest { handles, produces, ..Manifest::default() };
    let wanted =
        vec![(Code::KindAddedAndProduced, Severity::Error), (Code::VersionAhead, Severity::Error)];
    assert_eq!(told(&diff(&old, &new)), (wanted, Order::WorkersFirst));
    let both = build(&[kind("a", "1.1.0", &["1.1"]), kind("b", "1.0.0", &["1.0"])]);
    let answer = check(&new, &[old, both], &[], &[]);
    let is_new = |code| [Code::KindAddedAndProduced, Code::VersionAhead].contains(&code);
    assert!(
        !answer.findings.iter().any(|it| is_new(it.code)),
        "one live build is enough: {answer}"
    );
}

#[test]
fn a_newer_minor_waits_for_the_new_workers() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let new = build(&[kind("a", "1.1.0", &["1.1"])]);
    let wanted = vec![(Code::VersionAhead, Severity::Info)];
    assert_eq!(told(&diff(&old, &new)), (wanted, Order::WorkersFirst));
}

#[test]
fn a_rollback_is_told_with_what_would_wait() {
    let new = build(&[kind("a", "1.0.0", &["1.0"])]);
    let live = [build(&[kind("a", "1.1.0", &["1.1"])])];
    let code = Code::VersionRegressed;
    let order = Order::ProducersFirst;
    assert_eq!(told(&diff(&live[0], &new)), (vec![(code, Severity::Warning)], order));
    let none = check(&new, &live, &[], &[waiting("a", "1.0.3", 9)]);
    assert_eq!(told(&none), (vec![(code, Severity::Warning)], order));
    let some = check(&new, &live, &[], &[waiting("a", "1.1.0", 9)]);
    assert_eq!(told(&some), (vec![(code, Severity::Error)], order));
    assert!(some.findings[0].what.contains("9 jobs wait"), "{some}");
    // A newer major is a rollback too.
    let live = [build(&[kind("a", "2.0.0", &["1.0", "2.0"])])];
    assert_eq!(told(&check(&new, &live, &[], &[])), (vec![(code, Severity::Warning)], order));
}

#[test]
fn a_major_without_the_one_before_is_an_error() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let new = build(&[kind("a", "2.0.0", &["2.0"])]);
    let wanted =
        vec![(Code::MajorWithoutPrevious, Severity::Error), (Code::VersionAhead, Severity::Info)];
    assert_eq!(told(&diff(&old, &new)), (wanted, Order::TwoDeploys));
    let upcast = build(&[kind("a", "2.0.0", &["1.0", "2.0"])]);
    let wanted = vec![(Code::VersionAhead, Severity::Info)];
    assert_eq!(told(&diff(&old, &upcast)), (wanted, Order::WorkersFirst));
}

#[test]
fn an_older_major_is_dropped_once_no_job_of_it_waits() {
    let old = build(&[kind("a", "2.0.0", &["1.0", "2.0"])]);
    let new = build(&[kind("a", "2.0.0", &["2.0"])]);
    let code = Code::VersionDropped;
    let order = Order::ProducersFirst;
    assert_eq!(told(&diff(&old, &new)), (vec![(code, Severity::Error)], order));
    let live = [old];
    assert_eq!(told(&check(&new, &live, &[], &[])), (vec![(code, Severity::Warning)], order));
    let some = check(&new, &live, &[], &[waiting("a", "1.0.0", 1)]);
    assert_eq!(told(&some), (vec![(code, Severity::Error)], order));
}

#[test]
fn a_vouched_for_minor_is_unproven_here() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let mut newer = kind("a", "1.1.0", &["1.1"]);
    newer.newest.readable_by = "1.0".to_owned();
    let wanted = vec![(Code::ReadableByUnproven, Severity::Warning)];
    assert_eq!(told(&diff(&old, &build(&[newer.clone()]))), (wanted, Order::Any));
    newer.newest.fingerprint.clone_from(&old.handles[0].newest.fingerprint);
    assert_eq!(told(&diff(&old, &build(&[newer]))), (vec![], Order::Any), "the same shape");
}

#[test]
fn one_version_with_two_shapes_is_an_error_unless_the_patch_says_otherwise() {
    let shaped = |version, shape: &str| {
        let mut it = kind("a", version, &["1.0"]);
        it.newest.fingerprint = shape.to_owned();
        build(&[it])
    };
    let code = Code::ShapeChangedSameVersion;
    let same = diff(&shaped("1.0.0", "x"), &shaped("1.0.0", "y"));
    assert_eq!(told(&same), (vec![(code, Severity::Error)], Order::Any));
    let patched = diff(&shaped("1.0.0", "x"), &shaped("1.0.1", "y"));
    assert_eq!(told(&patched), (vec![(code, Severity::Warning)], Order::Any));
    let unknown = diff(&shaped("1.0.0", ""), &shaped("1.0.0", "y"));
    assert_eq!(told(&unknown), (vec![], Order::Any));
}

#[test]
fn another_queue_is_told_and_the_old_one_needs_a_worker() {
    let queued = |queue: &str| {
        let mut it = kind("a", "1.0.0", &["1.0"]);
        it.newest.queue = queue.to_owned();
        it
    };
    let old = build(&[queued("mail")]);
    let alone = diff(&old, &build(&[queued("bulk")]));
    assert_eq!(told(&alone), (vec![(Code::QueueChanged, Severity::Warning)], Order::Any));
    assert!(alone.findings[0].instead.contains(".queue(\"mail\")"), "{alone}");
    let mut other = kind("b", "1.0.0", &["1.0"]);
    other.newest.queue = "mail".to_owned();
    let both = [build(&[queued("mail"), other.clone()]), build(&[queued("bulk"), other])];
    let worked = diff(&both[0], &both[1]);
    assert_eq!(told(&worked), (vec![(Code::QueueChanged, Severity::Info)], Order::Any));
}

#[test]
fn another_policy_is_told() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let new = HandledKind { timeout_ms: Some(500), max_failures: 3, ..old.handles[0].clone() };
    let answer = diff(&old, &build(&[new]));
    assert_eq!(told(&answer), (vec![(Code::PolicyChanged, Severity::Info)], Order::Any));
    let what = "its policy changes: max_failures 3 instead of 20, timeout 500 ms instead of none";
    assert_eq!(answer.findings[0].what, what);
}

#[test]
fn a_retired_kind_is_an_error_while_jobs_of_it_wait() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    let new = Manifest { retired: vec!["a".to_owned()], ..Manifest::default() };
    let code = Code::RetiredWithRows;
    let order = Order::ProducersFirst;
    assert_eq!(told(&diff(&old, &new)), (vec![(code, Severity::Warning)], order));
    let live = [old];
    assert_eq!(told(&check(&new, &live, &[], &[])), (vec![], Order::Any));
    let rows = [waiting("a", "1.0.0", 2)];
    assert_eq!(told(&check(&new, &live, &[], &rows)), (vec![(code, Severity::Error)], order));
    // Also where no live build knows it any more.
    assert_eq!(told(&check(&new, &[], &[], &rows)), (vec![(code, Severity::Error)], order));
}

#[test]
fn what_another_program_still_enqueues_is_an_error() {
    let producer = |kind, version| {
        let produces = vec![produced(kind, version)];
        Manifest { produces, ..Manifest::default() }
    };
    let new = build(&[kind("a", "1.1.0", &["1.1"])]);
    let told = |producer| {
        let answer = check(&new, &[], &[producer], &[]);
        answer.findings.iter().map(|it| (it.code, it.severity)).collect::<Vec<_>>()
    };
    assert_eq!(told(producer("a", "1.0.0")), []);
    assert_eq!(told(producer("a", "1.2.0")), [(Code::VersionRegressed, Severity::Error)]);
    assert_eq!(told(producer("b", "1.0.0")), [(Code::KindRemoved, Severity::Error)]);
}

fn schedule(name: &str, when: &str, kind: &str, version: &str) -> ScheduledKind {
    let (name, when) = (name.to_owned(), when.to_owned());
    ScheduledKind { name, when, enqueues: produced(kind, version) }
}

/// A build that handles `a` 1.0 and declares these schedules.
fn by_the_clock(schedules: &[ScheduledKind]) -> Manifest {
    let schedules = schedules.to_vec();
    Manifest { schedules, ..build(&[kind("a", "1.0.0", &["1.0"])]) }
}

/// Field case B46: what only the old build declares must not stop without a word.
#[test]
fn a_schedule_that_stops_or_changes_is_told_by_its_name() {
    let [nightly, hourly] =
        ["0 3 * * *", "every 1h"].map(|when| schedule("close", when, "a", "1.0.0"));
    let other = schedule("report", "every 1h", "a", "1.0.0");
    let old = by_the_clock(&[nightly.clone(), other.clone()]);
    assert_eq!(told(&diff(&old, &old)), (vec![], Order::Any));
    let stops = diff(&old, &by_the_clock(&[]));
    let dropped = (Code::ScheduleDropped, Severity::Warning);
    assert_eq!(told(&stops), (vec![dropped; 2], Order::Any));
    let names: Vec<&str> = stops.findings.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(names, ["close", "report"], "{stops}");
    assert!(stops.findings[0].what.contains("`0 3 * * *`"), "{stops}");
    let changes = diff(&old, &by_the_clock(&[hourly, other]));
    assert_eq!(told(&changes), (vec![(Code::ScheduleChanged, Severity::Info)], Order::Any));
    assert_eq!(changes.findings[0].what, "it ticks at `every 1h` instead of `0 3 * * *`");
    // What a person has declared under the name goes on.
    let person = Manifest { schedules: vec![nightly.clone()], ..Manifest::default() };
    let answer = check(&by_the_clock(&[]), &[by_the_clock(&[nightly])], &[person], &[]);
    assert_eq!(told(&answer), (vec![], Order::Any));
}

#[test]
fn a_schedule_in_the_store_that_enqueues_what_the_candidate_drops_is_an_error() {
    let person = |kind, version| {
        let schedules = vec![schedule("by hand", "every 1h", kind, version)];
        Manifest { schedules, ..Manifest::default() }
    };
    let new = build(&[kind("a", "1.1.0", &["1.1"])]);
    let answer = |producer| check(&new, &[], &[producer], &[]);
    assert_eq!(answer(person("a", "1.0.0")).findings, []);
    let newer = answer(person("a", "2.0.0"));
    assert_eq!(told(&newer).0, [(Code::VersionRegressed, Severity::Error)]);
    let gone = answer(person("b", "1.0.0"));
    assert_eq!(told(&gone).0, [(Code::KindRemoved, Severity::Error)]);
    let what = "the schedule `by hand`, which a person has declared, still enqueues it, as 1.0.0";
    assert_eq!(gone.findings[0].what, what);
}

/// The clock enqueues too.
#[test]
fn a_schedule_of_a_kind_that_no_worker_handles_is_an_error() {
    let old = by_the_clock(&[]);
    let new = by_the_clock(&[schedule("later", "every 1h", "b", "1.0.0")]);
    let wanted = vec![(Code::KindAddedAndProduced, Severity::Error)];
    assert_eq!(told(&diff(&old, &new)), (wanted, Order::WorkersFirst));
}

#[test]
fn what_several_live_builds_say_is_told_once_at_its_worst() {
    let live = [
        build(&[kind("a", "1.0.0", &["1.0"])]),
        build(&[kind("a", "1.0.0", &["1.0"]), kind("b", "1.0.0", &["1.0"])]),
    ];
    let answer = check(&build(&[]), &live, &[], &[]);
    let kinds: Vec<&str> = answer.findings.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(kinds, ["a", "b"]);
}

#[test]
fn a_manifest_survives_its_json_and_newer_fields() {
    let manifest = Manifest {
        produces: vec![produced("b", "1.0.0")],
        retired: vec!["c".to_owned()],
        schedules: vec![schedule("d", "every 1h", "a", "1.2.0")],
        ..build(&[kind("a", "1.2.0", &["1.2"])])
    };
    assert_eq!(Manifest::parse(&manifest.to_json()).unwrap(), manifest);
    assert_eq!(Manifest::parse(r#"{"later":1}"#).unwrap(), Manifest::default());
}

#[test]
fn the_answer_is_told_to_people() {
    let old = build(&[kind("a", "1.0.0", &["1.0"])]);
    insta::assert_snapshot!(diff(&old, &build(&[kind("a", "2.0.0", &["2.0"])])), @"
    error major_without_previous a: a live build reads 1.0, this one does not; jobs of it would wait. Keep the shape of the older major as a `PastJob` and name it as `previous`
    info version_ahead a: it is enqueued as 2.0.0, which no live build reads. Live workers give it back unread until the new workers are up: deploy those before what enqueues it
    not safe to deploy as it is: make two deploys of it: one that only adds (workers first), and one that only takes away (producers first)
    ");
}
