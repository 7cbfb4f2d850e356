//! Enqueueing: what is stored, in which order, and how much at once.

use std::time::Duration;

use super::super::{Enqueued, Filter};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, job, queue, unique};
use crate::clock::Timestamp;
use crate::envelope::NewJob;
use crate::id::{ClaimNumber, JobId};
use crate::record::{Budget, Counters, Priority};
use crate::state::State;
use crate::transition::Due;

pub(super) async fn jobs_get_growing_ids_in_order(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = scene.enqueue(&[job("a"), job("b"), job("c")]).await;
    added.extend(scene.enqueue(&[job("d"), job("e")]).await);
    let ids: Vec<_> = added.iter().map(|added| added.id()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b) && ids[0] > JobId(0), "{ids:?}");
    let records = scene.records().await;
    let kinds: Vec<_> = records.iter().map(|record| record.kind.as_str()).collect();
    assert_eq!(kinds, ["a", "b", "c", "d", "e"]);
}

pub(super) async fn a_job_is_stored_as_it_was_given(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let new = NewJob {
        queue: queue("billing"),
        payload: r#"{ "cents" : 1.50 }"#.to_owned(),
        headers: Some(r#"{"trace":"00-ab"}"#.to_owned()),
        priority: Priority::new(42).unwrap(),
        budget: Budget { max_failures: 7, max_interruptions: Some(u32::MAX / 2) },
        ..unique("order-7")
    };
    let id = scene.add(&new).await;
    let record = scene.record(id).await;
    assert_eq!((record.id, record.state), (id, State::Ready));
    assert_eq!((record.queue.as_str(), record.kind.as_str()), ("billing", "unique"));
    assert_eq!((record.version.as_str(), record.min_reader.as_deref()), ("1.0.0", Some("1.0")));
    assert_eq!((&record.payload, &record.headers), (&new.payload, &new.headers));
    assert_eq!(record.unique_key.as_deref(), Some("order-7"));
    assert_eq!((record.priority, record.budget), (new.priority, new.budget));
    assert_eq!((record.claim, record.worker), (ClaimNumber(0), None));
    assert_eq!((record.counters, record.checkpoint), (Counters::default(), None));
    assert_eq!((record.refused, record.error_class, record.error), (None, None, None));
    assert_eq!(record.build.as_deref(), Some("shop 1.0.0"));
    assert_eq!((record.claimed_at, record.finished_at), (None, None));
    assert_eq!(scene.events(id).await, []);
}

pub(super) async fn absent_parts_stay_absent(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let record = scene.record(scene.add(&NewJob { build: None, ..job("a") }).await).await;
    assert_eq!((record.headers, record.unique_key, record.build), (None, None, None));
    assert_eq!(record.budget.max_interruptions, None);
}

pub(super) async fn a_job_is_ready_when_it_is_due(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let now = scene.record(scene.add(&job("a")).await).await.enqueued_at;
    let cases = [
        (Due::Unchanged, State::Ready),
        (Due::In(Duration::ZERO), State::Ready),
        (Due::At(now), State::Ready),
        (Due::At(Timestamp::from_micros(now.as_micros() - 3_600_000_000)), State::Ready),
        (Due::In(SECOND * 60), State::Scheduled),
        (Due::At(now.after(SECOND * 3600)), State::Scheduled),
    ];
    for (due, state) in cases {
        let record = scene.record(scene.add(&NewJob { due, ..job("a") }).await).await;
        assert_eq!(record.state, state, "{due:?}");
        match due {
            Due::Unchanged => assert_eq!(record.due_at, record.enqueued_at),
            Due::In(wait) => assert_eq!(record.due_at, record.enqueued_at.after(wait)),
            Due::At(instant) => assert_eq!(record.due_at, instant),
        }
    }
}

pub(super) async fn a_job_due_at_either_end_of_time_stops_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for priority in [Priority::LOWEST, Priority::HIGHEST] {
        let far = NewJob { priority, ..due_in(Duration::MAX, job("a")) };
        let id = scene.add(&far).await;
        assert_eq!(scene.state(id).await, State::Scheduled);
        let due = Due::At(Timestamp::from_micros(i64::MAX));
        let id = scene.add(&NewJob { due, ..far.clone() }).await;
        assert_eq!(scene.state(id).await, State::Scheduled);
        let due = Due::At(Timestamp::from_micros(0));
        let id = scene.add(&NewJob { due, ..far }).await;
        assert_eq!(scene.state(id).await, State::Ready);
    }
    scene.add(&job("a")).await;
    assert_eq!(scene.promote().await, 0);
    assert_eq!(scene.claim(ALL).await.len(), 3);
    let scheduled = Filter { state: Some(State::Scheduled), ..Filter::default() };
    let far = subject.inspect().jobs(&scheduled, ALL).await.unwrap();
    let far: Vec<_> = far.iter().map(|job| job.id).collect();
    assert_eq!(subject.operate().run_now(&far).await.unwrap(), vec![true; far.len()]);
    assert_eq!(scene.claim(ALL).await.len(), far.len());
}

pub(super) async fn a_hundred_thousand_jobs_are_stored_in_one_call(subject: &dyn Subject) {
    const MANY: u32 = 100_000;
    let scene = Scene::open(subject).await;
    let added = scene.enqueue(&vec![job("a"); 100_000]).await;
    assert!(added.iter().all(|added| matches!(added, Enqueued::Added(_))));
    assert!(added.is_sorted_by(|a, b| a.id() < b.id()));
    let counts = subject.inspect().counts().await.unwrap();
    assert_eq!(counts.len(), 1);
    assert_eq!(counts[0].jobs, u64::from(MANY));
    assert_eq!(scene.claim(100).await.len(), 100);
}

pub(super) async fn calls_with_nothing_do_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let (store, operate) = (subject.store(), subject.operate());
    assert_eq!(store.enqueue(&[]).await.unwrap(), []);
    assert_eq!(store.routes(&[]).await.unwrap(), []);
    assert_eq!(scene.claim_from(&[], ALL).await, []);
    assert_eq!(store.settle(&scene.author(), &[]).await.unwrap(), []);
    assert_eq!(store.checkpoint(&[]).await.unwrap(), []);
    assert_eq!(store.check(&[]).await.unwrap(), []);
    assert_eq!(store.reread(&[]).await.unwrap(), []);
    assert_eq!(store.recall(&[], ALL).await.unwrap(), 0);
    assert_eq!(store.refused_routes().await.unwrap(), []);
    assert_eq!(store.promote(ALL).await.unwrap().count, 0);
    assert_eq!(operate.cancel(&[]).await.unwrap(), []);
    assert_eq!(operate.redrive(&[], super::super::Redrive::default()).await.unwrap(), []);
    assert!(operate.run_now(&[]).await.unwrap().is_empty());
    let mut tx = subject.transactions().begin().await.unwrap();
    assert_eq!(tx.enqueue(&[]).await.unwrap(), []);
    tx.commit().await.unwrap();
    assert_eq!(scene.records().await, []);
}

pub(super) async fn a_limit_of_nothing_is_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&due_in(SECOND, job("a"))).await;
    subject.advance(SECOND * 2).await;
    let promoted = subject.store().promote(0).await.unwrap();
    assert_eq!((promoted.count, promoted.next_in), (0, Some(Duration::ZERO)));
    assert_eq!(scene.state(id).await, State::Scheduled);
    assert_eq!(subject.inspect().jobs(&Filter::default(), 0).await.unwrap(), []);
}
