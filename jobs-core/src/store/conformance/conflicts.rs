//! What becomes of a job whose key is bound, and for how long a key binds.

use std::time::Duration;

use futures_util::future::join;

use super::super::{Cancelled, Enqueued, Redrive, Redriven};
use super::Subject;
use super::scene::{SECOND, Scene, due_in, failed, save, unique};
use crate::envelope::{NewJob, OnConflict, UniqueWhile};
use crate::outcome::{Ending, Retry};
use crate::record::{Counters, Priority};
use crate::state::State;
use crate::version::Version;

fn new(on_conflict: OnConflict) -> NewJob {
    NewJob {
        version: Version::new(1, 1, 0),
        min_reader: Version::new(1, 1, 0).own_reader(),
        payload: "[2]".to_owned(),
        priority: Priority::clamped(9),
        expires_in: Some(SECOND * 900),
        on_conflict,
        ..due_in(SECOND * 60, unique("k"))
    }
}

fn scoped(unique_while: UniqueWhile) -> NewJob {
    NewJob { unique_while, ..unique("k") }
}

async fn enqueue(scene: &Scene<'_>, job: &NewJob) -> Enqueued {
    scene.enqueue(std::slice::from_ref(job)).await[0]
}

/// Waits for a retry, with failures and a checkpoint behind it.
async fn retrying(scene: &Scene<'_>) -> crate::id::JobId {
    let run = scene.run(&unique("k")).await;
    scene.end_as(&run, &failed(Retry::Ladder), State::Scheduled).await;
    scene.subject.operate().run_now(&[run.fence.job]).await.unwrap();
    let run = scene.take().await;
    scene
        .subject
        .store()
        .checkpoint(&[super::super::CheckpointSave {
            keeps_failures: true,
            ..save(run.fence, "[7]")
        }])
        .await
        .unwrap();
    scene.end_as(&run, &failed(Retry::Ladder), State::Scheduled).await;
    run.fence.job
}

pub(super) async fn a_kept_twin_stays_as_it_was(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let twin = retrying(&scene).await;
    let before = scene.record(twin).await;
    assert_eq!(enqueue(&scene, &new(OnConflict::Keep)).await, Enqueued::AlreadyThere(twin));
    assert_eq!(scene.record(twin).await, before);
}

pub(super) async fn a_replaced_twin_begins_anew_in_its_place(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let twin = retrying(&scene).await;
    let before = scene.record(twin).await;
    assert!(before.checkpoint.is_some() && before.counters.failures == 2);
    assert_eq!(enqueue(&scene, &new(OnConflict::Replace)).await, Enqueued::AlreadyThere(twin));
    let after = scene.record(twin).await;
    assert_eq!((after.payload.as_str(), after.version.as_str()), ("[2]", "1.1.0"));
    assert_eq!((after.counters, &after.checkpoint), (Counters::default(), &None));
    assert_eq!((after.state, after.due_at), (before.state, before.due_at));
    assert_eq!((after.priority, after.expires_at), (before.priority, None));
    assert_eq!((after.claim, after.error_class), (before.claim, before.error_class));
    subject.operate().run_now(&[twin]).await.unwrap();
    let run = scene.take().await;
    assert_eq!((run.payload.as_str(), run.checkpoint), ("[2]", None));
}

pub(super) async fn a_rescheduled_twin_keeps_what_it_is(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let twin = retrying(&scene).await;
    let before = scene.record(twin).await;
    assert_eq!(enqueue(&scene, &new(OnConflict::Reschedule)).await, Enqueued::AlreadyThere(twin));
    let after = scene.record(twin).await;
    assert_eq!((&after.payload, &after.version), (&before.payload, &before.version));
    assert_eq!((after.counters, &after.checkpoint), (before.counters, &before.checkpoint));
    assert!(after.due_at > before.due_at);
    assert_eq!((after.state, after.priority.value()), (State::Scheduled, 9));
    assert_eq!(after.expires_at.map(|at| at.since(after.due_at)), Some(SECOND * 900));
}

pub(super) async fn a_ready_twin_may_be_put_off_and_a_scheduled_one_called(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let twin = scene.add(&unique("k")).await;
    enqueue(&scene, &new(OnConflict::ReplaceAndReschedule)).await;
    assert_eq!(scene.state(twin).await, State::Scheduled);
    let now = NewJob { on_conflict: OnConflict::Reschedule, ..unique("k") };
    assert_eq!(enqueue(&scene, &now).await, Enqueued::AlreadyThere(twin));
    let run = scene.take().await;
    assert_eq!((run.fence.job, run.payload.as_str()), (twin, "[2]"));
}

pub(super) async fn elements_of_a_call_replace_each_other_in_order(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let with = |payload: &str| NewJob { payload: payload.to_owned(), ..new(OnConflict::Replace) };
    let other = NewJob { payload: "[9]".to_owned(), ..unique("other") };
    let answers = scene.enqueue(&[with("[1]"), other, with("[2]"), with("[3]")]).await;
    let first = answers[0].id();
    assert!(matches!(answers[0], Enqueued::Added(_)) && matches!(answers[1], Enqueued::Added(_)));
    assert_eq!(answers[2..], [Enqueued::AlreadyThere(first); 2]);
    assert_eq!(scene.record(first).await.payload, "[3]");
    assert_eq!(scene.record(answers[1].id()).await.payload, "[9]");
}

pub(super) async fn a_rollback_undoes_what_an_enqueue_replaced(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let twin = scene.add(&unique("k")).await;
    let before = scene.record(twin).await;
    let mut tx = subject.transactions().begin().await.unwrap();
    let new = [new(OnConflict::ReplaceAndReschedule)];
    assert_eq!(tx.enqueue(&new).await.unwrap(), [Enqueued::AlreadyThere(twin)]);
    tx.rollback().await.unwrap();
    assert_eq!(scene.record(twin).await, before);
    let mut tx = subject.transactions().begin().await.unwrap();
    tx.enqueue(&new).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(scene.record(twin).await.payload, "[2]");
}

pub(super) async fn a_key_may_bind_while_its_job_runs(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let job = scoped(UniqueWhile::Running);
    let run = scene.run(&job).await;
    let id = run.fence.job;
    let renewed =
        NewJob { on_conflict: OnConflict::Replace, payload: "[2]".to_owned(), ..job.clone() };
    assert_eq!(enqueue(&scene, &renewed).await, Enqueued::AlreadyThere(id));
    assert_eq!(scene.record(id).await.payload, "{}", "what runs is not replaced");
    assert_eq!(enqueue(&scene, &scoped(UniqueWhile::Kept)).await, Enqueued::AlreadyThere(id));
    let plain = enqueue(&scene, &unique("k")).await;
    assert!(matches!(plain, Enqueued::Added(_)), "it binds only who says so too");
    let answer = subject.operate().cancel(&[plain.id()]).await.unwrap();
    assert_eq!(answer, [Cancelled::Cancelled]);
    scene.end_as(&run, &failed(Retry::Ladder), State::Scheduled).await;
    assert_eq!(enqueue(&scene, &job).await, Enqueued::AlreadyThere(id), "a retry binds it too");
    subject.operate().run_now(&[id]).await.unwrap();
    let run = scene.take().await;
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    assert!(matches!(enqueue(&scene, &job).await, Enqueued::Added(_)));
}

pub(super) async fn a_key_may_bind_for_as_long_as_its_job_is_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let job = scoped(UniqueWhile::Kept);
    let run = scene.run(&job).await;
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    assert_eq!(enqueue(&scene, &job).await, Enqueued::AlreadyThere(run.fence.job));
    let all = scene.enqueue(&[job.clone(), unique("other"), job.clone()]).await;
    assert_eq!([all[0], all[2]], [Enqueued::AlreadyThere(run.fence.job); 2]);
    assert!(matches!(all[1], Enqueued::Added(_)));
    assert!(matches!(enqueue(&scene, &scoped(UniqueWhile::Running)).await, Enqueued::Added(_)));
}

pub(super) async fn a_dead_job_stays_while_one_that_binds_its_key_runs(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let job = scoped(UniqueWhile::Running);
    let dead = scene.dead(&job).await;
    let run = scene.run(&job).await;
    let redrive = async || subject.operate().redrive(&[dead], Redrive::default()).await.unwrap();
    assert_eq!(redrive().await, [Redriven::TwinWaits(run.fence.job)]);
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    assert_eq!(redrive().await, [Redriven::Ready]);
}

pub(super) async fn of_enqueues_at_once_one_is_added_also_beside_a_claim(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for unique_while in [UniqueWhile::Running, UniqueWhile::Kept] {
        for round in 0..10 {
            let key = crate::name::UniqueKey::new(format!("{unique_while:?} {round}")).unwrap();
            let job = NewJob { unique_key: Some(key), ..scoped(unique_while) };
            let (one, two) = join(enqueue(&scene, &job), enqueue(&scene, &job)).await;
            let added = |one: &Enqueued| matches!(one, Enqueued::Added(_));
            assert_eq!([one, two].iter().filter(|one| added(one)).count(), 1);
            let claim = scene.claim(super::scene::ALL);
            let (mut claimed, third) = join(claim, enqueue(&scene, &job)).await;
            if claimed.is_empty() {
                // The enqueue held it, and the claim stepped over it.
                claimed.push(scene.take().await);
            }
            let [claimed] = &claimed[..] else { panic!("one job is ready: {claimed:?}") };
            assert_eq!(third, Enqueued::AlreadyThere(claimed.fence.job));
            scene.end_as(claimed, &Ending::Done, State::Succeeded).await;
        }
    }
}

pub(super) async fn a_waiting_job_gets_another_time_and_priority(subject: &dyn Subject) {
    use super::super::Reschedule;
    use crate::transition::Due;

    let scene = Scene::open(subject).await;
    let running = scene.run(&super::scene::job("c")).await.fence.job;
    let scheduled = scene.add(&due_in(SECOND * 60, super::scene::job("a"))).await;
    let ids = [scheduled, scene.add(&super::scene::job("b")).await, running];
    let change = async |due, priority| {
        let change = Reschedule { due, priority: Priority::new(priority) };
        subject.operate().reschedule(&ids, change).await.unwrap()
    };
    let states = async || [scene.state(ids[0]).await, scene.state(ids[1]).await];
    assert_eq!(change(None, 7).await, [true, true, false]);
    assert_eq!(states().await, [State::Scheduled, State::Ready]);
    assert_eq!(scene.record(ids[0]).await.priority.value(), 7);
    assert_eq!(change(Some(Due::In(SECOND * 30)), 101).await, [true, true, false]);
    assert_eq!(states().await, [State::Scheduled; 2]);
    assert_eq!(scene.record(ids[1]).await.priority.value(), 7, "no other priority was given");
    assert_eq!(change(Some(Due::Unchanged), 7).await, [true, true, false]);
    assert_eq!(states().await, [State::Scheduled; 2]);
    assert_eq!(change(Some(Due::In(Duration::ZERO)), 7).await, [true, true, false]);
    assert_eq!(states().await, [State::Ready; 2]);
    assert_eq!(scene.record(ids[2]).await.state, State::Running);
    let nobody = [crate::id::JobId(i64::MAX)];
    let answer = subject.operate().reschedule(&nobody, Reschedule::default()).await.unwrap();
    assert_eq!(answer, [false]);
}

pub(super) async fn a_job_that_nobody_starts_in_time_expires(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let expiring = |wait, due| NewJob {
        expires_in: Some(SECOND * wait),
        ..due_in(SECOND * due, super::scene::job("a"))
    };
    let scheduled = scene.add(&expiring(10, 20)).await;
    let ready = scene.add(&expiring(10, 0)).await;
    let plain = scene.add(&super::scene::job("b")).await;
    assert_eq!(subject.store().expire(super::scene::ALL).await.unwrap(), 0);
    subject.advance(SECOND * 15).await;
    assert_eq!(subject.store().expire(0).await.unwrap(), 0);
    assert_eq!(subject.store().expire(super::scene::ALL).await.unwrap(), 1);
    let record = scene.record(ready).await;
    assert_eq!(record.state, State::Dead);
    assert_eq!(record.error_class.as_deref(), Some(super::super::EXPIRED));
    assert!(record.finished_at.is_some() && record.counters == Counters::default());
    let events = scene.events(ready).await;
    assert_eq!(events.iter().map(|event| event.class.as_str()).collect::<Vec<_>>(), ["expired"]);
    subject.advance(SECOND * 20).await;
    assert_eq!(subject.store().expire(super::scene::ALL).await.unwrap(), 1);
    assert_eq!(scene.state(scheduled).await, State::Dead);
    assert_eq!(scene.state(plain).await, State::Ready);
    let redriven = subject.operate().redrive(&[ready], Redrive::default()).await.unwrap();
    assert_eq!(redriven, [Redriven::Ready]);
    assert_eq!(scene.record(ready).await.expires_at, None, "it may start at any time now");
    assert_eq!(subject.store().expire(super::scene::ALL).await.unwrap(), 0);
}

pub(super) async fn a_claim_tells_that_it_came_too_late(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let job = NewJob { expires_in: Some(SECOND * 10), ..super::scene::job("a") };
    let run = scene.run(&job).await;
    assert!(!run.is_expired);
    scene.end_as(&run, &Ending::Unstarted, State::Ready).await;
    subject.advance(SECOND * 15).await;
    let run = scene.take().await;
    assert!(run.is_expired);
    scene.end_as(&run, &Ending::Expired, State::Dead).await;
    let record = scene.record(run.fence.job).await;
    assert_eq!(record.error_class.as_deref(), Some(super::super::EXPIRED));
    assert_eq!(record.counters, Counters::default());
}

pub(super) async fn a_redrive_may_give_a_new_idempotency_key(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.dead(&super::scene::job("a")).await;
    for (makes_new_key, number) in [(false, 0), (true, 1), (false, 1), (true, 2)] {
        let redrive = Redrive { makes_new_key, ..Redrive::default() };
        assert_eq!(subject.operate().redrive(&[id], redrive).await.unwrap(), [Redriven::Ready]);
        let run = scene.take().await;
        assert_eq!(run.key_number, number);
        assert_eq!(scene.record(id).await.key_number, number);
        scene.end_as(&run, &failed(Retry::Never), State::Dead).await;
    }
}
