//! The history of a job: what is told, in which order, and how much of it is kept.

use std::time::Duration;

use super::super::{Author, Phase, RESCHEDULED, RUN_NOW, Redrive, Reschedule, SETTLED_LATE};
use super::scene::{SECOND, Scene, build, due_in, ended, failed, job};
use super::{Subject, Tampering};
use crate::id::JobId;
use crate::outcome::{Ending, Interruption, Retry};
use crate::record::{EventKind, MAX_EVENTS, NewEvent, Priority};
use crate::state::State;
use crate::transition::{Due, Settlement};

pub(super) async fn a_clean_success_writes_no_event(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.save(run.fence, "[1]").await;
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    assert_eq!(scene.events(run.fence.job).await, []);
}

pub(super) async fn a_success_tells_whose_run_it_was(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    let noted = scene.run(&job("a")).await;
    let event = NewEvent {
        kind: EventKind::SettledLate,
        class: SETTLED_LATE.to_owned(),
        text: "7 s".to_owned(),
    };
    let late = Settlement { event: Some(event), ..ended(&noted, &Ending::Done) };
    scene.settle(&late).await;
    for run in [run, noted] {
        let record = scene.record(run.fence.job).await;
        assert_eq!((record.state, record.worker), (State::Succeeded, Some(scene.worker)));
    }
    let failed_one = scene.dead(&job("a")).await;
    assert_eq!(scene.record(failed_one).await.worker, None, "its history tells");
}

pub(super) async fn what_a_person_changes_of_the_wait_is_told(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&due_in(SECOND * 3600, job("a"))).await;
    let operate = subject.operate();
    let later = Reschedule { due: Some(Due::In(SECOND * 60)), priority: Priority::new(7) };
    assert_eq!(operate.reschedule(&[id], later).await.unwrap(), [true]);
    assert_eq!(operate.run_now(&[id]).await.unwrap(), [true]);
    assert_eq!(operate.run_now(&[id]).await.unwrap(), [false]);
    let run = scene.take().await;
    assert_eq!(operate.reschedule(&[id], later).await.unwrap(), [false]);
    scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
    let events = scene.events(id).await;
    let told: Vec<_> = events.iter().map(|e| (e.number, e.claim.0, e.kind, &*e.class)).collect();
    let expected = [
        (1, 0, EventKind::Rescheduled, RESCHEDULED),
        (2, 0, EventKind::Rescheduled, RUN_NOW),
        (3, 1, EventKind::Failed, "error"),
    ];
    assert_eq!(told, expected);
    assert_eq!(events[0].text, later.text());
    assert!(events[..2].iter().all(|event| event.worker.is_none() && event.build.is_none()));
}

pub(super) async fn a_life_is_told_in_order(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let id = run.fence.job;
    scene.end_as(&run, &failed(Retry::After(std::time::Duration::ZERO)), State::Ready).await;
    let run = scene.take().await;
    let stopped = Ending::Interrupted(Interruption::Stopped("drain".to_owned()));
    scene.end_as(&run, &stopped, State::Ready).await;
    subject.operate().cancel(&[id]).await.unwrap();
    subject.operate().redrive(&[id], Redrive::default()).await.unwrap();
    let run = scene.take().await;
    scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
    let events = scene.events(id).await;
    let told: Vec<_> = events.iter().map(|e| (e.number, e.claim.0, e.kind)).collect();
    let expected = [
        (1, 1, EventKind::Failed),
        (2, 2, EventKind::Interrupted),
        (3, 2, EventKind::Cancelled),
        (4, 2, EventKind::Redriven),
        (5, 3, EventKind::Failed),
    ];
    assert_eq!(told, expected);
    let classes: Vec<_> = events.iter().map(|event| event.class.as_str()).collect();
    assert_eq!(classes, ["error", "stopped", "cancelled", "redriven", "error"]);
    assert!(events.is_sorted_by_key(|event| event.at));
}

pub(super) async fn the_newest_events_of_each_job_are_kept(subject: &dyn Subject) {
    const EXTRA: i64 = 30;
    let scene = Scene::open(subject).await;
    let other = scene.dead(&job("a")).await;
    let id = scene.add(&job("a")).await;
    for number in 1..=MAX_EVENTS + EXTRA {
        let run = scene.take().await;
        let text = number.to_string();
        let event = NewEvent { kind: EventKind::Refused, class: "newer".to_owned(), text };
        let settlement = Settlement { event: Some(event), ..ended(&run, &Ending::Unstarted) };
        scene.settle(&settlement).await;
    }
    let events = scene.events(id).await;
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (EXTRA + 1..=MAX_EVENTS + EXTRA).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event.text == event.number.to_string()));
    assert!(events.iter().all(|event| event.claim.0 == event.number));
    assert_eq!(scene.events(other).await.len(), 1);
}

pub(super) async fn an_event_names_its_author(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for worker in [Some(scene.worker), None] {
        let run = scene.run(&job("a")).await;
        let by = Author { worker, build: build() };
        let settlements = [ended(&run, &failed(Retry::Never))];
        subject.store().settle(&by, &settlements).await.unwrap();
        let event = scene.events(run.fence.job).await.remove(0);
        assert_eq!((event.worker, event.build.as_deref()), (worker, Some("shop 1.0.0")));
    }
}

pub(super) async fn every_kind_of_event_is_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&job("a")).await;
    for kind in EventKind::ALL {
        let run = scene.take().await;
        let text = format!("{kind:?} it's \"told\" 🦀\u{202e}\n");
        let event = NewEvent { kind, class: "a class".to_owned(), text };
        scene.settle(&Settlement { event: Some(event), ..ended(&run, &Ending::Unstarted) }).await;
    }
    let events = scene.events(id).await;
    assert_eq!(events.iter().map(|event| event.kind).collect::<Vec<_>>(), EventKind::ALL);
    for event in events {
        assert_eq!(event.text, format!("{:?} it's \"told\" 🦀\u{202e}\n", event.kind));
    }
}

pub(super) async fn names_that_only_a_newer_build_knows_hide_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &failed(Retry::After(Duration::ZERO)), State::Ready).await;
    subject.tamper(run.fence.job, &Tampering::UnknownNames).await;
    assert_eq!(scene.events(run.fence.job).await, []);
    let again = scene.take().await;
    scene.end_as(&again, &failed(Retry::Never), State::Dead).await;
    let events = scene.events(run.fence.job).await;
    assert_eq!(events.iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::Failed]);
    let workers = subject.inspect().workers().await.unwrap();
    assert_eq!(
        workers.iter().map(|it| (it.id, it.phase)).collect::<Vec<_>>(),
        [(scene.worker, Phase::Working)]
    );
}

pub(super) async fn a_job_that_does_not_exist_has_no_history(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    assert_eq!(scene.events(JobId(7_000_000)).await, []);
}
