//! Checkpoints: kept exactly, carried from run to run, and what it means that one moved.

use std::time::Duration;

use futures_util::future::join;

use super::super::{CheckpointSave, Redrive, Saved, Standing};
use super::Subject;
use super::scene::{ALL, Scene, failed, job, save, yield_often};
use crate::id::Fence;
use crate::outcome::{Ending, Interruption, Retry};
use crate::record::{ClaimedJob, Counters};
use crate::state::State;
use crate::version::{MinReader, Version};

const HELD: Saved = Saved::Answered(Standing::Held);

const COUNTED: Counters =
    Counters { failures: 2, interruptions: 3, crashes: 1, refusals: 4, snoozes: 5 };

/// A run of a job with counters that are not zero.
async fn counted(scene: &Scene<'_>) -> ClaimedJob {
    let run = scene.run(&job("a")).await;
    let unstarted = super::scene::ended(&run, &Ending::Unstarted);
    scene.settle(&crate::Settlement { counters: COUNTED, ..unstarted }).await;
    scene.take().await
}

async fn saved(scene: &Scene<'_>, fence: Fence) -> (String, i64) {
    let stored = scene.record(fence.job).await.checkpoint.expect("a checkpoint is stored");
    (stored.text, stored.number)
}

pub(super) async fn the_next_run_resumes_from_the_checkpoint(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let text = r#"{"Rows": {"last_id": 18446744073709551615, "a": "\u0000 '\" 🦀"}}"#;
    let version = Version::new(3, 4, 5);
    let min_reader = MinReader { major: 3, minor: 2 };
    let saves = [CheckpointSave { version, min_reader, ..save(run.fence, text) }];
    assert_eq!(subject.store().checkpoint(&saves).await.unwrap(), [HELD]);
    scene.end_as(&run, &failed(Retry::After(Duration::ZERO)), State::Ready).await;
    let stored = scene.take().await.checkpoint.unwrap();
    assert_eq!((stored.text.as_str(), stored.number), (text, 1));
    assert_eq!((stored.version.as_str(), stored.min_reader.as_deref()), ("3.4.5", Some("3.2")));
}

pub(super) async fn every_move_gets_the_next_number(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    for (text, number) in [("[1]", 1), ("[2]", 2), ("[2]", 2), ("[1]", 3), ("[1] ", 4)] {
        scene.save(run.fence, text).await;
        assert_eq!(saved(&scene, run.fence).await, (text.to_owned(), number));
    }
    let newer = CheckpointSave { version: Version::new(1, 1, 0), ..save(run.fence, "[1] ") };
    let reader = CheckpointSave { min_reader: MinReader { major: 1, minor: 1 }, ..newer.clone() };
    for (save, number) in [(newer, 5), (reader.clone(), 6), (reader, 6)] {
        subject.store().checkpoint(&[save]).await.unwrap();
        assert_eq!(saved(&scene, run.fence).await.1, number);
    }
}

pub(super) async fn a_move_resets_failures_interruptions_and_crashes(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = counted(&scene).await;
    scene.save(run.fence, "[1]").await;
    let kept = Counters { failures: 0, interruptions: 0, crashes: 0, ..COUNTED };
    assert_eq!(scene.record(run.fence.job).await.counters, kept);
}

pub(super) async fn every_later_move_resets_what_went_wrong_in_between(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut run = scene.run(&job("a")).await;
    for text in ["[1]", "[2]", "[3]"] {
        scene.save(run.fence, text).await;
        let kept = scene.record(run.fence.job).await.counters;
        assert_eq!((kept.failures, kept.interruptions, kept.crashes), (0, 0, 0));
        let unstarted = super::scene::ended(&run, &Ending::Unstarted);
        scene.settle(&crate::Settlement { counters: COUNTED, ..unstarted }).await;
        run = scene.take().await;
        assert_eq!(run.counters, COUNTED);
    }
}

pub(super) async fn a_strict_move_keeps_the_failures(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = counted(&scene).await;
    let saves = [CheckpointSave { keeps_failures: true, ..save(run.fence, "[1]") }];
    subject.store().checkpoint(&saves).await.unwrap();
    let kept = Counters { interruptions: 0, crashes: 0, ..COUNTED };
    assert_eq!(scene.record(run.fence.job).await.counters, kept);
}

pub(super) async fn a_checkpoint_that_did_not_move_resets_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = counted(&scene).await;
    scene.save(run.fence, "[1]").await;
    let unstarted = super::scene::ended(&run, &Ending::Unstarted);
    scene.settle(&crate::Settlement { counters: COUNTED, ..unstarted }).await;
    let again = scene.take().await;
    let before = scene.record(run.fence.job).await;
    assert_eq!(scene.save(again.fence, "[1]").await, Standing::Held);
    assert_eq!(scene.record(run.fence.job).await, before);
    assert_eq!(before.counters, COUNTED);
}

pub(super) async fn a_checkpoint_outlives_crash_close_and_death(subject: &dyn Subject) {
    let first = Scene::open(subject).await;
    let run = first.run(&job("a")).await;
    first.save(run.fence, "[70]").await;
    first.expire().await;
    let second = first.another().await;
    let run = second.take().await;
    assert_eq!(run.checkpoint.as_ref().unwrap().text, "[70]");
    second.close().await;
    let third = second.another().await;
    let run = third.take().await;
    assert_eq!(run.checkpoint.as_ref().unwrap().text, "[70]");
    third.end_as(&run, &failed(Retry::Never), State::Dead).await;
    subject.operate().redrive(&[run.fence.job], Redrive::default()).await.unwrap();
    assert_eq!(third.take().await.checkpoint.unwrap().text, "[70]");
}

pub(super) async fn a_stale_checkpoint_does_not_replace_a_newer_one(subject: &dyn Subject) {
    let stale = Scene::open(subject).await;
    let run = stale.run(&job("a")).await;
    stale.save(run.fence, "[30]").await;
    stale.expire().await;
    let next = stale.another().await;
    let taken = next.take().await;
    next.save(taken.fence, "[70]").await;
    assert_eq!(stale.save(run.fence, "[40]").await, Standing::Lost);
    assert_eq!(saved(&next, run.fence).await, ("[70]".to_owned(), 2));
}

pub(super) async fn two_saves_of_one_run_in_a_call_are_kept_in_order(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let saves = [save(run.fence, "[1]"), save(run.fence, "[2]")];
    assert_eq!(subject.store().checkpoint(&saves).await.unwrap(), [HELD; 2]);
    assert_eq!(saved(&scene, run.fence).await, ("[2]".to_owned(), 2));
}

/// Whoever saves is told what became of its own checkpoint, whatever holds the others up.
pub(super) async fn a_row_that_someone_holds_keeps_no_other_checkpoint_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 3]).await;
    let runs = scene.claim(ALL).await;
    for round in 0_u32..10 {
        let [inside, outside] = ["inside", "outside"].map(|place| format!("[{round}, {place:?}]"));
        let mut tx = subject.transactions().begin().await.unwrap();
        tx.checkpoint(&save(runs[1].fence, &inside)).await.unwrap();
        let end = async {
            yield_often(round * 9).await;
            if round % 2 == 0 { tx.commit().await } else { tx.rollback().await }.unwrap();
        };
        let saves = [0, 1, 2].map(|nth| save(runs[nth].fence, &outside));
        let (answers, ()) = join(subject.store().checkpoint(&saves), end).await;
        let answers = answers.unwrap();
        assert_eq!((answers[0], answers[2]), (HELD, HELD));
        for (run, answer) in runs.iter().zip(&answers) {
            let is_saved = saved(&scene, run.fence).await.0 == outside;
            assert_eq!(is_saved, *answer == HELD, "{answer:?}");
        }
    }
}

pub(super) async fn a_checkpoint_writes_no_event_and_keeps_the_place(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.save(run.fence, "[1]").await;
    assert_eq!(scene.events(run.fence.job).await, []);
    let stopped = Ending::Interrupted(Interruption::Stopped("drain".to_owned()));
    scene.end_as(&run, &stopped, State::Ready).await;
    assert_eq!(scene.take().await.place, run.place);
}
