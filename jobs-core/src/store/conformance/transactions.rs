//! Transactions of the caller: all of it or nothing, and the fence holds at the commit.
//!
//! In a store with one writer everyone else's calls wait while a transaction is open, so nothing
//! here waits for such a call before it ends the transaction.

use futures_util::future::join;

use super::super::{Cancelled, Enqueued, Row, Settled, Standing, Transaction};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, ended, failed, job, moved, save, unique, yield_often};
use crate::id::Fence;
use crate::lease::Lease;
use crate::outcome::{Ending, Retry};
use crate::record::Notes;
use crate::state::State;

async fn begin(scene: &Scene<'_>) -> Box<dyn Transaction> {
    scene.subject.transactions().begin().await.unwrap()
}

/// A transaction in which a run has already written its success.
async fn finishing(scene: &Scene<'_>, fence: Fence) -> Box<dyn Transaction> {
    let mut tx = begin(scene).await;
    assert_eq!(tx.done(fence, &Notes::default()).await.unwrap(), Standing::Held);
    tx
}

pub(super) async fn a_commit_makes_all_of_it_visible(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let mut tx = begin(&scene).await;
    let added = tx.enqueue(&[job("b"), job("c")]).await.unwrap();
    assert_eq!(tx.checkpoint(&save(run.fence, "[1]")).await.unwrap(), Standing::Held);
    assert_eq!(tx.done(run.fence, &Notes::default()).await.unwrap(), Standing::Held);
    tx.commit().await.unwrap();
    for added in added {
        assert_eq!(scene.state(added.id()).await, State::Ready);
    }
    let record = scene.record(run.fence.job).await;
    assert_eq!((record.state, record.worker), (State::Succeeded, Some(scene.worker)));
    assert!(record.finished_at.is_some());
    assert_eq!(record.checkpoint.unwrap().text, "[1]");
    assert_eq!(scene.reread(run.fence).await, Row::Settled(State::Succeeded));
    assert_eq!(scene.events(run.fence.job).await, []);
}

pub(super) async fn a_rollback_leaves_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.save(run.fence, "[1]").await;
    let before = scene.records().await;
    let mut tx = begin(&scene).await;
    tx.enqueue(&[job("b"), unique("k")]).await.unwrap();
    assert_eq!(tx.checkpoint(&save(run.fence, "[2]")).await.unwrap(), Standing::Held);
    assert_eq!(tx.done(run.fence, &Notes::default()).await.unwrap(), Standing::Held);
    tx.rollback().await.unwrap();
    assert_eq!(scene.records().await, before);
    assert_eq!(scene.reread(run.fence).await, Row::Running(run.counters));
    scene.add(&unique("k")).await;
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_dropped_transaction_leaves_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let before = scene.records().await;
    let mut tx = begin(&scene).await;
    tx.enqueue(&[job("b")]).await.unwrap();
    tx.done(run.fence, &Notes::default()).await.unwrap();
    drop(tx);
    drop(begin(&scene).await);
    scene.end_as(&run, &Ending::Unstarted, State::Ready).await;
    assert_eq!(scene.records().await.len(), before.len());
}

pub(super) async fn an_empty_transaction_changes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.add(&job("a")).await;
    let before = scene.records().await;
    begin(&scene).await.commit().await.unwrap();
    begin(&scene).await.rollback().await.unwrap();
    assert_eq!(scene.records().await, before);
}

pub(super) async fn a_hundred_thousand_jobs_are_undone_together(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let many = vec![job("a"); 100_000];
    let mut tx = begin(&scene).await;
    assert_eq!(tx.enqueue(&many).await.unwrap().len(), many.len());
    tx.rollback().await.unwrap();
    assert_eq!(subject.inspect().counts().await.unwrap(), []);
}

pub(super) async fn a_hundred_thousand_jobs_are_committed_together(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut tx = begin(&scene).await;
    tx.enqueue(&vec![job("a"); 100_000]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(subject.inspect().counts().await.unwrap()[0].jobs, 100_000);
    assert_eq!(scene.claim(10).await.len(), 10);
}

pub(super) async fn a_key_binds_within_and_across_a_transaction(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let there = scene.add(&unique("k")).await;
    let mut tx = begin(&scene).await;
    let first = tx.enqueue(&[unique("k"), unique("l")]).await.unwrap();
    assert_eq!(first[0], Enqueued::AlreadyThere(there));
    let again = tx.enqueue(&[unique("l")]).await.unwrap();
    assert_eq!(again, [Enqueued::AlreadyThere(first[1].id())]);
    tx.commit().await.unwrap();
    assert_eq!(scene.enqueue(&[unique("l")]).await, again);
}

pub(super) async fn an_enqueue_waits_for_a_twin_in_an_open_transaction(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..10 {
        let key = unique(&format!("k{round}"));
        let mut tx = begin(&scene).await;
        let inside = tx.enqueue(std::slice::from_ref(&key)).await.unwrap();
        let end = async {
            yield_often(round * 5).await;
            if round % 2 == 0 { tx.commit().await } else { tx.rollback().await }.unwrap();
        };
        let new = [key.clone()];
        let (outside, ()) = join(scene.enqueue(&new), end).await;
        let is_there = outside == [Enqueued::AlreadyThere(inside[0].id())];
        assert_eq!(is_there, round % 2 == 0, "{outside:?} beside {inside:?}");
    }
}

pub(super) async fn a_run_that_lost_its_claim_finishes_in_no_transaction(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let before = scene.record(run.fence.job).await;
    let mut tx = begin(&scene).await;
    for by in [-1, 1] {
        assert_eq!(tx.done(moved(run.fence, by), &Notes::default()).await.unwrap(), Standing::Lost);
        let save = save(moved(run.fence, by), "[1]");
        assert_eq!(tx.checkpoint(&save).await.unwrap(), Standing::Lost);
    }
    tx.commit().await.unwrap();
    assert_eq!(scene.record(run.fence.job).await, before);
}

pub(super) async fn a_run_finishes_once_in_a_transaction(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let mut tx = finishing(&scene, run.fence).await;
    assert_eq!(tx.done(run.fence, &Notes::default()).await.unwrap(), Standing::Lost);
    assert_eq!(tx.checkpoint(&save(run.fence, "[1]")).await.unwrap(), Standing::Lost);
    tx.commit().await.unwrap();
    assert_eq!(scene.record(run.fence.job).await.checkpoint, None);
}

pub(super) async fn a_finish_tells_of_a_cancel_and_stands(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    subject.operate().cancel(&[run.fence.job]).await.unwrap();
    let mut tx = begin(&scene).await;
    let saved = tx.checkpoint(&save(run.fence, "[1]")).await.unwrap();
    assert_eq!(saved, Standing::CancelRequested);
    assert_eq!(tx.done(run.fence, &Notes::default()).await.unwrap(), Standing::CancelRequested);
    tx.commit().await.unwrap();
    assert_eq!(scene.state(run.fence.job).await, State::Succeeded);
}

pub(super) async fn a_finish_keeps_counters_and_clears_the_refusal(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &super::scene::refused(), State::Scheduled).await;
    subject.operate().run_now(&[run.fence.job]).await.unwrap();
    let again = scene.take().await;
    finishing(&scene, again.fence).await.commit().await.unwrap();
    let record = scene.record(run.fence.job).await;
    assert_eq!((record.refused, record.counters), (None, again.counters));
}

pub(super) async fn a_checkpoint_in_a_transaction_moves_and_resets_alike(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &failed(Retry::After(std::time::Duration::ZERO)), State::Ready).await;
    let run = scene.take().await;
    for (text, number) in [("[1]", 1), ("[1]", 1), ("[2]", 2)] {
        let mut tx = begin(&scene).await;
        assert_eq!(tx.checkpoint(&save(run.fence, text)).await.unwrap(), Standing::Held);
        tx.commit().await.unwrap();
        let record = scene.record(run.fence.job).await;
        assert_eq!(record.checkpoint.unwrap().number, number);
        assert_eq!(record.counters.failures, 0);
    }
}

pub(super) async fn a_finish_that_commits_beside_a_sweep_stands(subject: &dyn Subject) {
    for round in 0..10 {
        let scene = Scene::open(subject).await;
        let run = scene.run(&job("a")).await;
        scene.sweep().await;
        subject.advance(Lease::default().length() + SECOND).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * 9).await;
            tx.commit().await.unwrap();
        };
        let (swept, ()) = join(scene.sweep(), end).await;
        assert_eq!(swept.jobs, []);
        assert_eq!(scene.sweep().await.jobs, []);
        let record = scene.record(run.fence.job).await;
        assert_eq!((record.state, record.claim), (State::Succeeded, run.fence.claim));
    }
}

pub(super) async fn a_finish_rolled_back_beside_a_sweep_is_taken_back(subject: &dyn Subject) {
    for round in 0..10 {
        let scene = Scene::open(subject).await;
        let run = scene.run(&job("a")).await;
        scene.sweep().await;
        subject.advance(Lease::default().length() + SECOND).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * 9).await;
            tx.rollback().await.unwrap();
        };
        let (during, ()) = join(scene.sweep(), end).await;
        let jobs = [during.jobs, scene.sweep().await.jobs].concat();
        assert_eq!(jobs, [(run.fence.job, State::Ready)]);
        assert_eq!(scene.record(run.fence.job).await.claim, moved(run.fence, 1).claim);
        subject.operate().cancel(&[run.fence.job]).await.unwrap();
    }
}

pub(super) async fn a_finish_that_commits_beside_a_close_stands(subject: &dyn Subject) {
    for round in 0..10 {
        let scene = Scene::open(subject).await;
        let run = scene.run(&job("a")).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * 9).await;
            tx.commit().await.unwrap();
        };
        let (given_back, ()) = join(scene.close(), end).await;
        assert_eq!(given_back, []);
        scene.sweep().await;
        let record = scene.record(run.fence.job).await;
        assert_eq!((record.state, record.claim), (State::Succeeded, run.fence.claim));
    }
}

pub(super) async fn a_finish_rolled_back_beside_a_close_is_given_up(subject: &dyn Subject) {
    for round in 0..10 {
        let scene = Scene::open(subject).await;
        let run = scene.run(&job("a")).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * round * 400).await;
            tx.rollback().await.unwrap();
        };
        let (given_back, ()) = join(scene.close(), end).await;
        let swept = scene.sweep().await.jobs;
        let swept = swept.into_iter().map(|(id, state)| {
            assert_eq!(state, State::Ready, "at once");
            id
        });
        assert_eq!(given_back.into_iter().chain(swept).collect::<Vec<_>>(), [run.fence.job]);
        let counters = scene.record(run.fence.job).await.counters;
        assert_eq!(counters.crashes, 0, "its worker told that it leaves");
        subject.operate().cancel(&[run.fence.job]).await.unwrap();
    }
}

pub(super) async fn a_finish_that_commits_beside_a_settlement_stands(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..10 {
        let run = scene.run(&job("a")).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * 9).await;
            tx.commit().await.unwrap();
        };
        let settlement = ended(&run, &failed(Retry::Never));
        let (settled, ()) = join(scene.settle(&settlement), end).await;
        assert_eq!(settled, Settled::LeaseLost);
        assert_eq!(scene.state(run.fence.job).await, State::Succeeded);
    }
}

pub(super) async fn a_finish_rolled_back_beside_a_settlement_gives_way(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..10 {
        let run = scene.run(&job("a")).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * 9).await;
            tx.rollback().await.unwrap();
        };
        let settlement = ended(&run, &failed(Retry::Never));
        let (settled, ()) = join(scene.settle(&settlement), end).await;
        assert_eq!(settled, Settled::Applied(State::Dead));
    }
}

pub(super) async fn a_locked_run_stops_no_settlement_beside_it(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 6]).await;
    let runs = scene.claim(ALL).await;
    let mut tx = begin(&scene).await;
    tx.checkpoint(&save(runs[2].fence, "[1]")).await.unwrap();
    let settlements: Vec<_> = runs.iter().map(|run| ended(run, &Ending::Done)).collect();
    let author = scene.author();
    let settle = subject.store().settle(&author, &settlements);
    let end = async {
        yield_often(50).await;
        tx.commit().await.unwrap();
    };
    let (settled, ()) = join(settle, end).await;
    assert_eq!(settled.unwrap(), vec![Settled::Applied(State::Succeeded); 6]);
    let record = scene.record(runs[2].fence.job).await;
    assert_eq!(record.checkpoint.unwrap().text, "[1]");
}

pub(super) async fn a_reread_waits_for_the_end_of_a_finish(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..10 {
        let run = scene.run(&job("a")).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * 9).await;
            if round % 2 == 0 { tx.commit().await } else { tx.rollback().await }.unwrap();
        };
        let (row, ()) = join(scene.reread(run.fence), end).await;
        if round % 2 == 0 {
            assert_eq!(row, Row::Settled(State::Succeeded));
        } else {
            assert_eq!(row, Row::Running(run.counters));
            scene.end_as(&run, &Ending::Done, State::Succeeded).await;
        }
    }
}

pub(super) async fn a_cancel_beside_a_finish_changes_nothing_of_it(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..10 {
        let run = scene.run(&job("a")).await;
        let tx = finishing(&scene, run.fence).await;
        let end = async {
            yield_often(round * 9).await;
            tx.commit().await.unwrap();
        };
        let job = [run.fence.job];
        let (cancelled, ()) = join(subject.operate().cancel(&job), end).await;
        match cancelled.unwrap()[..] {
            [Cancelled::Requested | Cancelled::Finished(State::Succeeded)] => {}
            ref other => panic!("{other:?}"),
        }
        assert_eq!(scene.state(run.fence.job).await, State::Succeeded);
    }
}

pub(super) async fn a_claim_does_not_see_what_is_not_committed(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.add(&job("a")).await;
    let heads = scene.heads(&["default"]).await;
    for round in 0..10 {
        let mut tx = begin(&scene).await;
        let added = tx.enqueue(&[job("a")]).await.unwrap();
        let end = async {
            yield_often(round * 9).await;
            tx.rollback().await.unwrap();
        };
        let (claimed, ()) = join(scene.claim_from(&heads, ALL), end).await;
        assert!(claimed.iter().all(|run| run.fence.job != added[0].id()), "{claimed:?}");
        for run in &claimed {
            scene.end_as(run, &Ending::Unstarted, State::Ready).await;
        }
    }
}
