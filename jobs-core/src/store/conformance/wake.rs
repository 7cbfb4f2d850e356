//! Waking: a hint that comes, though it may come for nothing and may be missed.

use futures_util::poll;

use super::Subject;
use super::scene::{Scene, job, yield_often};

/// Any one change may be missed, so this changes the store until the wake has heard of one.
pub(super) async fn a_wake_hears_of_enqueued_jobs(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut wake = subject.store().wake();
    for _ in 0..2 {
        let mut changed = wake.changed();
        let mut enqueued = 0;
        while poll!(&mut changed).is_pending() {
            assert!(enqueued < 5_000, "no wake in {enqueued} enqueues");
            scene.add(&job("a")).await;
            yield_often(10).await;
            enqueued += 1;
        }
    }
}

pub(super) async fn a_dropped_wait_loses_no_change(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut wake = subject.store().wake();
    let mut enqueued = 0;
    // Each wait is dropped after one look, so a change is heard of only if it outlives the drops.
    while poll!(wake.changed()).is_pending() {
        assert!(enqueued < 5_000, "no wake in {enqueued} enqueues");
        scene.add(&job("a")).await;
        yield_often(10).await;
        enqueued += 1;
    }
}
