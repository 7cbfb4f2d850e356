//! Schedules: who declares them, and ticks that come once.

use std::time::Duration;

use futures_util::future::join_all;

use super::super::{
    Advanced, Declaration, Enqueued, MAX_TICKS, Retention, ScheduleRecord, Step, WORKERS_KEPT,
};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, job, unique};
use crate::clock::Timestamp;
use crate::envelope::NewJob;
use crate::id::WorkerId;
use crate::name::ScheduleName;
use crate::state::State;
use crate::transition::Due;

const FIRST: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn name(text: &str) -> ScheduleName {
    ScheduleName::new(text).unwrap()
}

fn tick(number: u32) -> Timestamp {
    FIRST.after(SECOND * number)
}

async fn declare(subject: &dyn Subject, by: Option<WorkerId>, schedule: &str, text: &str) {
    let declaration = Declaration { name: name(schedule), text: text.to_owned() };
    subject.store().declare(by, &[declaration]).await.unwrap();
}

async fn schedule(subject: &dyn Subject, wanted: &str) -> ScheduleRecord {
    let view = subject.store().schedules().await.unwrap();
    view.schedules.into_iter().find(|found| found.name.as_str() == wanted).unwrap()
}

/// A step from where a schedule is now, with ticks of these numbers.
fn step(from: &ScheduleRecord, ticks: impl IntoIterator<Item = u32>) -> Step {
    let due = |number| NewJob { due: Due::At(tick(number)), ..job("tick") };
    let ticks: Vec<_> = ticks.into_iter().map(|number| (tick(number), due(number))).collect();
    Step {
        name: from.name.clone(),
        seen_text: from.text.clone(),
        seen_next_at: from.next_at,
        text: Some("nightly".to_owned()),
        next_at: Some(ticks.last().map_or(FIRST, |(at, _)| at.after(SECOND))),
        ticks,
    }
}

async fn advance(subject: &dyn Subject, step: &Step) -> Advanced {
    subject.store().advance(step).await.unwrap()
}

fn added(advanced: Advanced) -> Vec<bool> {
    match advanced {
        Advanced::Moved(jobs) => {
            jobs.into_iter().map(|job| matches!(job, Some(Enqueued::Added(_)))).collect()
        }
        Advanced::Outrun => panic!("nobody else moved the schedule"),
    }
}

pub(super) async fn a_declared_schedule_waits_for_a_leader(subject: &dyn Subject) {
    assert_eq!(subject.store().schedules().await.unwrap().schedules, []);
    let scene = Scene::open(subject).await;
    declare(subject, Some(scene.worker), "b", "every 1h").await;
    declare(subject, None, "a", "every 2h").await;
    let found = subject.store().schedules().await.unwrap().schedules;
    assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    for one in &found {
        assert_eq!((&one.text, one.next_at, one.last_at), (&None, None, None));
    }
    assert_eq!(found[0].declared[0].by, None);
    assert_eq!(found[1].declared[0].by, Some(scene.worker));
    assert_eq!(found[1].declared[0].text, "every 1h");
}

pub(super) async fn what_live_workers_and_people_declare_stands_side_by_side(
    subject: &dyn Subject,
) {
    let (one, two) = (Scene::open(subject).await, Scene::open(subject).await);
    declare(subject, Some(one.worker), "a", "old").await;
    declare(subject, Some(two.worker), "a", "new").await;
    declare(subject, None, "a", "by hand").await;
    let by = async || {
        let declared = schedule(subject, "a").await.declared;
        declared.into_iter().map(|one| (one.by, one.text)).collect::<Vec<_>>()
    };
    let hand = (None, "by hand".to_owned());
    let new = (Some(two.worker), "new".to_owned());
    assert_eq!(by().await, [hand.clone(), (Some(one.worker), "old".to_owned()), new.clone()]);
    one.close().await;
    assert_eq!(by().await, [hand.clone(), new]);
    two.close().await;
    assert_eq!(by().await, [hand]);
    assert!(subject.store().undeclare(&name("a")).await.unwrap());
    assert!(!subject.store().undeclare(&name("a")).await.unwrap());
    assert_eq!(by().await, []);
}

pub(super) async fn a_declaration_takes_the_place_of_the_same_ones_earlier(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for text in ["one", "two", "two"] {
        declare(subject, Some(scene.worker), "a", text).await;
        declare(subject, None, "a", text).await;
    }
    let declared = schedule(subject, "a").await.declared;
    assert_eq!(declared.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["two", "two"]);
}

pub(super) async fn a_text_keeps_the_age_of_its_first_declaration(subject: &dyn Subject) {
    let old = Scene::open(subject).await;
    declare(subject, Some(old.worker), "a", "old").await;
    subject.advance(SECOND).await;
    let new = old.another().await;
    declare(subject, Some(new.worker), "a", "new").await;
    subject.advance(SECOND).await;
    let again = old.another().await;
    declare(subject, Some(again.worker), "a", "old").await;
    let declared = schedule(subject, "a").await.declared;
    let since: Vec<_> = declared.iter().map(|one| one.since).collect();
    assert_eq!(since[0], since[2], "the text is as old as its first declaration");
    assert!(since[0] < since[1]);
}

pub(super) async fn what_a_forgotten_worker_declared_is_forgotten(subject: &dyn Subject) {
    let old = Scene::open(subject).await;
    declare(subject, Some(old.worker), "a", "same").await;
    old.close().await;
    subject.advance(WORKERS_KEPT + SECOND).await;
    subject.store().prune(Retention::default(), ALL).await.unwrap();
    let before = subject.store().schedules().await.unwrap().now;
    let new = Scene::open(subject).await;
    declare(subject, Some(new.worker), "a", "same").await;
    assert!(schedule(subject, "a").await.declared[0].since >= before);
}

pub(super) async fn a_tick_enqueues_its_job_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    declare(subject, None, "a", "nightly").await;
    let first = step(&schedule(subject, "a").await, [1]);
    let Advanced::Moved(jobs) = advance(subject, &first).await else { panic!("outrun") };
    let Some(Enqueued::Added(id)) = jobs[0] else { panic!("{jobs:?}") };
    assert_eq!(advance(subject, &first).await, Advanced::Outrun, "it has moved");
    let now = schedule(subject, "a").await;
    assert_eq!((now.next_at, now.last_at), (Some(tick(2)), Some(tick(1))));
    assert_eq!(now.text.as_deref(), Some("nightly"));
    let ticks = subject.store().ticks(&name("a")).await.unwrap();
    assert_eq!(ticks.iter().map(|tick| (tick.at, tick.job)).collect::<Vec<_>>(), [(tick(1), id)]);
    assert_eq!(scene.take().await.fence.job, id);
    assert_eq!(scene.records().await.len(), 1);
}

pub(super) async fn a_tick_at_or_before_the_latest_is_left_out(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    declare(subject, None, "a", "nightly").await;
    let step_to = async |ticks: &[u32]| {
        let step = step(&schedule(subject, "a").await, ticks.iter().copied());
        added(advance(subject, &step).await)
    };
    assert_eq!(step_to(&[5]).await, [true]);
    assert_eq!(step_to(&[4]).await, [false]);
    assert_eq!(step_to(&[3, 5, 6, 7]).await, [false, false, true, true]);
    assert_eq!(step_to(&[]).await, [false; 0]);
    assert_eq!(schedule(subject, "a").await.last_at, Some(tick(7)));
    assert_eq!(scene.records().await.len(), 3);
    let ticks = subject.store().ticks(&name("a")).await.unwrap();
    assert_eq!(ticks.iter().map(|tick| tick.at).collect::<Vec<_>>(), [7, 6, 5].map(tick));
}

pub(super) async fn a_schedule_may_stop_ticking_and_begin_again(subject: &dyn Subject) {
    declare(subject, None, "a", "nightly").await;
    let begun = step(&schedule(subject, "a").await, [1]);
    assert_eq!(added(advance(subject, &begun).await), [true]);
    let seen = schedule(subject, "a").await;
    let stop = Step { text: None, next_at: None, ..step(&seen, []) };
    assert_eq!(advance(subject, &stop).await, Advanced::Moved(Vec::new()));
    let stopped = schedule(subject, "a").await;
    assert_eq!((&stopped.text, stopped.next_at), (&None, None));
    assert_eq!(stopped.last_at, Some(tick(1)), "what has come has come");
    assert_eq!(added(advance(subject, &step(&stopped, [1, 2])).await), [false, true]);
}

pub(super) async fn a_step_of_an_unknown_schedule_is_not_taken(subject: &dyn Subject) {
    declare(subject, None, "a", "nightly").await;
    let stray = Step { name: name("b"), ..step(&schedule(subject, "a").await, [1]) };
    assert_eq!(advance(subject, &stray).await, Advanced::Outrun);
    assert_eq!(subject.store().ticks(&name("b")).await.unwrap(), []);
}

pub(super) async fn of_steps_at_once_one_is_taken(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    declare(subject, None, "a", "nightly").await;
    for number in 1..20 {
        let step = step(&schedule(subject, "a").await, [number]);
        let steps = join_all([(); 4].map(|()| subject.store().advance(&step))).await;
        let taken = steps.into_iter().filter(|step| *step.as_ref().unwrap() != Advanced::Outrun);
        assert_eq!(taken.count(), 1);
        let run = scene.take().await;
        scene.end_as(&run, &crate::outcome::Ending::Done, State::Succeeded).await;
    }
}

pub(super) async fn a_tick_beside_a_waiting_twin_is_told_of_it(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let twin = scene.add(&unique("k")).await;
    declare(subject, None, "a", "nightly").await;
    let mut step = step(&schedule(subject, "a").await, [1, 2]);
    step.ticks.iter_mut().for_each(|(_, job)| *job = unique("k"));
    let advanced = advance(subject, &step).await;
    assert_eq!(advanced, Advanced::Moved(vec![Some(Enqueued::AlreadyThere(twin)); 2]));
    let ticks = subject.store().ticks(&name("a")).await.unwrap();
    assert_eq!(ticks.iter().map(|tick| tick.job).collect::<Vec<_>>(), [twin, twin]);
}

pub(super) async fn the_latest_ticks_of_a_schedule_are_kept(subject: &dyn Subject) {
    declare(subject, None, "a", "nightly").await;
    declare(subject, None, "b", "nightly").await;
    for (schedule_name, ticks) in [("b", 1..=3), ("a", 1..=MAX_TICKS), ("a", 90..=130)] {
        let step = step(&schedule(subject, schedule_name).await, ticks);
        advance(subject, &step).await;
    }
    let kept = subject.store().ticks(&name("a")).await.unwrap();
    let newest = (31..=130).rev().map(tick).collect::<Vec<_>>();
    assert_eq!(kept.iter().map(|tick| tick.at).collect::<Vec<_>>(), newest);
    assert_eq!(subject.store().ticks(&name("b")).await.unwrap().len(), 3);
    let beyond = Duration::from_secs(u64::from(MAX_TICKS));
    assert!(schedule(subject, "a").await.next_at > Some(FIRST.after(beyond)));
}
