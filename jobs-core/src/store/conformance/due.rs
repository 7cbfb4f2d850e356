//! Scheduled jobs: when they become ready, and how refused ones are called back.

use std::time::Duration;

use super::super::{Filter, Promoted};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, ended, ids, job, queue, refused};
use crate::envelope::NewJob;
use crate::id::JobId;
use crate::outcome::Ending;
use crate::route::Route;
use crate::state::State;
use crate::version::Version;

async fn ready(scene: &Scene<'_>) -> Vec<JobId> {
    let filter = Filter { state: Some(State::Ready), ..Filter::default() };
    let jobs = scene.subject.inspect().jobs(&filter, ALL).await.unwrap();
    jobs.iter().map(|job| job.id).collect()
}

pub(super) async fn a_scheduled_job_becomes_ready_when_it_is_due(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&due_in(SECOND * 60, job("a"))).await;
    let before = scene.record(id).await;
    assert_eq!(scene.promote().await, 0);
    subject.advance(SECOND * 50).await;
    assert_eq!(scene.promote().await, 0);
    assert_eq!(scene.state(id).await, State::Scheduled);
    subject.advance(SECOND * 15).await;
    assert_eq!(scene.promote().await, 1);
    let record = scene.record(id).await;
    assert_eq!((record.state, record.claim), (State::Ready, before.claim));
    assert_eq!(scene.promote().await, 0);
    assert_eq!(scene.take().await.fence.job, id);
}

pub(super) async fn the_oldest_are_promoted_first(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = Vec::new();
    for wait in [30, 10, 20] {
        added.push(scene.add(&due_in(SECOND * wait, job("a"))).await);
    }
    subject.advance(SECOND * 60).await;
    let mut expected = Vec::new();
    for at in [1, 2, 0] {
        let promoted = subject.store().promote(1).await.unwrap();
        assert_eq!(promoted.count, 1);
        expected.push(added[at]);
        let mut sorted = expected.clone();
        sorted.sort_unstable();
        assert_eq!(ready(&scene).await, sorted);
    }
    assert_eq!(ids(&scene.claim(ALL).await), expected);
}

pub(super) async fn a_promotion_says_when_to_come_again(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    assert_eq!(subject.store().promote(ALL).await.unwrap(), Promoted::default());
    scene.enqueue(&vec![due_in(SECOND * 60, job("a")); 3]).await;
    scene.add(&due_in(SECOND * 600, job("a"))).await;
    let next = subject.store().promote(ALL).await.unwrap().next_in.unwrap();
    assert!(next > SECOND * 30 && next <= SECOND * 60, "{next:?}");
    subject.advance(SECOND * 120).await;
    let some = subject.store().promote(2).await.unwrap();
    assert_eq!(some, Promoted { count: 2, next_in: Some(Duration::ZERO) });
    let rest = subject.store().promote(ALL).await.unwrap();
    assert_eq!(rest.count, 1);
    assert!(rest.next_in.unwrap() > SECOND * 300, "{rest:?}");
    subject.advance(SECOND * 600).await;
    let last = subject.store().promote(ALL).await.unwrap();
    assert_eq!(last, Promoted { count: 1, next_in: None });
}

pub(super) async fn a_pause_does_not_hold_promotion_up(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&due_in(SECOND, job("a"))).await;
    subject.operate().pause(&queue("default"), "ann", "").await.unwrap();
    subject.advance(SECOND * 5).await;
    assert_eq!(scene.promote().await, 1);
    assert_eq!(scene.state(id).await, State::Ready);
}

pub(super) async fn a_promoted_job_stands_where_it_fell_due(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let scheduled = scene.add(&due_in(SECOND * 10, job("a"))).await;
    let before = scene.add(&job("a")).await;
    subject.advance(SECOND * 60).await;
    let after = scene.add(&job("a")).await;
    assert_eq!(scene.promote().await, 1);
    assert_eq!(ids(&scene.claim(ALL).await), [before, scheduled, after]);
}

pub(super) async fn promotion_touches_only_scheduled_jobs(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&due_in(Duration::ZERO, job("a"))).await;
    let cancelled = scene.add(&due_in(SECOND, job("a"))).await;
    subject.operate().cancel(&[cancelled]).await.unwrap();
    subject.advance(SECOND * 5).await;
    assert_eq!(subject.store().promote(ALL).await.unwrap(), Promoted::default());
    assert_eq!(scene.state(run.fence.job).await, State::Running);
    assert_eq!(scene.state(cancelled).await, State::Cancelled);
}

/// Enqueues a job of a version, claims it and gives it back unread.
async fn refuse(scene: &Scene<'_>, minor: u32) -> JobId {
    let version = Version::new(1, minor, 0);
    let new = NewJob { version, min_reader: version.own_reader(), ..job("a") };
    let run = scene.run(&new).await;
    scene.end_as(&run, &refused(), State::Scheduled).await;
    run.fence.job
}

fn route(minor: u32) -> Route {
    Route::from_store(format!("a@1.{minor}"))
}

pub(super) async fn the_routes_of_refused_jobs_are_listed(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for minor in [3, 1, 3] {
        refuse(&scene, minor).await;
    }
    let run = scene.run(&job("snoozed")).await;
    scene.end_as(&run, &Ending::Snoozed(SECOND * 60), State::Scheduled).await;
    scene.add(&due_in(SECOND * 60, job("never_refused"))).await;
    let mut routes = subject.store().refused_routes().await.unwrap();
    routes.sort_unstable();
    assert_eq!(routes, [route(1), route(3)]);
}

pub(super) async fn refused_jobs_of_a_route_are_called_back_at_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let one = refuse(&scene, 1).await;
    let three = refuse(&scene, 3).await;
    let snoozed = scene.run(&NewJob { version: Version::new(1, 1, 0), ..job("a") }).await;
    scene.end_as(&snoozed, &Ending::Snoozed(SECOND * 60), State::Scheduled).await;
    let routes = [route(1), route(7)];
    assert_eq!(subject.store().recall(&routes, ALL).await.unwrap(), 1);
    assert_eq!(ready(&scene).await, [one]);
    assert_eq!(scene.state(three).await, State::Scheduled);
    assert_eq!(subject.store().refused_routes().await.unwrap(), [route(3)]);
    assert_eq!(subject.store().recall(&routes, ALL).await.unwrap(), 0);
    let run = scene.take().await;
    assert_eq!((run.refused.is_some(), run.counters.refusals), (true, 1));
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_recall_keeps_to_its_limit(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for _ in 0..5 {
        refuse(&scene, 1).await;
    }
    for recalled in [2, 2, 1, 0] {
        assert_eq!(subject.store().recall(&[route(1)], 2).await.unwrap(), recalled);
    }
    assert_eq!(scene.claim(ALL).await.len(), 5);
}

pub(super) async fn a_recalled_job_stands_before_what_comes_after_it(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = refuse(&scene, 1).await;
    subject.store().recall(&[route(1)], ALL).await.unwrap();
    subject.advance(SECOND).await;
    let after = scene.add(&job("a")).await;
    assert_eq!(ids(&scene.claim(ALL).await), [id, after]);
}

pub(super) async fn a_refused_job_comes_back_by_itself(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = refuse(&scene, 1).await;
    subject.advance(crate::RELEASE_DELAY + SECOND).await;
    assert_eq!(scene.promote().await, 1);
    let run = scene.take().await;
    assert_eq!(run.fence.job, id);
    let again = ended(&run, &refused());
    assert_eq!(again.event, None, "the same refusal is told once");
    scene.settle(&again).await;
    assert_eq!(scene.events(id).await.len(), 1);
    assert_eq!(scene.record(id).await.counters.refusals, 2);
}
