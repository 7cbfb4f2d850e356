//! What a rollout asks: what waits, what is stranded, and which builds there are.

use std::time::Duration;

use super::super::{Retention, STRANDED, Strand, WORKERS_KEPT, Waiting};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, job, queue, refused};
use crate::clock::Timestamp;
use crate::envelope::NewJob;
use crate::id::JobId;
use crate::name::BuildId;
use crate::record::EventKind;
use crate::route::Route;
use crate::state::State;
use crate::version::{MinReader, Version};

fn of_minor(minor: u32) -> NewJob {
    let version = Version::new(1, minor, 0);
    NewJob { version, min_reader: version.own_reader(), ..job("a") }
}

fn route(minor: u32) -> Route {
    Route::from_store(format!("a@1.{minor}"))
}

async fn strand(scene: &Scene<'_>, routes: &[Route], waited: Duration, limit: u32) -> u32 {
    let strand = Strand { by: scene.author(), routes, waited, limit };
    scene.subject.store().strand(&strand).await.unwrap()
}

pub(super) async fn waiting_jobs_are_counted_by_what_may_read_them(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    assert_eq!(subject.inspect().waiting().await.unwrap(), []);
    let dead = scene.dead(&job("gone")).await;
    let given_back = scene.run(&of_minor(2)).await;
    scene.end_as(&given_back, &refused(), State::Scheduled).await;
    let vouched = NewJob { min_reader: MinReader { major: 1, minor: 0 }, ..of_minor(2) };
    let mail = NewJob { queue: queue("mail"), ..job("b") };
    scene.enqueue(&[of_minor(2), vouched, mail, due_in(SECOND * 60, of_minor(2))]).await;
    let first = scene.record(given_back.fence.job).await;
    let waiting = subject.inspect().waiting().await.unwrap();
    let group = |queue: &str, kind: &str, version: &str, reader: &str, jobs, refused| Waiting {
        queue: queue.to_owned(),
        kind: kind.to_owned(),
        version: version.to_owned(),
        min_reader: Some(reader.to_owned()),
        jobs,
        refused,
        oldest_at: Timestamp::from_micros(0),
    };
    assert_eq!(waiting[1].oldest_at, first.enqueued_at);
    let at_none = |group: Waiting| Waiting { oldest_at: Timestamp::from_micros(0), ..group };
    let expected = [
        group("default", "a", "1.2.0", "1.0", 1, 0),
        group("default", "a", "1.2.0", "1.2", 3, 1),
        group("mail", "b", "1.0.0", "1.0", 1, 0),
    ];
    assert_eq!(waiting.into_iter().map(at_none).collect::<Vec<_>>(), expected);
    assert_eq!(scene.state(dead).await, State::Dead);
}

pub(super) async fn jobs_that_nobody_reads_end_once_they_have_waited(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let given_back = scene.run(&of_minor(8)).await;
    scene.end_as(&given_back, &refused(), State::Scheduled).await;
    let stranded = scene.add(&of_minor(7)).await;
    let readable = scene.add(&of_minor(1)).await;
    let routes = [route(7), route(8)];
    assert_eq!(strand(&scene, &routes, SECOND * 60, ALL).await, 0);
    subject.advance(SECOND * 61).await;
    let young = scene.add(&of_minor(7)).await;
    assert_eq!(strand(&scene, &routes, SECOND * 60, ALL).await, 2);
    for id in [stranded, given_back.fence.job] {
        let record = scene.record(id).await;
        assert_eq!((record.state, record.counters.failures), (State::Dead, 0));
        assert_eq!(record.error_class.as_deref(), Some(STRANDED));
        assert!(record.error.is_some() && record.finished_at.is_some());
    }
    assert_eq!(scene.state(readable).await, State::Ready);
    assert_eq!(scene.state(young).await, State::Ready);
    let redriven = subject.operate().redrive(&[stranded], super::super::Redrive::default()).await;
    assert_eq!(redriven.unwrap(), [super::super::Redriven::Ready]);
}

pub(super) async fn only_what_is_due_is_stranded(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let later = scene.add(&due_in(SECOND * 600, of_minor(7))).await;
    let running = scene.run(&of_minor(7)).await;
    subject.advance(SECOND * 61).await;
    assert_eq!(strand(&scene, &[route(7)], SECOND * 60, ALL).await, 0);
    assert_eq!(scene.state(later).await, State::Scheduled);
    assert_eq!(scene.state(running.fence.job).await, State::Running);
    // Its wait counts from when it fell due.
    subject.advance(SECOND * 550).await;
    scene.promote().await;
    assert_eq!(strand(&scene, &[route(7)], SECOND * 60, ALL).await, 0);
    subject.advance(SECOND * 61).await;
    assert_eq!(strand(&scene, &[route(7)], SECOND * 60, ALL).await, 1);
}

pub(super) async fn a_strand_keeps_to_its_limit_and_tells_the_author(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let added = scene.enqueue(&vec![of_minor(7); 5]).await;
    let ids: Vec<JobId> = added.into_iter().map(super::super::Enqueued::id).collect();
    for ended in [2, 2, 1, 0] {
        assert_eq!(strand(&scene, &[route(7)], Duration::ZERO, 2).await, ended);
    }
    assert_eq!(strand(&scene, &[], Duration::ZERO, ALL).await, 0);
    for id in ids {
        let events = scene.events(id).await;
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].kind, events[0].class.as_str()), (EventKind::Stranded, STRANDED));
        assert_eq!(events[0].worker, Some(scene.worker));
        assert_eq!(events[0].build.as_deref(), Some(scene.author().build.as_str()));
    }
}

pub(super) async fn what_is_due_of_a_route_is_counted_up_to_a_limit(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let given_back = scene.run(&of_minor(8)).await;
    scene.end_as(&given_back, &refused(), State::Scheduled).await;
    let elsewhere = NewJob { queue: queue("mail"), ..of_minor(8) };
    scene.dead(&of_minor(9)).await;
    scene.enqueue(&[of_minor(8), elsewhere, of_minor(7), due_in(SECOND * 600, of_minor(7))]).await;
    let routes = [8, 7, 9, 6].map(route);
    let count = async |most| subject.inspect().count_due(&routes, most).await.unwrap();
    assert_eq!(count(100).await, [3, 1, 0, 0]);
    assert_eq!(count(2).await, [2, 1, 0, 0]);
    assert_eq!(count(0).await, [0; 4]);
    assert_eq!(subject.inspect().count_due(&[], 100).await.unwrap(), Vec::<u64>::new());
}

pub(super) async fn what_a_build_publishes_is_kept_once(subject: &dyn Subject) {
    let (store, inspect) = (subject.store(), subject.inspect());
    assert_eq!(inspect.builds().await.unwrap(), []);
    let [one, two] = ["shop 1", "shop 2"].map(|label| BuildId::new(label).unwrap());
    for (build, manifest) in [(&one, "{}"), (&two, "{}"), (&one, r#"{"produces":[]}"#)] {
        store.publish(build, manifest).await.unwrap();
        subject.advance(SECOND).await;
    }
    store.publish(&one, "{}").await.unwrap();
    let builds = inspect.builds().await.unwrap();
    let told: Vec<_> = builds.iter().map(|it| (it.build.as_str(), it.manifest.as_str())).collect();
    let wanted = [("shop 1", "{}"), ("shop 1", r#"{"produces":[]}"#), ("shop 2", "{}")];
    assert_eq!(told, wanted, "the most lately seen comes first");
}

pub(super) async fn builds_that_were_last_seen_long_ago_are_forgotten(subject: &dyn Subject) {
    let (store, inspect) = (subject.store(), subject.inspect());
    let [old, new] = ["shop 1", "shop 2"].map(|label| BuildId::new(label).unwrap());
    store.publish(&old, "{}").await.unwrap();
    subject.advance(WORKERS_KEPT).await;
    store.publish(&new, "{}").await.unwrap();
    subject.advance(SECOND).await;
    store.prune(Retention::default(), ALL).await.unwrap();
    let builds = inspect.builds().await.unwrap();
    assert_eq!(builds.iter().map(|it| it.build.as_str()).collect::<Vec<_>>(), ["shop 2"]);
}
