//! What people and tools may do: cancel, redrive, run now, pause, prune.

use std::time::Duration;

use super::super::{CANCELLED, Cancelled, MAX_PAUSE_BYTES, REDRIVEN, Redrive, Redriven, Retention};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, failed, ids, job, queue};
use crate::id::JobId;
use crate::outcome::{Ending, Retry, storable};
use crate::record::{Counters, EventKind};
use crate::state::State;

const NOTHING: JobId = JobId(1_000_000_000);
const KEEP: Redrive = Redrive {
    keeps_counters: true,
    forgets_checkpoint: false,
    makes_new_key: false,
    ended_before: None,
};
const FORGET: Redrive = Redrive {
    keeps_counters: false,
    forgets_checkpoint: true,
    makes_new_key: false,
    ended_before: None,
};

pub(super) async fn a_cancel_ends_waiting_jobs_and_asks_running_ones(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await.fence.job;
    let done = scene.run(&job("a")).await;
    scene.end_as(&done, &Ending::Done, State::Succeeded).await;
    let dead = scene.dead(&job("a")).await;
    let ready = scene.add(&job("a")).await;
    let scheduled = scene.add(&due_in(SECOND * 60, job("a"))).await;
    let all = [scheduled, run, done.fence.job, NOTHING, dead, ready];
    let cancelled = subject.operate().cancel(&all).await.unwrap();
    let expected = [
        Cancelled::Cancelled,
        Cancelled::Requested,
        Cancelled::Finished(State::Succeeded),
        Cancelled::Missing,
        Cancelled::Finished(State::Dead),
        Cancelled::Cancelled,
    ];
    assert_eq!(cancelled, expected);
    for id in [ready, scheduled] {
        let record = scene.record(id).await;
        assert_eq!(record.state, State::Cancelled);
        assert!(record.finished_at.is_some() && record.error_class.is_none());
        let events = scene.events(id).await;
        assert_eq!((events.len(), events[0].kind), (1, EventKind::Cancelled));
        assert_eq!((events[0].class.as_str(), events[0].worker), (CANCELLED, None));
        assert_eq!(events[0].build, None);
    }
    assert_eq!(scene.state(run).await, State::Running);
    assert_eq!(scene.events(run).await, []);
}

pub(super) async fn a_cancel_may_be_asked_again(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let id = run.fence.job;
    let twice = subject.operate().cancel(&[id, id]).await.unwrap();
    assert_eq!(twice, [Cancelled::Requested; 2]);
    assert_eq!(subject.operate().cancel(&[id]).await.unwrap(), [Cancelled::Requested]);
    scene.end_as(&run, &Ending::Unstarted, State::Cancelled).await;
    let again = subject.operate().cancel(&[id]).await.unwrap();
    assert_eq!(again, [Cancelled::Finished(State::Cancelled)]);
}

pub(super) async fn a_cancelled_job_is_not_claimed_or_promoted(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let added = [scene.add(&job("a")).await, scene.add(&due_in(SECOND, job("a"))).await];
    let heads = scene.heads(&["default"]).await;
    subject.operate().cancel(&added).await.unwrap();
    subject.advance(SECOND * 60).await;
    assert_eq!(scene.promote().await, 0);
    assert_eq!(scene.claim_from(&heads, ALL).await, []);
}

pub(super) async fn a_redrive_brings_back_what_is_dead_or_cancelled(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let dead = scene.dead(&job("a")).await;
    let cancelled = scene.add(&job("a")).await;
    subject.operate().cancel(&[cancelled]).await.unwrap();
    let done = scene.run(&job("a")).await;
    scene.end_as(&done, &Ending::Done, State::Succeeded).await;
    let run = scene.run(&job("a")).await.fence.job;
    let scheduled = scene.add(&due_in(SECOND * 60, job("a"))).await;
    let all = [run, dead, NOTHING, scheduled, cancelled, done.fence.job];
    let redriven = subject.operate().redrive(&all, Redrive::default()).await.unwrap();
    let expected = [
        Redriven::Not(State::Running),
        Redriven::Ready,
        Redriven::Missing,
        Redriven::Not(State::Scheduled),
        Redriven::Ready,
        Redriven::Not(State::Succeeded),
    ];
    assert_eq!(redriven, expected);
    let again = subject.operate().redrive(&[dead], Redrive::default()).await.unwrap();
    assert_eq!(again, [Redriven::Not(State::Ready)]);
    let record = scene.record(dead).await;
    assert_eq!((record.state, record.finished_at), (State::Ready, None));
    assert_eq!(record.error_class.as_deref(), Some("error"));
    let last = scene.events(dead).await.pop().unwrap();
    assert_eq!((last.kind, last.class.as_str()), (EventKind::Redriven, REDRIVEN));
    assert_eq!((last.number, last.worker, last.build), (2, None, None));
    assert_eq!(last.claim, record.claim);
    assert_eq!(scene.claim(ALL).await.len(), 2);
}

pub(super) async fn a_redrive_goes_no_further_than_its_instant(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let early = scene.dead(&job("a")).await;
    let again = scene.dead(&job("a")).await;
    subject.advance(SECOND).await;
    subject.operate().redrive(&[again], Redrive::default()).await.unwrap();
    let run = scene.take().await;
    scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
    let at = scene.record(again).await.finished_at;
    assert!(at > scene.record(early).await.finished_at);
    let shown = Redrive { ended_before: at, ..Redrive::default() };
    let redriven = subject.operate().redrive(&[early, again], shown).await.unwrap();
    assert_eq!(redriven, [Redriven::Ready, Redriven::EndedLater]);
    let states = [scene.state(early).await, scene.state(again).await];
    assert_eq!(states, [State::Ready, State::Dead]);
    assert_eq!(scene.events(again).await.len(), 3, "a job that is left alone has no new event");
}

pub(super) async fn a_redrive_keeps_the_claim_number_and_the_payload(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let payload = r#"{"id": 18446744073709551615}"#.to_owned();
    let run = scene.run(&crate::NewJob { payload: payload.clone(), ..job("a") }).await;
    scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
    subject.operate().redrive(&[run.fence.job], Redrive::default()).await.unwrap();
    assert_eq!(scene.record(run.fence.job).await.claim, run.fence.claim);
    let again = scene.take().await;
    assert_eq!((again.payload, again.fence.claim.0), (payload, run.fence.claim.0 + 1));
}

pub(super) async fn a_redrive_keeps_or_forgets_as_asked(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for (redrive, failures, is_kept) in
        [(Redrive::default(), 0, true), (KEEP, 1, true), (FORGET, 0, false)]
    {
        let run = scene.run(&job("a")).await;
        scene.save(run.fence, "[7]").await;
        scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
        subject.operate().redrive(&[run.fence.job], redrive).await.unwrap();
        let again = scene.take().await;
        assert_eq!(again.counters, Counters { failures, ..Counters::default() }, "{redrive:?}");
        assert_eq!(again.checkpoint.is_some(), is_kept, "{redrive:?}");
        scene.save(again.fence, "[8]").await;
        let number = scene.record(run.fence.job).await.checkpoint.unwrap().number;
        assert_eq!(number, if is_kept { 2 } else { 1 }, "{redrive:?}");
        scene.end_as(&again, &Ending::Done, State::Succeeded).await;
    }
}

pub(super) async fn a_redriven_job_stands_behind_those_that_wait(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let dead = scene.dead(&job("a")).await;
    subject.advance(SECOND).await;
    let waiting = scene.add(&job("a")).await;
    subject.advance(SECOND).await;
    subject.operate().redrive(&[dead], Redrive::default()).await.unwrap();
    assert_eq!(ids(&scene.claim(ALL).await), [waiting, dead]);
}

pub(super) async fn a_scheduled_job_is_run_now(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await.fence.job;
    let dead = scene.dead(&job("a")).await;
    let scheduled = scene.add(&due_in(SECOND * 3600, job("a"))).await;
    let all = [scheduled, run, NOTHING, dead];
    assert_eq!(subject.operate().run_now(&all).await.unwrap(), [true, false, false, false]);
    assert_eq!(subject.operate().run_now(&[scheduled]).await.unwrap(), [false]);
    subject.advance(SECOND).await;
    let after = scene.add(&job("a")).await;
    assert_eq!(ids(&scene.claim(ALL).await), [scheduled, after]);
}

pub(super) async fn a_paused_queue_gives_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let kept = scene.add(&job("a")).await;
    let other = scene.add(&crate::NewJob { queue: queue("mail"), ..job("a") }).await;
    let heads = scene.heads(&["default", "mail"]).await;
    subject.operate().pause(&queue("default"), "ann", "broken card service").await.unwrap();
    assert_eq!(ids(&scene.claim_from(&heads, ALL).await), [other]);
    assert_eq!(scene.state(kept).await, State::Ready);
    subject.operate().resume(&queue("default")).await.unwrap();
    assert_eq!(ids(&scene.claim_from(&heads, ALL).await), [kept]);
}

pub(super) async fn a_pause_lets_runs_go_on_and_jobs_come_in(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    subject.operate().pause(&queue("default"), "ann", "").await.unwrap();
    scene.save(run.fence, "[1]").await;
    scene.end_as(&run, &Ending::Unstarted, State::Ready).await;
    scene.add(&job("a")).await;
    subject.operate().resume(&queue("default")).await.unwrap();
    assert_eq!(scene.claim(ALL).await.len(), 2);
}

pub(super) async fn pausing_again_keeps_the_first_reason(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let operate = subject.operate();
    assert_eq!(subject.inspect().paused().await.unwrap(), []);
    let names = ["default", "it's \"q\"; --", "never used"];
    for name in names {
        operate.pause(&queue(name), "ann", "first 'reason'").await.unwrap();
    }
    let before = subject.inspect().paused().await.unwrap();
    subject.advance(SECOND * 60).await;
    operate.pause(&queue("default"), "bob", "second").await.unwrap();
    let mut paused = subject.inspect().paused().await.unwrap();
    assert_eq!(paused.len(), before.len());
    paused.sort_by(|a, b| a.queue.cmp(&b.queue));
    assert_eq!(paused.iter().map(|paused| paused.queue.as_str()).collect::<Vec<_>>(), names);
    assert!(paused.iter().all(|paused| paused.by == "ann" && paused.reason == "first 'reason'"));
    for name in names.iter().chain(&["not paused"]) {
        operate.resume(&queue(name)).await.unwrap();
    }
    assert_eq!(subject.inspect().paused().await.unwrap(), []);
    operate.pause(&queue("default"), "bob", "second").await.unwrap();
    assert_eq!(subject.inspect().paused().await.unwrap()[0].by, "bob");
    assert_eq!(scene.claim(ALL).await, []);
}

pub(super) async fn who_paused_and_why_is_kept_up_to_a_limit(subject: &dyn Subject) {
    let long = format!("\0{}\u{1F980}", "é\0".repeat(MAX_PAUSE_BYTES));
    let kept = storable(&long, MAX_PAUSE_BYTES);
    subject.operate().pause(&queue("default"), &long, &long).await.unwrap();
    let paused = subject.inspect().paused().await.unwrap().remove(0);
    assert_eq!((&paused.by, &paused.reason), (&kept, &kept));
}

/// One job that ended in each finished state, and one in each other state.
async fn finished(scene: &Scene<'_>) -> [JobId; 3] {
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    let cancelled = scene.add(&job("a")).await;
    scene.subject.operate().cancel(&[cancelled]).await.unwrap();
    [run.fence.job, cancelled, scene.dead(&job("a")).await]
}

pub(super) async fn each_finished_state_has_its_own_retention(subject: &dyn Subject) {
    const HOUR: Duration = Duration::from_hours(1);
    let scene = Scene::open(subject).await;
    let finished = finished(&scene).await;
    scene.add(&due_in(HOUR * 1000, job("a"))).await;
    scene.run(&job("a")).await;
    scene.add(&job("a")).await;
    let retention = Retention { succeeded: HOUR, cancelled: HOUR * 2, dead: HOUR * 3 };
    assert_eq!(subject.store().prune(retention, ALL).await.unwrap(), 0);
    for (gone, id) in finished.into_iter().enumerate() {
        assert_eq!(scene.records().await.len(), 6 - gone);
        subject.advance(HOUR + SECOND).await;
        assert_eq!(subject.store().prune(retention, ALL).await.unwrap(), 1);
        assert_eq!(subject.inspect().job(id).await.unwrap(), None);
        assert_eq!(scene.events(id).await, []);
    }
    subject.advance(HOUR * 100).await;
    assert_eq!(subject.store().prune(retention, ALL).await.unwrap(), 0);
    assert_eq!(scene.records().await.len(), 3);
}

pub(super) async fn the_oldest_are_pruned_first(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut ended = Vec::new();
    for _ in 0..5 {
        ended.push(scene.dead(&job("a")).await);
        subject.advance(SECOND).await;
    }
    let redriven = ended.remove(0);
    subject.operate().redrive(&[redriven], Redrive::default()).await.unwrap();
    let again = scene.take().await;
    scene.end_as(&again, &failed(Retry::Never), State::Dead).await;
    ended.push(redriven);
    subject.advance(Retention::default().dead + SECOND).await;
    for pruned in [2, 2, 1, 0] {
        assert_eq!(subject.store().prune(Retention::default(), 2).await.unwrap(), pruned);
        ended.drain(..usize::try_from(pruned).unwrap());
        let left: Vec<_> = scene.records().await.iter().map(|record| record.id).collect();
        let mut expected = ended.clone();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}

pub(super) async fn a_pruned_job_is_missing_everywhere(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
    subject.advance(Retention::default().dead + SECOND).await;
    assert_eq!(subject.store().prune(Retention::default(), ALL).await.unwrap(), 1);
    let id = [run.fence.job];
    assert_eq!(subject.operate().cancel(&id).await.unwrap(), [Cancelled::Missing]);
    let redriven = subject.operate().redrive(&id, Redrive::default()).await.unwrap();
    assert_eq!(redriven, [Redriven::Missing]);
    assert_eq!(scene.reread(run.fence).await, super::super::Row::Missing);
    assert!(scene.add(&job("a")).await > run.fence.job, "ids are not used again");
}

pub(super) async fn the_longest_retention_keeps_everything(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    finished(&scene).await;
    let max = Duration::MAX;
    let forever = Retention { succeeded: max, cancelled: max, dead: max };
    subject.advance(SECOND).await;
    assert_eq!(subject.store().prune(forever, ALL).await.unwrap(), 0);
    let zero = Duration::ZERO;
    let nothing = Retention { succeeded: zero, cancelled: zero, dead: zero };
    assert_eq!(subject.store().prune(nothing, ALL).await.unwrap(), 3);
}
