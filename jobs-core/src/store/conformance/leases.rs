//! Leases: one a worker, renewed as a whole, ended once and for ever.

use std::time::Duration;

use super::super::{Held, NewWorker, Phase, Renewed, Retention, Swept, WORKERS_KEPT};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, job, new_worker, sweep};
use crate::error::StoreErrorKind;
use crate::id::WorkerId;
use crate::lease::Lease;
use crate::name::BuildId;
use crate::outcome::Ending;
use crate::state::State;

pub(super) async fn every_registration_is_another_worker(subject: &dyn Subject) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(subject.store().register(&new_worker("w1")).await.unwrap());
    }
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    assert!(seen[0] > WorkerId(0));
}

pub(super) async fn a_renewed_lease_does_not_expire(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    for _ in 0..5 {
        assert_eq!(scene.sweep().await, Swept::default());
        subject.advance(Duration::from_secs(20)).await;
        assert_eq!(scene.renew().await, Renewed::Renewed);
    }
    assert_eq!(scene.sweep().await, Swept::default());
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_renewal_that_comes_before_the_sweep_keeps_the_lease(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.sweep().await;
    subject.advance(Duration::from_secs(100)).await;
    assert_eq!(scene.renew().await, Renewed::Renewed);
    assert_eq!(scene.sweep().await, Swept::default());
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn an_expired_lease_holds_until_it_is_swept(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&[job("a"), job("b")]).await;
    let runs = scene.claim(1).await;
    scene.sweep().await;
    subject.advance(Duration::from_secs(100)).await;
    assert_eq!(scene.claim(ALL).await.len(), 1);
    scene.end_as(&runs[0], &Ending::Done, State::Succeeded).await;
}

pub(super) async fn an_ended_lease_is_not_renewed(subject: &dyn Subject) {
    let closed = Scene::open(subject).await;
    closed.close().await;
    assert_eq!(closed.renew().await, Renewed::Ended);
    let swept = closed.another().await;
    swept.expire().await;
    assert_eq!(swept.renew().await, Renewed::Ended);
    let unknown = Scene { worker: WorkerId(swept.worker.0 + 1_000_000), ..swept };
    assert_eq!(unknown.renew().await, Renewed::Ended);
}

pub(super) async fn each_lease_has_its_own_length(subject: &dyn Subject) {
    let short = Scene::open(subject).await;
    let lease = Lease::new(Lease::LONGEST).unwrap();
    let long = NewWorker { lease, ..new_worker("long") };
    let long =
        Scene { worker: subject.store().register(&long).await.unwrap(), ..short.another().await };
    let run = long.run(&job("a")).await;
    let swept = short.expire().await;
    assert!(swept.workers.contains(&short.worker), "{swept:?}");
    assert!(!swept.workers.contains(&long.worker), "{swept:?}");
    assert_eq!(long.renew().await, Renewed::Renewed);
    long.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn one_worker_renews_only_itself(subject: &dyn Subject) {
    let one = Scene::open(subject).await;
    let two = one.another().await;
    one.sweep().await;
    for _ in 0..2 {
        subject.advance(Duration::from_secs(16)).await;
        assert_eq!(one.renew().await, Renewed::Renewed);
    }
    assert_eq!(one.sweep().await.workers, [two.worker]);
    assert_eq!(two.renew().await, Renewed::Ended);
    assert_eq!(one.renew().await, Renewed::Renewed);
}

pub(super) async fn a_renewal_publishes_the_phase(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut heartbeat = subject.store().heartbeat().await.unwrap();
    for phase in Phase::ALL {
        assert_eq!(heartbeat.renew(scene.worker, phase, SECOND).await.unwrap(), Renewed::Renewed);
        assert_eq!(subject.inspect().workers().await.unwrap()[0].phase, phase);
    }
}

pub(super) async fn a_heartbeat_hears_what_its_worker_holds(subject: &dyn Subject) {
    let one = Scene::open(subject).await;
    let two = one.another().await;
    one.enqueue(&vec![job("a"); 5]).await;
    let runs = one.claim(3).await;
    let others = two.claim(ALL).await;
    subject.operate().cancel(&[runs[1].fence.job, others[0].fence.job]).await.unwrap();
    let mut heartbeat = subject.store().heartbeat().await.unwrap();
    let held = [(0, false), (1, true), (2, false)]
        .map(|(run, is_cancel_requested)| Held { fence: runs[run].fence, is_cancel_requested });
    assert_eq!(heartbeat.held(one.worker).await.unwrap(), held);
    one.end_as(&runs[0], &Ending::Done, State::Succeeded).await;
    one.end_as(&runs[1], &Ending::Unstarted, State::Cancelled).await;
    assert_eq!(heartbeat.held(one.worker).await.unwrap(), held[2..]);
    assert_eq!(heartbeat.held(two.worker).await.unwrap().len(), 2);
    assert_eq!(heartbeat.held(WorkerId(two.worker.0 + 1_000_000)).await.unwrap(), []);
}

pub(super) async fn the_workers_are_listed_newest_first(subject: &dyn Subject) {
    let scenes =
        [Scene::open(subject).await, Scene::open(subject).await, Scene::open(subject).await];
    let [swept, closed, open] = &scenes;
    subject.store().sweep(&sweep(Duration::ZERO, ALL)).await.unwrap();
    subject.advance(Duration::from_secs(16)).await;
    closed.renew().await;
    open.renew().await;
    subject.advance(Duration::from_secs(16)).await;
    assert_eq!(open.sweep().await.workers, [swept.worker]);
    closed.close().await;
    open.run(&job("a")).await;
    let records = subject.inspect().workers().await.unwrap();
    let seen: Vec<_> = records.iter().map(|worker| worker.id).collect();
    assert_eq!(seen, [open.worker, closed.worker, swept.worker]);
    let ends: Vec<_> = records.iter().map(|w| (w.ended_at.is_some(), w.is_taken_back)).collect();
    assert_eq!(ends, [(false, false), (true, false), (true, true)]);
    let held: Vec<_> = records.iter().map(|worker| worker.held).collect();
    assert_eq!(held, [1, 0, 0]);
    assert_eq!((records[0].name.as_str(), records[0].manifest.as_str()), ("one", "{}"));
    assert_eq!(records[0].build, "shop 1.0.0");
    let phases: Vec<_> = records.iter().map(|worker| worker.phase).collect();
    assert_eq!(phases, [Phase::Working, Phase::Done, Phase::Working]);
}

pub(super) async fn a_lease_ends_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.expire().await;
    let record = subject.inspect().workers().await.unwrap().remove(0);
    subject.advance(SECOND * 60).await;
    assert_eq!(scene.sweep().await, Swept::default());
    scene.close().await;
    assert_eq!(subject.inspect().workers().await.unwrap()[0].is_taken_back, record.is_taken_back);
}

pub(super) async fn workers_that_ended_long_ago_are_forgotten(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let retention = Retention::default();
    scene.close().await;
    subject.store().prune(retention, ALL).await.unwrap();
    assert_eq!(subject.inspect().workers().await.unwrap().len(), 1);
    subject.advance(WORKERS_KEPT + SECOND).await;
    let open = scene.another().await;
    assert_eq!(subject.store().prune(retention, ALL).await.unwrap(), 0);
    let workers = subject.inspect().workers().await.unwrap();
    assert_eq!(workers.iter().map(|worker| worker.id).collect::<Vec<_>>(), [open.worker]);
    assert_eq!(scene.renew().await, Renewed::Ended);
    assert_eq!(scene.close().await, []);
}

pub(super) async fn a_store_that_outgrew_this_build_renews_and_says_so(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let gone = Scene::open(subject).await;
    gone.close().await;
    let mut heartbeat = subject.store().heartbeat().await.unwrap();
    subject.outgrow().await;
    for _ in 0..3 {
        scene.sweep().await;
        subject.advance(Duration::from_secs(20)).await;
        for worker in [scene.worker, gone.worker] {
            let error = heartbeat.renew(worker, Phase::Quiet, SECOND).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        }
    }
    assert_eq!(scene.sweep().await, Swept::default(), "it was renewed all the same");
    let workers = subject.inspect().workers().await.unwrap();
    let record = workers.iter().find(|worker| worker.id == scene.worker).unwrap();
    assert_eq!(record.phase, Phase::Quiet);
    // It drains: what runs may still be settled.
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_prune_forgets_so_many_workers_and_builds_at_most(subject: &dyn Subject) {
    let mut workers = Vec::new();
    for nth in 0..5 {
        let scene = Scene::open(subject).await;
        scene.close().await;
        workers.insert(0, scene.worker);
        let build = BuildId::new(format!("shop {nth}")).unwrap();
        subject.store().publish(&build, "{}").await.unwrap();
        subject.advance(SECOND).await;
    }
    subject.advance(WORKERS_KEPT).await;
    for left in [3, 1, 0, 0] {
        assert_eq!(subject.store().prune(Retention::default(), 2).await.unwrap(), 0);
        let known = subject.inspect().workers().await.unwrap();
        let known: Vec<_> = known.iter().map(|worker| worker.id).collect();
        assert_eq!(known, workers[..left], "the oldest are forgotten first");
        let builds = subject.inspect().builds().await.unwrap();
        let builds: Vec<_> = builds.iter().map(|it| it.build.as_str()).collect();
        let newest = ["shop 4", "shop 3", "shop 2"];
        assert_eq!(builds, newest[..left], "those seen longest ago are forgotten first");
    }
}
