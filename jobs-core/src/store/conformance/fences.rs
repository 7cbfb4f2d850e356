//! The fence: what a run may still write, and what it is told when it may not.

use super::super::{Author, Row, Saved, Settled, Standing};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, build, ended, failed, job, moved, refused, save};
use crate::id::{ClaimNumber, Fence, JobId};
use crate::outcome::{Company, Ending, Interruption, Retry};
use crate::record::{ClaimedJob, Notes};
use crate::state::State;

/// Tries every write about a run; none may be accepted, and none may leave a trace.
async fn refuses_all(scene: &Scene<'_>, run: &ClaimedJob) {
    let id = run.fence.job;
    let before = (scene.record(id).await, scene.events(id).await);
    for ending in endings() {
        assert_eq!(scene.end(run, &ending).await, Settled::LeaseLost, "{ending:?}");
    }
    assert_eq!(scene.save(run.fence, "[99]").await, Standing::Lost);
    assert_eq!(scene.standing(run.fence).await, Standing::Lost);
    let mut tx = scene.subject.transactions().begin().await.unwrap();
    assert_eq!(tx.checkpoint(&save(run.fence, "[99]")).await.unwrap(), Standing::Lost);
    assert_eq!(tx.done(run.fence, &Notes::default()).await.unwrap(), Standing::Lost);
    tx.commit().await.unwrap();
    assert_eq!((scene.record(id).await, scene.events(id).await), before);
}

fn endings() -> [Ending; 8] {
    [
        Ending::Done,
        failed(Retry::Ladder),
        failed(Retry::Never),
        refused(),
        Ending::Snoozed(SECOND),
        Ending::Interrupted(Interruption::GivenUp),
        Ending::Unstarted,
        Ending::Crashed(Company::Others),
    ]
}

fn under(run: &ClaimedJob, by: i64) -> ClaimedJob {
    ClaimedJob { fence: moved(run.fence, by), ..run.clone() }
}

pub(super) async fn another_claim_number_writes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    for by in [-1, 1, 2, 1_000_000] {
        refuses_all(&scene, &under(&run, by)).await;
    }
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_run_that_was_settled_writes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for ending in endings() {
        let run = scene.run(&job("a")).await;
        assert_ne!(scene.end(&run, &ending).await, Settled::LeaseLost, "{ending:?}");
        refuses_all(&scene, &run).await;
        scene.subject.operate().cancel(&[run.fence.job]).await.unwrap();
    }
}

pub(super) async fn a_run_that_was_swept_writes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.expire().await;
    refuses_all(&scene, &run).await;
    let next = scene.another().await.take().await;
    assert!(next.fence.claim > run.fence.claim);
    refuses_all(&scene, &run).await;
}

pub(super) async fn a_run_that_was_given_back_by_closing_writes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.close().await;
    refuses_all(&scene, &run).await;
}

pub(super) async fn a_former_run_writes_nothing_into_the_next_one(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let first = scene.run(&job("a")).await;
    scene.end_as(&first, &Ending::Unstarted, State::Ready).await;
    let second = scene.take().await;
    assert_eq!(second.fence.claim, ClaimNumber(first.fence.claim.0 + 1));
    refuses_all(&scene, &first).await;
    scene.end_as(&second, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_redriven_job_is_safe_from_its_former_run(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
    subject.operate().redrive(&[run.fence.job], super::super::Redrive::default()).await.unwrap();
    refuses_all(&scene, &run).await;
    scene.take().await;
    refuses_all(&scene, &run).await;
}

pub(super) async fn a_job_that_never_ran_is_not_written_to(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let waiting = scene.add(&job("a")).await;
    for claim in [0, 1] {
        let fence = Fence { job: waiting, claim: ClaimNumber(claim) };
        refuses_all(&scene, &ClaimedJob { fence, ..run.clone() }).await;
    }
}

pub(super) async fn a_job_that_does_not_exist_is_lost(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let fence = Fence { job: JobId(run.fence.job.0 + 1_000_000), ..run.fence };
    let nobody = ClaimedJob { fence, ..run };
    assert_eq!(scene.end(&nobody, &Ending::Done).await, Settled::LeaseLost);
    assert_eq!(scene.save(fence, "[]").await, Standing::Lost);
    assert_eq!(scene.standing(fence).await, Standing::Lost);
    assert_eq!(scene.reread(fence).await, Row::Missing);
}

pub(super) async fn a_batch_writes_what_holds_and_refuses_the_rest(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 4]).await;
    let runs = scene.claim(ALL).await;
    let settlements = [
        ended(&under(&runs[3], 1), &Ending::Done),
        ended(&runs[2], &Ending::Done),
        ended(&under(&runs[1], -1), &Ending::Done),
        ended(&runs[0], &failed(Retry::Never)),
    ];
    let settled = subject.store().settle(&scene.author(), &settlements).await.unwrap();
    let expected = [
        Settled::LeaseLost,
        Settled::Applied(State::Succeeded),
        Settled::LeaseLost,
        Settled::Applied(State::Dead),
    ];
    assert_eq!(settled, expected);
    assert_eq!(scene.state(runs[1].fence.job).await, State::Running);
    let fences = [runs[2].fence, runs[1].fence, runs[3].fence];
    let standings = subject.store().check(&fences).await.unwrap();
    assert_eq!(standings, [Standing::Lost, Standing::Held, Standing::Held]);
    let saves = fences.map(|fence| save(fence, "[1]"));
    let saved = subject.store().checkpoint(&saves).await.unwrap();
    assert_eq!(saved, standings.into_iter().map(Saved::Answered).collect::<Vec<_>>());
}

pub(super) async fn the_second_of_two_equal_settlements_is_too_late(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let settlement = ended(&run, &failed(Retry::Ladder));
    let twice = [settlement.clone(), settlement];
    let settled = subject.store().settle(&scene.author(), &twice).await.unwrap();
    assert_eq!(settled, [Settled::Applied(State::Scheduled), Settled::LeaseLost]);
    assert_eq!(scene.events(run.fence.job).await.len(), 1);
}

pub(super) async fn any_author_may_settle_under_the_right_claim(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let other = Author { worker: None, build: build() };
    let settled = subject.store().settle(&other, &[ended(&run, &Ending::Done)]).await.unwrap();
    assert_eq!(settled, [Settled::Applied(State::Succeeded)]);
}

pub(super) async fn a_held_run_may_go_on_writing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    for text in ["[1]", "[2]"] {
        assert_eq!(scene.standing(run.fence).await, Standing::Held);
        assert_eq!(scene.save(run.fence, text).await, Standing::Held);
    }
    subject.operate().cancel(&[run.fence.job]).await.unwrap();
    assert_eq!(scene.standing(run.fence).await, Standing::CancelRequested);
    assert_eq!(scene.save(run.fence, "[3]").await, Standing::CancelRequested);
    let stored = scene.record(run.fence.job).await.checkpoint.unwrap();
    assert_eq!((stored.text.as_str(), stored.number), ("[3]", 3));
}

pub(super) async fn a_check_writes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let before = scene.record(run.fence.job).await;
    scene.standing(run.fence).await;
    scene.reread(run.fence).await;
    assert_eq!(scene.record(run.fence.job).await, before);
}

pub(super) async fn the_row_says_what_became_of_a_run(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    assert_eq!(scene.reread(run.fence).await, Row::Running(run.counters));
    assert_eq!(scene.reread(moved(run.fence, 1)).await, Row::Missing);
    scene.end_as(&run, &Ending::Unstarted, State::Ready).await;
    assert_eq!(scene.reread(run.fence).await, Row::Settled(State::Ready));
    let second = scene.take().await;
    assert_eq!(scene.reread(run.fence).await, Row::Taken(second.fence.claim));
    scene.end_as(&second, &failed(Retry::Never), State::Dead).await;
    let fences = [second.fence, run.fence, moved(second.fence, 7)];
    let rows = subject.store().reread(&fences).await.unwrap();
    let expected = [Row::Settled(State::Dead), Row::Taken(second.fence.claim), Row::Missing];
    assert_eq!(rows, expected);
}

pub(super) async fn the_row_of_a_swept_run_says_that_it_was_taken(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.expire().await;
    assert_eq!(scene.reread(run.fence).await, Row::Taken(moved(run.fence, 1).claim));
}

pub(super) async fn the_row_of_a_run_has_its_counters_as_stored(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &failed(Retry::After(std::time::Duration::ZERO)), State::Ready).await;
    let again = scene.take().await;
    assert_eq!(again.counters.failures, 1);
    scene.save(again.fence, "[1]").await;
    match scene.reread(again.fence).await {
        Row::Running(counters) => assert_eq!(counters.failures, 0),
        other @ (Row::Settled(_) | Row::Taken(_) | Row::Missing | Row::Locked) => {
            panic!("{other:?}")
        }
    }
}
