//! A queue of which only so many jobs run in all workers together.

use futures_util::future::join_all;

use super::super::{Claim, Claimed, Row};
use super::Subject;
use super::scene::{ALL, Scene, ids, job, queue};
use crate::envelope::NewJob;
use crate::outcome::Ending;
use crate::record::ClaimedJob;
use crate::state::State;

async fn within(scene: &Scene<'_>, name: &str, limit: u32, most: u32) -> Vec<ClaimedJob> {
    let heads = scene.heads(&[name]).await;
    let claim = Claim { worker: scene.worker, heads: &heads, limit };
    match scene.subject.store().claim_within(claim, most).await.unwrap() {
        Claimed::Jobs(jobs) => jobs,
        Claimed::WorkerEnded => panic!("the worker has ended"),
    }
}

pub(super) async fn a_limited_queue_runs_so_many_in_all_workers(subject: &dyn Subject) {
    let (one, two) = (Scene::open(subject).await, Scene::open(subject).await);
    let other = NewJob { queue: queue("other"), ..job("a") };
    one.enqueue(&[vec![job("a"); 9], vec![other; 9]].concat()).await;
    assert_eq!(one.claim_in("other", ALL).await.len(), 9, "another queue's runs do not count");
    assert_eq!(within(&one, "default", 2, 5).await.len(), 2);
    let rest = within(&two, "default", ALL, 5).await;
    assert_eq!(rest.len(), 3);
    assert_eq!(within(&one, "default", ALL, 5).await, []);
    assert_eq!(within(&one, "default", ALL, 3).await, [], "another number of another build");
    two.end_as(&rest[0], &Ending::Done, State::Succeeded).await;
    assert_eq!(within(&one, "default", ALL, 5).await.len(), 1);
    assert_eq!(within(&one, "default", ALL, 0).await, []);
    assert_eq!(within(&one, "default", ALL, ALL).await.len(), 3);
    assert_eq!(within(&one, "default", ALL, 5).await, [], "nothing is ready");
}

pub(super) async fn a_late_settlement_frees_no_slot_twice(subject: &dyn Subject) {
    let (one, two) = (Scene::open(subject).await, Scene::open(subject).await);
    one.enqueue(&vec![job("a"); 6]).await;
    let first = within(&one, "default", ALL, 2).await;
    one.close().await;
    // Both were given back, and two run again; then the old worker's word comes.
    let again = within(&two, "default", ALL, 2).await;
    assert_eq!(ids(&again), ids(&first));
    for run in &first {
        assert_eq!(two.end(run, &Ending::Done).await, super::super::Settled::LeaseLost);
        assert!(matches!(two.reread(run.fence).await, Row::Taken(_) | Row::Running(_)));
    }
    assert_eq!(within(&two, "default", ALL, 2).await, []);
    two.end_as(&again[0], &Ending::Done, State::Succeeded).await;
    assert_eq!(two.end(&again[0], &Ending::Done).await, super::super::Settled::LeaseLost);
    assert_eq!(within(&two, "default", ALL, 2).await.len(), 1);
    assert_eq!(within(&two, "default", ALL, 2).await, []);
}

pub(super) async fn claims_at_once_keep_to_the_limit(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 60]).await;
    for _ in 0..5 {
        let claims = join_all([(); 4].map(|()| within(&scene, "default", 3, 5))).await;
        let runs = claims.concat();
        assert_eq!(runs.len(), 5);
        for run in &runs {
            scene.end_as(run, &Ending::Done, State::Succeeded).await;
        }
    }
}

pub(super) async fn a_limited_claim_is_a_claim(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let store = subject.store();
    let nothing = Claim { worker: scene.worker, heads: &[], limit: 5 };
    assert_eq!(store.claim_within(nothing, 5).await.unwrap(), Claimed::Jobs(Vec::new()));
    scene.enqueue(&vec![job("a"); 3]).await;
    let heads = scene.heads(&["default"]).await;
    subject.operate().pause(&queue("default"), "me", "why").await.unwrap();
    let claim = Claim { worker: scene.worker, heads: &heads, limit: 5 };
    assert_eq!(store.claim_within(claim, 5).await.unwrap(), Claimed::Jobs(Vec::new()));
    subject.operate().resume(&queue("default")).await.unwrap();
    scene.close().await;
    for most in [5, 0] {
        let claim = Claim { worker: scene.worker, heads: &heads, limit: 5 };
        assert_eq!(store.claim_within(claim, most).await.unwrap(), Claimed::WorkerEnded);
    }
}
