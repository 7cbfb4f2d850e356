//! Unique keys: at most one job of a kind and key waits, and whoever was told so will see a run
//! that starts after it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};

use super::super::{Enqueued, Redrive, Redriven, SUPERSEDED, Settled};
use super::Subject;
use super::scene::{
    ALL, SECOND, Scene, due_in, ended, failed, ids, job, queue, refused, unique, yield_often,
};
use crate::envelope::NewJob;
use crate::id::JobId;
use crate::name::{Kind, UniqueKey};
use crate::outcome::{Company, Ending, Interruption, Retry};
use crate::record::{ClaimedJob, EventKind};
use crate::state::State;

pub(super) async fn a_waiting_twin_is_already_there(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let ready = scene.add(&unique("k")).await;
    let scheduled = scene.add(&due_in(SECOND * 60, unique("l"))).await;
    let again = scene.enqueue(&[unique("k"), unique("l"), unique("k")]).await;
    let there = [ready, scheduled, ready].map(Enqueued::AlreadyThere);
    assert_eq!(again, there);
    assert_eq!(scene.records().await.len(), 2);
}

pub(super) async fn an_earlier_element_of_the_same_call_is_already_there(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let added =
        scene.enqueue(&[unique("k"), job("a"), unique("k"), unique("l"), unique("k")]).await;
    let first = added[0].id();
    assert_eq!(added[0], Enqueued::Added(first));
    assert_eq!([added[2], added[4]], [Enqueued::AlreadyThere(first); 2]);
    assert!(matches!(added[1..4], [Enqueued::Added(_), _, Enqueued::Added(_)]), "{added:?}");
    assert_eq!(scene.records().await.len(), 3);
}

pub(super) async fn a_key_binds_its_kind_over_all_queues(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let first = scene.add(&unique("k")).await;
    let other_kind = NewJob { kind: Kind::new("another").unwrap(), ..unique("k") };
    scene.add(&other_kind).await;
    let other_queue = NewJob { queue: queue("other"), ..unique("k") };
    assert_eq!(scene.enqueue(&[other_queue]).await, [Enqueued::AlreadyThere(first)]);
}

pub(super) async fn keys_are_compared_byte_by_byte(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let long = "é".repeat(256);
    let other = format!("{}e", "é".repeat(255));
    let keys =
        ["k", "K", "k ", " k", "é", "e\u{301}", "ß", "ss", "'", "\"", "%", "_", &long, &other];
    for key in keys {
        scene.add(&unique(key)).await;
    }
    for key in keys {
        assert!(matches!(scene.enqueue(&[unique(key)]).await[..], [Enqueued::AlreadyThere(_)]));
    }
}

pub(super) async fn jobs_without_a_key_have_no_twin(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let without = NewJob { unique_key: None, ..unique("k") };
    scene.enqueue(&[without.clone(), unique("k"), without.clone()]).await;
    let runs = scene.claim(ALL).await;
    assert_eq!(runs.len(), 3);
    for run in &runs {
        scene.end_as(run, &Ending::Unstarted, State::Ready).await;
    }
}

pub(super) async fn a_running_or_finished_job_does_not_bind_its_key(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for ending in [Ending::Done, failed(Retry::Never)] {
        let run = scene.run(&unique("k")).await;
        let next = scene.add(&unique("k")).await;
        assert_ne!(scene.end(&run, &ending).await, Settled::LeaseLost);
        assert!(scene.state(run.fence.job).await.is_finished());
        subject.operate().cancel(&[next]).await.unwrap();
    }
    scene.add(&unique("k")).await;
}

/// A run whose newer twin waits.
async fn run_with_twin(scene: &Scene<'_>, key: &str) -> (ClaimedJob, JobId) {
    let run = scene.run(&unique(key)).await;
    (run, scene.add(&unique(key)).await)
}

async fn is_superseded(scene: &Scene<'_>, older: JobId, twin: JobId) {
    let record = scene.record(older).await;
    assert_eq!(record.state, State::Cancelled);
    assert_eq!(record.error_class.as_deref(), Some(SUPERSEDED));
    assert!(record.error.is_some() && record.finished_at.is_some() && record.worker.is_none());
    let last = scene.events(older).await.pop().expect("a superseded job has an event");
    assert_eq!((last.kind, last.class.as_str()), (EventKind::Cancelled, SUPERSEDED));
    assert!(scene.state(twin).await.is_waiting());
}

pub(super) async fn a_waiting_twin_supersedes_every_outcome_that_would_wait(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let endings = [
        failed(Retry::Ladder),
        failed(Retry::After(Duration::ZERO)),
        Ending::Snoozed(Duration::ZERO),
        Ending::Snoozed(SECOND * 5),
        refused(),
        Ending::Interrupted(Interruption::GivenUp),
        Ending::Interrupted(Interruption::Infrastructure("away".to_owned())),
        Ending::Unstarted,
        Ending::Crashed(Company::Others),
    ];
    for (number, ending) in endings.iter().enumerate() {
        let key = format!("k{number}");
        let (run, twin) = run_with_twin(&scene, &key).await;
        let settlement = ended(&run, ending);
        assert_eq!(scene.settle(&settlement).await, Settled::Applied(State::Cancelled));
        is_superseded(&scene, run.fence.job, twin).await;
        let record = scene.record(run.fence.job).await;
        assert_eq!(record.counters, settlement.counters, "{ending:?}");
        let events = usize::from(settlement.event.is_some()) + 1;
        assert_eq!(scene.events(run.fence.job).await.len(), events, "{ending:?}");
        let next = scene.take().await;
        assert_eq!(next.fence.job, twin);
        scene.end_as(&next, &Ending::Done, State::Succeeded).await;
    }
}

pub(super) async fn a_cancel_goes_before_a_twin(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let (run, _) = run_with_twin(&scene, "k").await;
    subject.operate().cancel(&[run.fence.job]).await.unwrap();
    scene.end_as(&run, &Ending::Unstarted, State::Cancelled).await;
    assert_eq!(scene.record(run.fence.job).await.error_class, None);
}

pub(super) async fn a_swept_run_is_superseded_by_its_twin(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let (run, twin) = run_with_twin(&scene, "k").await;
    let swept = scene.expire().await;
    assert_eq!(swept.jobs, [(run.fence.job, State::Cancelled)]);
    is_superseded(&scene, run.fence.job, twin).await;
}

pub(super) async fn a_run_of_a_closed_worker_is_superseded_by_its_twin(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let (run, twin) = run_with_twin(&scene, "k").await;
    assert_eq!(scene.close().await, [run.fence.job]);
    is_superseded(&scene, run.fence.job, twin).await;
}

pub(super) async fn the_one_that_waits_stands_for_a_newer_one_too(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let older = scene.run(&unique("k")).await;
    let newer = scene.run(&unique("k")).await;
    scene.end_as(&older, &Ending::Unstarted, State::Ready).await;
    scene.end_as(&newer, &failed(Retry::Ladder), State::Cancelled).await;
    is_superseded(&scene, newer.fence.job, older.fence.job).await;
}

pub(super) async fn of_twins_settled_in_one_call_one_waits(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let runs = [scene.run(&unique("k")).await, scene.run(&unique("k")).await];
    let settlements = [ended(&runs[1], &Ending::Unstarted), ended(&runs[0], &Ending::Unstarted)];
    let settled = subject.store().settle(&scene.author(), &settlements).await.unwrap();
    let mut states = [scene.state(runs[1].fence.job).await, scene.state(runs[0].fence.job).await];
    assert_eq!(settled, states.map(Settled::Applied));
    states.sort_unstable();
    assert_eq!(states, [State::Ready, State::Cancelled]);
}

pub(super) async fn of_twins_swept_in_one_call_one_waits(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let runs = [scene.run(&unique("k")).await, scene.run(&unique("k")).await];
    let mut swept = scene.expire().await.jobs;
    swept.sort_unstable();
    assert_eq!(swept.iter().map(|(id, _)| *id).collect::<Vec<_>>(), runs.map(|run| run.fence.job));
    let mut states: Vec<_> = swept.into_iter().map(|(_, state)| state).collect();
    states.sort_unstable();
    assert_eq!(states, [State::Ready, State::Cancelled]);
}

pub(super) async fn a_redrive_is_refused_while_a_twin_waits(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let dead = [scene.dead(&unique("k")).await, scene.dead(&unique("k")).await];
    let twin = scene.add(&unique("k")).await;
    let before = scene.record(dead[0]).await;
    let redriven = subject.operate().redrive(&dead, Redrive::default()).await.unwrap();
    assert_eq!(redriven, [Redriven::TwinWaits(twin); 2]);
    assert_eq!(scene.record(dead[0]).await, before);
    assert_eq!(scene.events(dead[0]).await.len(), 1);
    subject.operate().cancel(&[twin]).await.unwrap();
    let redriven = subject.operate().redrive(&dead, Redrive::default()).await.unwrap();
    assert_eq!(redriven, [Redriven::Ready, Redriven::TwinWaits(dead[0])]);
}

pub(super) async fn a_redriven_job_binds_its_key_again(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let dead = scene.dead(&unique("k")).await;
    subject.operate().redrive(&[dead], Redrive::default()).await.unwrap();
    assert_eq!(scene.enqueue(&[unique("k")]).await, [Enqueued::AlreadyThere(dead)]);
}

pub(super) async fn promotion_recall_and_run_now_never_meet_a_twin(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&unique("k")).await;
    scene.end_as(&run, &failed(Retry::After(SECOND * 5)), State::Scheduled).await;
    let there = Enqueued::AlreadyThere(run.fence.job);
    assert_eq!(scene.enqueue(&[unique("k")]).await, [there]);
    let others: Vec<_> = (0..100)
        .map(|number| {
            let queue = queue(&format!("queue {}", number % 7));
            due_in(SECOND * 5, NewJob { queue, ..unique(&format!("other {number}")) })
        })
        .collect();
    scene.enqueue(&others).await;
    subject.advance(SECOND * 10).await;
    assert_eq!(scene.promote().await, 101);
    assert_eq!(ids(&scene.claim(ALL).await), [run.fence.job]);
    let refused_run = scene.run(&unique("l")).await;
    scene.end_as(&refused_run, &refused(), State::Scheduled).await;
    let routes = subject.store().refused_routes().await.unwrap();
    assert_eq!(subject.store().recall(&routes, ALL).await.unwrap(), 1);
    assert_eq!(
        scene.enqueue(&[unique("l")]).await,
        [Enqueued::AlreadyThere(refused_run.fence.job)]
    );
    let later = scene.add(&due_in(SECOND * 60, unique("m"))).await;
    assert_eq!(subject.operate().run_now(&[later]).await.unwrap(), [true]);
    assert_eq!(scene.enqueue(&[unique("m")]).await, [Enqueued::AlreadyThere(later)]);
}

pub(super) async fn a_cancelled_job_frees_its_key(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let first = scene.add(&unique("k")).await;
    subject.operate().cancel(&[first]).await.unwrap();
    assert!(scene.add(&unique("k")).await > first);
}

pub(super) async fn of_twins_enqueued_at_once_one_is_added(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..10 {
        let key = format!("k{round}");
        let new = [unique(&key)];
        let added = join_all((0..8).map(|_| scene.enqueue(&new))).await.concat();
        let news: Vec<_> = added.iter().filter(|one| matches!(one, Enqueued::Added(_))).collect();
        assert_eq!(news.len(), 1, "{added:?}");
        assert!(added.iter().all(|one| one.id() == news[0].id()), "{added:?}");
    }
}

/// A producer writes a fact, is told "already there", and commits; no run that began before that
/// commit may stand for it.
pub(super) async fn a_twin_answered_in_a_transaction_starts_after_its_commit(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    for round in 0..25 {
        let waiting = scene.add(&unique("k")).await;
        let heads = scene.heads(&["default"]).await;
        let is_over = AtomicBool::new(false);
        let mut tx = subject.transactions().begin().await.unwrap();
        let there = tx.enqueue(&[unique("k")]).await.unwrap();
        assert_eq!(there, [Enqueued::AlreadyThere(waiting)]);
        let end = async {
            yield_often(round * 7).await;
            is_over.store(true, Ordering::SeqCst);
            if round % 2 == 0 {
                tx.commit().await.unwrap();
            } else {
                tx.rollback().await.unwrap();
            }
        };
        let claim = async {
            let early = scene.claim_from(&heads, ALL).await;
            assert!(early.is_empty() || is_over.load(Ordering::SeqCst), "claimed under the lock");
            early
        };
        let (early, ()) = join(claim, end).await;
        let late = scene.claim_from(&heads, ALL).await;
        assert_eq!(ids(&early).into_iter().chain(ids(&late)).collect::<Vec<_>>(), [waiting]);
        for run in early.iter().chain(&late) {
            scene.end_as(run, &Ending::Done, State::Succeeded).await;
        }
    }
}

/// A handler copies a value when it starts; a producer changes the value and enqueues. When all is
/// over the copy is the latest value, whatever came first.
pub(super) async fn an_enqueue_beside_a_claim_leaves_a_run_that_starts_after_it(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    let (value, copy) = (AtomicU32::new(0), AtomicU32::new(0));
    let work = async |limit| {
        let runs = scene.claim(limit).await;
        if !runs.is_empty() {
            copy.store(value.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        for run in &runs {
            scene.end_as(run, &Ending::Done, State::Succeeded).await;
        }
        !runs.is_empty()
    };
    for round in 1..=100 {
        scene.enqueue(&[unique("k")]).await;
        let produce = async {
            yield_often(round % 9).await;
            value.store(round, Ordering::SeqCst);
            scene.enqueue(&[unique("k")]).await;
        };
        join(produce, work(1)).await;
        while work(ALL).await {}
        assert_eq!(copy.load(Ordering::SeqCst), round);
    }
}

pub(super) async fn the_longest_key_is_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let key = "🦀".repeat(128);
    let unique_key = Some(UniqueKey::new(&key).unwrap());
    let id = scene.add(&NewJob { unique_key, ..job("a") }).await;
    assert_eq!(scene.record(id).await.unique_key, Some(key));
}
