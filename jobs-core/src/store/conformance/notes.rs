//! What handlers leave on their jobs for people: progress and results.

use super::super::Standing;
use super::Subject;
use super::scene::{Scene, ended, job, moved};
use crate::id::Fence;
use crate::outcome::Ending;
use crate::record::{JobRecord, Notes, ProgressNote};
use crate::state::State;
use crate::transition::Settlement;

fn notes(progress: Option<&str>, result: Option<&str>) -> Notes {
    Notes { progress: progress.map(str::to_owned), result: result.map(str::to_owned) }
}

async fn noted(subject: &dyn Subject, fence: Fence, text: &str) -> bool {
    let notes = [ProgressNote { fence, text: text.to_owned() }];
    let written = subject.store().note_progress(&notes).await.unwrap();
    assert_eq!(written.len(), 1, "one answer for one note");
    written[0]
}

fn of(record: &JobRecord) -> (Option<&str>, Option<&str>) {
    (record.progress.as_deref(), record.result.as_deref())
}

pub(super) async fn a_settlement_leaves_its_notes_and_absent_ones_leave_what_was_there(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    let mut run = scene.run(&job("a")).await;
    let steps = [
        (Ending::Unstarted, notes(None, None), (None, None)),
        (Ending::Unstarted, notes(Some("1 of 2"), None), (Some("1 of 2"), None)),
        (Ending::Unstarted, notes(None, None), (Some("1 of 2"), None)),
        (Ending::Done, notes(None, Some("[7]")), (Some("1 of 2"), Some("[7]"))),
    ];
    for (ending, notes, wanted) in steps {
        scene.settle(&Settlement { notes, ..ended(&run, &ending) }).await;
        assert_eq!(of(&scene.record(run.fence.job).await), wanted);
        if ending != Ending::Done {
            run = scene.take().await;
        }
    }
}

pub(super) async fn progress_is_written_while_the_run_goes_on_and_changes_nothing_else(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let before = scene.record(run.fence.job).await;
    for text in ["1 of 2", "2 of 2"] {
        assert!(noted(subject, run.fence, text).await);
        let wanted = JobRecord { progress: Some(text.to_owned()), ..before.clone() };
        assert_eq!(scene.record(run.fence.job).await, wanted);
    }
    assert_eq!(scene.events(run.fence.job).await, []);
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn progress_of_a_run_that_lost_its_claim_is_not_written(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    assert!(noted(subject, run.fence, "mine").await);
    for by in [-1, 1] {
        assert!(!noted(subject, moved(run.fence, by), "stale").await);
    }
    scene.end_as(&run, &Ending::Unstarted, State::Ready).await;
    assert!(!noted(subject, run.fence, "late").await);
    let next = scene.take().await;
    let stale = ProgressNote { fence: run.fence, text: "stale".to_owned() };
    let own = ProgressNote { fence: next.fence, text: "next".to_owned() };
    let missing =
        ProgressNote { fence: Fence { job: crate::JobId(-1), ..next.fence }, ..own.clone() };
    let written = subject.store().note_progress(&[stale, own, missing]).await.unwrap();
    assert_eq!(written, [false, true, false]);
    assert_eq!(of(&scene.record(run.fence.job).await).0, Some("next"));
    assert_eq!(subject.store().note_progress(&[]).await.unwrap(), [] as [bool; 0]);
}

pub(super) async fn notes_are_kept_exactly(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let odd = "50 % of \"a\\b\", 'ä' 🦀 {schema} ?1 $1\n";
    assert!(noted(subject, run.fence, odd).await);
    assert_eq!(of(&scene.record(run.fence.job).await).0, Some(odd));
    let result = format!(r#"{{ "text": "\u0000 {}", "n": 1.50 }}"#, "é".repeat(8_000));
    let notes = notes(Some(odd), Some(&result));
    scene.settle(&Settlement { notes, ..ended(&run, &Ending::Done) }).await;
    assert_eq!(of(&scene.record(run.fence.job).await), (Some(odd), Some(result.as_str())));
}

pub(super) async fn a_finish_in_a_transaction_leaves_its_notes_with_the_commit(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    assert!(noted(subject, run.fence, "1 of 2").await);
    let notes = notes(Some("2 of 2"), Some("\"done\""));
    let mut tx = subject.transactions().begin().await.unwrap();
    assert_eq!(tx.done(run.fence, &notes).await.unwrap(), Standing::Held);
    tx.rollback().await.unwrap();
    assert_eq!(of(&scene.record(run.fence.job).await), (Some("1 of 2"), None));
    let mut tx = subject.transactions().begin().await.unwrap();
    assert_eq!(tx.done(run.fence, &notes).await.unwrap(), Standing::Held);
    tx.commit().await.unwrap();
    let record = scene.record(run.fence.job).await;
    assert_eq!(record.state, State::Succeeded);
    assert_eq!(of(&record), (Some("2 of 2"), Some("\"done\"")));
}

pub(super) async fn a_checkpoint_and_a_sweep_leave_the_notes(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    assert!(noted(subject, run.fence, "1 of 2").await);
    scene.save(run.fence, "[1]").await;
    assert_eq!(of(&scene.record(run.fence.job).await), (Some("1 of 2"), None));
    scene.expire().await;
    assert_eq!(of(&scene.record(run.fence.job).await), (Some("1 of 2"), None));
    assert!(!noted(subject, run.fence, "stale").await);
}
