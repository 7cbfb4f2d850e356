use std::time::Duration;

use super::{Deploy, Drained};
use crate::clock::Timestamp;
use crate::id::WorkerId;
use crate::store::{Phase, WorkerRecord};

fn open(id: i64, build: &str) -> WorkerRecord {
    WorkerRecord {
        id: WorkerId(id),
        name: "one".to_owned(),
        build: build.to_owned(),
        manifest: "{}".to_owned(),
        phase: Phase::Working,
        started_at: Timestamp::from_micros(id),
        ended_at: None,
        is_taken_back: false,
        drained: None,
        reclaimed: 0,
        held: 0,
    }
}

fn drained(id: i64, build: &str, drained: Drained) -> WorkerRecord {
    let ended_at = (drained.abandoned == 0).then_some(Timestamp::from_micros(id + 1));
    WorkerRecord { phase: Phase::Done, ended_at, drained: Some(drained), ..open(id, build) }
}

fn taken_back(id: i64, build: &str, reclaimed: u64) -> WorkerRecord {
    let ended_at = Some(Timestamp::from_micros(id + 1));
    WorkerRecord { ended_at, is_taken_back: true, reclaimed, ..open(id, build) }
}

#[test]
fn workers_are_added_up_by_build_and_the_newest_build_comes_first() {
    let second = Duration::from_secs(1);
    let one = Drained { settled: 4, interrupted: 3, released: 2, abandoned: 0, took: second };
    let two = Drained { settled: 1, interrupted: 0, released: 0, abandoned: 1, took: second * 2 };
    let workers = [
        open(5, "b"),
        taken_back(4, "a", 5),
        open(3, "b"),
        drained(2, "a", two),
        drained(1, "a", one),
    ];
    let deploys = Deploy::of(&workers);
    let builds: Vec<_> = deploys.iter().map(|deploy| deploy.build.as_str()).collect();
    assert_eq!(builds, ["b", "a"]);
    assert_eq!((deploys[0].workers, deploys[0].open), (2, 2));
    assert_eq!(deploys[0].share_by_expiry(), None);
    let a = &deploys[1];
    assert_eq!(a.started_at, Timestamp::from_micros(1));
    assert_eq!((a.workers, a.open, a.drained, a.taken_back), (3, 0, 2, 1));
    assert_eq!((a.settled, a.interrupted, a.released, a.abandoned), (5, 3, 2, 1));
    assert_eq!((a.reclaimed, a.longest_drain), (5, second * 2));
    assert_eq!(a.share_by_expiry(), Some(5.0 / 16.0));
}

#[test]
fn what_a_drain_abandoned_is_not_counted_again_when_it_is_swept() {
    let report = Drained { abandoned: 2, ..Drained::default() };
    let swept = WorkerRecord { drained: Some(report), ..taken_back(1, "a", 2) };
    let deploys = Deploy::of(&[swept]);
    assert_eq!((deploys[0].drained, deploys[0].taken_back), (1, 0));
    assert_eq!((deploys[0].abandoned, deploys[0].reclaimed), (2, 0));
}

#[test]
fn counts_that_no_worker_wrote_stop_no_report() {
    let full = u64::MAX;
    let report = Drained {
        settled: full,
        interrupted: full,
        released: full,
        abandoned: full,
        ..Drained::default()
    };
    let workers = [drained(3, "a", report), drained(2, "a", report), taken_back(1, "a", full)];
    let workers = [workers.to_vec(), vec![taken_back(4, "a", full)]].concat();
    let deploy = Deploy::of(&workers).remove(0);
    assert_eq!((deploy.settled, deploy.abandoned, deploy.reclaimed), (full, full, full));
    assert_eq!(deploy.share_by_expiry(), Some(1.0));
}
