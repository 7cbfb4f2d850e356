//! Calls that are dropped half-way: each happens as a whole or not at all, and the next call finds
//! no transaction that someone left open.

use std::pin::pin;

use futures_util::poll;

use super::super::{Claim, Leaving, Row};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, ended, failed, job, save, yield_often};
use crate::outcome::{Ending, Retry};
use crate::record::{ClaimedJob, Notes};
use crate::state::State;

/// After how many looks a call is dropped.
const LOOKS: [u32; 12] = [0, 1, 2, 3, 4, 6, 9, 14, 22, 35, 60, 150];

/// Looks at a call so many times and drops it; its answer if it has come by then.
async fn drop_after<T>(looks: u32, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    for _ in 0..looks {
        if let std::task::Poll::Ready(answer) = poll!(call.as_mut()) {
            return Some(answer);
        }
        yield_often(3).await;
    }
    None
}

pub(super) async fn a_dropped_enqueue_stores_all_or_none(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut answered = 0;
    for looks in LOOKS {
        let jobs = vec![job("a"); 50];
        if let Some(added) = drop_after(looks, subject.store().enqueue(&jobs)).await {
            answered += added.unwrap().len();
        }
        let stored = scene.records().await.len();
        assert_eq!(stored % 50, 0, "a part of a call was stored");
        assert!(stored >= answered, "what was answered is stored");
    }
    scene.add(&job("b")).await;
}

pub(super) async fn a_dropped_begin_leaves_no_transaction_open(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for looks in LOOKS {
        drop(drop_after(looks, subject.transactions().begin()).await);
        let id = scene.add(&job("a")).await;
        assert_eq!(scene.state(id).await, State::Ready);
        let tx = subject.transactions().begin().await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(scene.state(id).await, State::Ready);
    }
}

pub(super) async fn a_dropped_write_within_a_transaction_goes_with_it(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let before = scene.records().await;
    for looks in LOOKS {
        let mut tx = subject.transactions().begin().await.unwrap();
        drop_after(looks, tx.enqueue(&vec![job("a"); 50])).await;
        drop(tx);
        let mut tx = subject.transactions().begin().await.unwrap();
        drop_after(looks, tx.done(run.fence, &Notes::default())).await;
        drop(tx);
        let mut tx = subject.transactions().begin().await.unwrap();
        drop_after(looks, tx.checkpoint(&save(run.fence, "[1]"))).await;
        drop(tx);
        assert_eq!(scene.reread(run.fence).await, Row::Running(run.counters));
        assert_eq!(scene.records().await, before);
    }
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_dropped_commit_happens_whole_or_not_at_all(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for looks in LOOKS {
        let run = scene.run(&job("a")).await;
        let before = scene.records().await.len();
        let mut tx = subject.transactions().begin().await.unwrap();
        tx.enqueue(&vec![job("b"); 3]).await.unwrap();
        tx.done(run.fence, &Notes::default()).await.unwrap();
        drop_after(looks, tx.commit()).await;
        let row = scene.reread(run.fence).await;
        let added = scene.records().await.len() - before;
        match row {
            Row::Running(_) => {
                assert_eq!(added, 0);
                scene.end_as(&run, &Ending::Done, State::Succeeded).await;
            }
            Row::Settled(state) => assert_eq!((state, added), (State::Succeeded, 3)),
            Row::Taken(_) | Row::Missing | Row::Locked => panic!("{row:?}"),
        }
        for run in scene.claim(ALL).await {
            scene.end_as(&run, &Ending::Done, State::Succeeded).await;
        }
    }
}

pub(super) async fn a_dropped_settlement_is_told_by_the_row(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for looks in LOOKS {
        let run = scene.run(&job("a")).await;
        let settlements = [ended(&run, &failed(Retry::Never))];
        let author = scene.author();
        drop_after(looks, subject.store().settle(&author, &settlements)).await;
        // Whatever the row says now, asking once more brings it to the same end.
        scene.settle(&settlements[0]).await;
        assert_eq!(scene.reread(run.fence).await, Row::Settled(State::Dead));
        assert_eq!(scene.events(run.fence.job).await.len(), 1);
        assert_eq!(scene.record(run.fence.job).await.counters.failures, 1);
    }
}

pub(super) async fn a_dropped_claim_is_known_to_the_store(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 100]).await;
    let heads = scene.heads(&["default"]).await;
    let mut heard: Vec<ClaimedJob> = Vec::new();
    for looks in LOOKS {
        let claim = Claim { worker: scene.worker, heads: &heads, limit: 3 };
        match drop_after(looks, subject.store().claim(claim)).await {
            Some(Ok(super::super::Claimed::Jobs(runs))) => heard.extend(runs),
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }
    let mut heartbeat = subject.store().heartbeat().await.unwrap();
    let held = heartbeat.held(scene.worker).await.unwrap();
    for run in &heard {
        assert!(held.iter().any(|held| held.fence == run.fence), "{:?} is held", run.fence);
    }
    let given_back = scene.close().await;
    assert!(given_back.len() >= held.len());
    for record in scene.records().await {
        assert_eq!(record.state, State::Ready, "{record:?}");
    }
}

pub(super) async fn a_dropped_close_happens_whole_or_not_at_all(subject: &dyn Subject) {
    for looks in LOOKS {
        let scene = Scene::open(subject).await;
        scene.enqueue(&vec![job("a"); 5]).await;
        let runs = scene.claim(ALL).await;
        let (author, leaving) = (scene.author(), Leaving::default());
        let mut heartbeat = subject.store().heartbeat().await.unwrap();
        drop_after(looks, heartbeat.close(scene.worker, &author, &leaving)).await;
        scene.close().await;
        for run in runs {
            let record = scene.record(run.fence.job).await;
            assert_eq!((record.state, record.counters.interruptions), (State::Ready, 1));
            subject.operate().cancel(&[run.fence.job]).await.unwrap();
        }
    }
}

pub(super) async fn a_dropped_heartbeat_can_be_asked_again(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut heartbeat = subject.store().heartbeat().await.unwrap();
    for looks in LOOKS {
        let phase = super::super::Phase::Working;
        drop_after(looks, heartbeat.renew(scene.worker, phase, SECOND)).await;
        drop_after(looks, heartbeat.held(scene.worker)).await;
        let renewed = heartbeat.renew(scene.worker, phase, SECOND).await.unwrap();
        assert_eq!(renewed, super::super::Renewed::Renewed);
        assert_eq!(heartbeat.held(scene.worker).await.unwrap(), []);
    }
}
