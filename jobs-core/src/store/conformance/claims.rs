//! Claims: which jobs, in which order, how many, and for whom.

use std::time::Duration;

use futures_util::future::join;

use super::super::{Claim, Claimed, Enqueued, Head};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, failed, ids, job, moved, queue};
use crate::envelope::NewJob;
use crate::id::{ClaimNumber, WorkerId};
use crate::outcome::{Ending, Retry};
use crate::record::{Budget, ClaimedJob, Counters, Place, Priority};
use crate::state::State;
use crate::transition::Due;
use crate::version::Version;

pub(super) async fn a_claim_takes_a_ready_job_under_its_next_number(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&job("a")).await;
    assert_eq!(scene.record(id).await.claim, ClaimNumber(0));
    let taken = scene.take().await;
    assert_eq!((taken.fence.job, taken.fence.claim), (id, ClaimNumber(1)));
    let record = scene.record(id).await;
    assert_eq!((record.state, record.claim), (State::Running, ClaimNumber(1)));
    assert_eq!(record.worker, Some(scene.worker));
    assert!(record.claimed_at.is_some() && record.finished_at.is_none());
}

pub(super) async fn a_claimed_job_carries_all_that_was_enqueued(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let version = Version::new(2, 7, 9);
    let new = NewJob {
        version,
        min_reader: crate::MinReader { major: 2, minor: 4 },
        payload: r#"{"order": 7}"#.to_owned(),
        headers: Some(r#"{"trace":"00-ab"}"#.to_owned()),
        priority: Priority::new(-7).unwrap(),
        budget: Budget { max_failures: 3, max_interruptions: Some(9) },
        ..job("billing.charge")
    };
    let taken = scene.run(&new).await;
    assert_eq!((taken.kind.as_str(), taken.version.as_str()), ("billing.charge", "2.7.9"));
    assert_eq!(taken.min_reader.as_deref(), Some("2.4"));
    assert_eq!((&taken.payload, &taken.headers), (&new.payload, &new.headers));
    assert_eq!((&taken.queue, taken.budget), (&new.queue, new.budget));
    assert_eq!((taken.counters, taken.checkpoint), (Counters::default(), None));
    assert_eq!(taken.refused, None);
    assert_eq!(taken.place, new.priority.place(taken.due_at, taken.fence.job));
    let record = scene.record(taken.fence.job).await;
    assert_eq!((taken.enqueued_at, taken.due_at), (record.enqueued_at, record.due_at));
}

pub(super) async fn a_running_job_is_not_claimed_again(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.add(&job("a")).await;
    let heads = scene.heads(&["default"]).await;
    assert_eq!(scene.claim_from(&heads, ALL).await.len(), 1);
    assert_eq!(scene.claim_from(&heads, ALL).await, []);
    assert_eq!(scene.another().await.claim_from(&heads, ALL).await, []);
}

pub(super) async fn ready_jobs_are_claimed_in_order_of_enqueue(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = Vec::new();
    for _ in 0..5 {
        added.push(scene.add(&job("a")).await);
    }
    assert_eq!(ids(&scene.claim(2).await), added[..2]);
    assert_eq!(ids(&scene.claim(ALL).await), added[2..]);
}

pub(super) async fn a_higher_priority_is_claimed_first(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = Vec::new();
    for priority in [Priority::LOWEST, Priority::default(), Priority::HIGHEST] {
        added.push(scene.add(&NewJob { priority, ..job("a") }).await);
    }
    added.reverse();
    assert_eq!(ids(&scene.claim(ALL).await), added);
}

pub(super) async fn a_long_wait_outweighs_a_step_of_priority(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let urgent = NewJob { priority: Priority::new(1).unwrap(), ..job("a") };
    let old = scene.add(&job("a")).await;
    subject.advance(Priority::AGEING_STEP + SECOND).await;
    let fresh = scene.add(&job("a")).await;
    subject.advance(SECOND * 290).await;
    let first = scene.add(&urgent).await;
    assert_eq!(ids(&scene.claim(ALL).await), [old, first, fresh]);
}

pub(super) async fn equal_places_are_claimed_in_order_of_id(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let first = scene.add(&job("a")).await;
    let due = Due::At(scene.record(first).await.due_at);
    let mut added = vec![first];
    for kind in ["c", "a", "b"] {
        added.push(scene.add(&NewJob { due, ..job(kind) }).await);
    }
    assert_eq!(ids(&scene.claim(ALL).await), added);
}

pub(super) async fn a_claim_merges_routes_in_order_of_place(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = Vec::new();
    for kind in ["b", "a", "c", "a", "b"] {
        added.push(scene.add(&job(kind)).await);
    }
    let claimed = scene.claim(4).await;
    assert_eq!(ids(&claimed), added[..4]);
    assert!(claimed.is_sorted_by_key(|job| job.place));
    assert_eq!(ids(&scene.claim(4).await), added[4..]);
}

pub(super) async fn a_claim_takes_at_most_each_heads_limit(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let kinds = ["a", "a", "a", "b", "b", "b"];
    scene.enqueue(&kinds.map(job)).await;
    let mut heads = scene.heads(&["default"]).await;
    heads.sort_by(|a, b| a.route.cmp(&b.route));
    heads[0].limit = 1;
    heads[1].limit = 2;
    let claimed = scene.claim_from(&heads, ALL).await;
    let kinds: Vec<_> = claimed.iter().map(|job| job.kind.as_str()).collect();
    assert_eq!(kinds, ["a", "b", "b"]);
}

pub(super) async fn a_limit_of_zero_takes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&job("a")).await;
    assert_eq!(scene.claim(0).await, []);
    let mut heads = scene.heads(&["default"]).await;
    heads[0].limit = 0;
    assert_eq!(scene.claim_from(&heads, ALL).await, []);
    assert_eq!(scene.state(id).await, State::Ready);
}

pub(super) async fn a_head_starts_at_its_place(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = Vec::new();
    for _ in 0..5 {
        added.push(scene.add(&job("a")).await);
    }
    let mut heads = scene.heads(&["default"]).await;
    let first = scene.claim_from(&heads, 1).await.remove(0);
    let due_at = scene.record(added[2]).await.due_at;
    heads[0].from = Priority::default().place(due_at, added[2]);
    assert_eq!(ids(&scene.claim_from(&heads, ALL).await), added[2..]);
    assert_eq!(scene.claim_from(&heads, ALL).await, []);
    heads[0].from = first.place;
    assert_eq!(ids(&scene.claim_from(&heads, ALL).await), added[1..2]);
}

pub(super) async fn a_place_splits_jobs_that_fell_due_together(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let new = vec![job("a"); 6];
    let added: Vec<_> = scene.enqueue(&new).await.into_iter().map(Enqueued::id).collect();
    let mut heads = scene.heads(&["default"]).await;
    for pair in added.chunks(2) {
        let claimed = scene.claim_from(&heads, 2).await;
        assert_eq!(ids(&claimed), pair);
        heads[0].from = claimed[1].place;
    }
}

pub(super) async fn what_stands_before_the_place_is_found_from_the_first(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.add(&job("a")).await;
    let mut heads = scene.heads(&["default"]).await;
    heads[0].from = scene.claim_from(&heads, 1).await[0].place;
    let urgent = scene.add(&NewJob { priority: Priority::HIGHEST, ..job("a") }).await;
    assert_eq!(scene.claim_from(&heads, ALL).await, []);
    heads[0].from = Place::FIRST;
    assert_eq!(ids(&scene.claim_from(&heads, ALL).await), [urgent]);
}

pub(super) async fn one_claim_takes_from_several_queues(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = Vec::new();
    for name in ["mail", "billing", "mail", "other"] {
        added.push(scene.add(&NewJob { queue: queue(name), ..job("a") }).await);
    }
    let heads = scene.heads(&["billing", "mail"]).await;
    let claimed = scene.claim_from(&heads, ALL).await;
    assert_eq!(ids(&claimed), added[..3]);
    let queues: Vec<_> = claimed.iter().map(|job| job.queue.as_str()).collect();
    assert_eq!(queues, ["mail", "billing", "mail"]);
    assert_eq!(scene.state(added[3]).await, State::Ready);
}

pub(super) async fn a_claim_takes_only_from_its_routes(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let newer = Version::new(1, 1, 0);
    let newer = NewJob { version: newer, min_reader: newer.own_reader(), ..job("a") };
    let wanted = scene.add(&job("a")).await;
    let others = [scene.add(&newer).await, scene.add(&job("ab")).await];
    let mut heads = scene.heads(&["default"]).await;
    heads.retain(|head| head.route.as_str() == "a@1.0");
    assert_eq!(ids(&scene.claim_from(&heads, ALL).await), [wanted]);
    for other in others {
        assert_eq!(scene.state(other).await, State::Ready);
    }
}

pub(super) async fn a_head_named_twice_takes_each_job_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&job("a")).await;
    let heads = scene.heads(&["default"]).await;
    let twice = [heads[0].clone(), heads[0].clone()];
    assert_eq!(ids(&scene.claim_from(&twice, ALL).await), [id]);
    assert_eq!(scene.record(id).await.claim, ClaimNumber(1));
}

pub(super) async fn a_scheduled_job_is_not_claimed(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.add(&job("a")).await;
    let heads = scene.heads(&["default"]).await;
    let later = scene.add(&due_in(SECOND * 60, job("a"))).await;
    assert_eq!(scene.claim_from(&heads, ALL).await.len(), 1);
    assert_eq!(scene.state(later).await, State::Scheduled);
}

pub(super) async fn nothing_is_claimed_under_a_closed_worker(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.close().await;
    takes_nothing(&scene, scene.worker).await;
}

pub(super) async fn nothing_is_claimed_under_a_worker_taken_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    assert_eq!(scene.expire().await.workers, [scene.worker]);
    takes_nothing(&scene, scene.worker).await;
}

pub(super) async fn nothing_is_claimed_under_an_unknown_worker(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    takes_nothing(&scene, WorkerId(scene.worker.0 + 1_000_000)).await;
}

async fn takes_nothing(scene: &Scene<'_>, worker: WorkerId) {
    let id = scene.add(&job("a")).await;
    let heads = scene.heads(&["default"]).await;
    let claim = Claim { worker, heads: &heads, limit: ALL };
    assert_eq!(scene.subject.store().claim(claim).await.unwrap(), Claimed::WorkerEnded);
    let record = scene.record(id).await;
    assert_eq!((record.state, record.claim), (State::Ready, ClaimNumber(0)));
}

async fn idle(scene: &Scene<'_>, heads: &[Head], limit: u32) -> Vec<ClaimedJob> {
    let claim = Claim { worker: scene.worker, heads, limit };
    match scene.subject.store().claim_idle(claim).await.unwrap() {
        Claimed::Jobs(jobs) => jobs,
        Claimed::WorkerEnded => panic!("the worker has ended"),
    }
}

pub(super) async fn an_idle_claim_is_a_claim(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    assert_eq!(idle(&scene, &[], ALL).await, []);
    let mut added = Vec::new();
    for priority in [0, 3, -3, 0] {
        let priority = Priority::new(priority).unwrap();
        added.push(scene.add(&NewJob { priority, ..job("a") }).await);
    }
    let heads = scene.heads(&["default"]).await;
    assert_eq!(idle(&scene, &heads, 0).await, []);
    subject.operate().pause(&queue("default"), "me", "why").await.unwrap();
    assert_eq!(idle(&scene, &heads, ALL).await, []);
    subject.operate().resume(&queue("default")).await.unwrap();
    let first = idle(&scene, &heads, 2).await;
    assert_eq!(ids(&first), [added[1], added[0]]);
    assert_eq!(scene.state(added[1]).await, State::Running);
    let head = Head { limit: 1, ..heads[0].clone() };
    assert_eq!(ids(&idle(&scene, &[head], ALL).await), [added[3]]);
    let other = scene.add(&job("b")).await;
    let both = scene.heads(&["default"]).await;
    assert_eq!(ids(&idle(&scene, &both, ALL).await), [other, added[2]]);
    assert_eq!(idle(&scene, &heads, ALL).await, []);
    scene.end_as(&first[0], &Ending::Done, State::Succeeded).await;
    scene.close().await;
    let claim = Claim { worker: scene.worker, heads: &heads, limit: ALL };
    assert_eq!(subject.store().claim_idle(claim).await.unwrap(), Claimed::WorkerEnded);
}

pub(super) async fn an_idle_claim_carries_all_that_a_claim_does(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let new = NewJob {
        headers: Some(r#"{"trace":"00-ab"}"#.to_owned()),
        priority: Priority::new(-7).unwrap(),
        budget: Budget { max_failures: 3, max_interruptions: Some(9) },
        expires_in: Some(SECOND),
        ..job("a")
    };
    let run = scene.run(&new).await;
    scene.save(run.fence, "[1]").await;
    scene.end_as(&run, &failed(Retry::After(Duration::ZERO)), State::Ready).await;
    let fresh = scene.add(&job("a")).await;
    subject.advance(SECOND * 2).await;
    let heads = scene.heads(&["default"]).await;
    let taken = idle(&scene, &heads, ALL).await;
    assert_eq!(ids(&taken), [fresh, run.fence.job]);
    scene.end_as(&taken[1], &Ending::Unstarted, State::Ready).await;
    let again = scene.take().await;
    assert!(again.is_expired && again.checkpoint.is_some() && again.counters.failures == 1);
    let fence = moved(taken[1].fence, 1);
    assert_eq!(again, ClaimedJob { fence, ..taken[1].clone() });
}

pub(super) async fn two_claims_at_once_never_take_the_same_job(subject: &dyn Subject) {
    let one = Scene::open(subject).await;
    let two = one.another().await;
    one.enqueue(&vec![job("a"); 60]).await;
    let heads = one.heads(&["default"]).await;
    let mut taken = Vec::new();
    loop {
        let (a, b) = join(one.claim_from(&heads, 7), two.claim_from(&heads, 7)).await;
        if a.is_empty() && b.is_empty() {
            break;
        }
        taken.extend(ids(&a).into_iter().chain(ids(&b)));
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 60);
    for record in one.records().await {
        assert_eq!(record.claim, ClaimNumber(1), "job {} was claimed once", record.id);
    }
}
