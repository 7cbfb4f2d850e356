//! Settlements: what each outcome writes, and what a cancel makes of it.

use std::time::Duration;

use super::super::{CANCELLED, Settled};
use super::Subject;
use super::scene::{ALL, NO_JITTER, SECOND, Scene, due_in, ended, failed, ids, job, refused};
use crate::clock::Timestamp;
use crate::outcome::{Company, Ending, Failure, Interruption, Retry, storable};
use crate::record::{Budget, COUNTER_MAX, ClaimedJob, Counters, EventKind, JobRecord};
use crate::retry::Ladder;
use crate::state::State;
use crate::transition::{Due, ErrorNote, Run, Settlement, transition};

fn endings() -> Vec<Ending> {
    vec![
        Ending::Done,
        failed(Retry::Ladder),
        failed(Retry::After(Duration::ZERO)),
        failed(Retry::After(Duration::from_hours(1_000_000))),
        failed(Retry::Never),
        Ending::Snoozed(Duration::ZERO),
        Ending::Snoozed(SECOND * 60),
        Ending::Unreadable(Failure {
            class: "malformed_payload".to_owned(),
            text: "expected unit at line 1".to_owned(),
            retry: Retry::Never,
        }),
        Ending::Expired,
        Ending::Retired,
        Ending::MalformedVersion("\"?\" is not a version".to_owned()),
        refused(),
        Ending::Interrupted(Interruption::Stopped("drain".to_owned())),
        Ending::Interrupted(Interruption::Infrastructure("no card service".to_owned())),
        Ending::Interrupted(Interruption::GivenUp),
        Ending::Unstarted,
        Ending::Crashed(Company::Others),
    ]
}

pub(super) async fn every_outcome_is_written_as_its_transition_says(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for ending in endings() {
        let run = scene.run(&job("a")).await;
        let before = scene.record(run.fence.job).await;
        let settlement = ended(&run, &ending);
        assert_eq!(scene.settle(&settlement).await, Settled::Applied(settlement.state));
        let after = scene.record(run.fence.job).await;
        is_written(&settlement, &before, &after);
        let events = scene.events(run.fence.job).await;
        assert_eq!(events.len(), usize::from(settlement.event.is_some()), "{ending:?}");
        if let (Some(written), Some(event)) = (events.first(), &settlement.event) {
            assert_eq!((written.number, written.claim), (1, run.fence.claim));
            assert_eq!(written.kind, event.kind);
            assert_eq!((&written.class, &written.text), (&event.class, &event.text));
            assert_eq!(written.worker, Some(scene.worker));
            assert_eq!(written.build.as_deref(), Some("shop 1.0.0"));
        }
        subject.operate().cancel(&[run.fence.job]).await.unwrap();
    }
}

/// All of a settlement is on the row, and all else is as it was.
fn is_written(settlement: &Settlement, before: &JobRecord, after: &JobRecord) {
    let (class, text) = match &settlement.error {
        Some(note) => (Some(note.class.clone()), Some(note.text.clone())),
        None => (before.error_class.clone(), before.error.clone()),
    };
    let expected = JobRecord {
        state: settlement.state,
        worker: before.worker.filter(|_| settlement.state == State::Succeeded),
        counters: settlement.counters,
        refused: settlement.refused.clone(),
        error_class: class,
        error: text,
        due_at: after.due_at,
        finished_at: after.finished_at,
        progress: settlement.notes.progress.clone().or(before.progress.clone()),
        result: settlement.notes.result.clone().or(before.result.clone()),
        ..before.clone()
    };
    assert_eq!(*after, expected);
    assert_eq!(after.finished_at.is_some(), settlement.state.is_finished());
    if settlement.due == Due::Unchanged {
        assert_eq!(after.due_at, before.due_at);
    }
}

pub(super) async fn an_unchanged_due_keeps_the_place_and_a_wait_moves_it(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mut added = Vec::new();
    for _ in 0..3 {
        added.push(scene.add(&job("a")).await);
    }
    subject.advance(SECOND).await;
    let runs = scene.claim(2).await;
    scene.end_as(&runs[1], &Ending::Unstarted, State::Ready).await;
    scene.end_as(&runs[0], &Ending::Snoozed(Duration::ZERO), State::Ready).await;
    let again = scene.claim(ALL).await;
    assert_eq!(ids(&again), [added[1], added[2], added[0]]);
    assert_eq!(again[0].place, runs[1].place);
}

pub(super) async fn a_wait_is_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &Ending::Snoozed(SECOND * 60), State::Scheduled).await;
    subject.advance(SECOND * 55).await;
    assert_eq!(scene.promote().await, 0);
    subject.advance(SECOND * 10).await;
    assert_eq!(scene.promote().await, 1);
    assert_eq!(scene.take().await.counters.snoozes, 1);
}

pub(super) async fn an_instant_is_kept_exactly(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let instant = Timestamp::from_micros(run.due_at.after(SECOND * 3600).as_micros() | 1);
    let settlement = Settlement { due: Due::At(instant), ..ended(&run, &Ending::Snoozed(SECOND)) };
    scene.settle(&settlement).await;
    assert_eq!(scene.record(run.fence.job).await.due_at, instant);
}

pub(super) async fn a_wait_beyond_the_end_of_time_stops_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let far = Settlement { due: Due::In(Duration::MAX), ..ended(&run, &Ending::Snoozed(SECOND)) };
    assert_eq!(scene.settle(&far).await, Settled::Applied(State::Scheduled));
    scene.run(&job("a")).await;
    assert_eq!(scene.promote().await, 0);
}

pub(super) async fn a_later_success_keeps_the_latest_failure_for_people(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &failed(Retry::After(Duration::ZERO)), State::Ready).await;
    let again = scene.take().await;
    scene.end_as(&again, &Ending::Done, State::Succeeded).await;
    let record = scene.record(run.fence.job).await;
    assert_eq!(record.error_class.as_deref(), Some("error"));
    assert_eq!(record.error.as_deref(), Some("it broke"));
    assert_eq!((record.claim, record.counters.failures), (again.fence.claim, 1));
}

pub(super) async fn a_refusal_stands_on_the_row_until_a_run_says_otherwise(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.end_as(&run, &refused(), State::Scheduled).await;
    let stands = scene.record(run.fence.job).await.refused;
    assert_eq!(stands.as_ref().map(|by| (&*by.reason, &*by.build)), Some(("newer", "shop 1.0.0")));
    subject.operate().run_now(&[run.fence.job]).await.unwrap();
    let again = scene.take().await;
    assert_eq!((&again.refused, again.counters.refusals), (&stands, 1));
    scene.end_as(&again, &Ending::Unstarted, State::Ready).await;
    assert_eq!(scene.record(run.fence.job).await.refused, stands);
    let third = scene.take().await;
    scene.end_as(&third, &Ending::Snoozed(SECOND), State::Scheduled).await;
    assert_eq!(scene.record(run.fence.job).await.refused, None);
}

pub(super) async fn failures_grow_from_run_to_run_until_the_budget_is_spent(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let budget = Budget { max_failures: 3, max_interruptions: None };
    let id = scene.add(&crate::NewJob { budget, ..job("a") }).await;
    for failures in 1..=3 {
        let run = scene.take().await;
        let state = if failures < 3 { State::Scheduled } else { State::Dead };
        scene.end_as(&run, &failed(Retry::Ladder), state).await;
        assert_eq!(scene.record(id).await.counters.failures, failures);
        subject.operate().run_now(&[id]).await.unwrap();
    }
    let events = scene.events(id).await;
    assert_eq!(events.iter().filter(|event| event.kind == EventKind::Failed).count(), 3);
}

pub(super) async fn the_largest_counters_are_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let counters = Counters {
        failures: COUNTER_MAX,
        interruptions: COUNTER_MAX,
        crashes: COUNTER_MAX,
        refusals: COUNTER_MAX,
        snoozes: COUNTER_MAX,
    };
    let settlement = Settlement { counters, ..ended(&run, &Ending::Unstarted) };
    scene.settle(&settlement).await;
    assert_eq!(scene.take().await.counters, counters);
}

pub(super) async fn error_texts_are_kept_exactly(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let long = storable(&"é\0".repeat(100_000), crate::MAX_ERROR_BYTES);
    for text in
        [r#"it's "quoted" \ $1 %s ?1 {}"#, "line\r\n\ttab\u{1b}[31m", "\u{202e}🦀", "", &long]
    {
        let run = scene.run(&job("a")).await;
        let failure =
            Failure { class: text.to_owned(), text: text.to_owned(), retry: Retry::Never };
        scene.end_as(&run, &Ending::Failed(failure), State::Dead).await;
        let record = scene.record(run.fence.job).await;
        let note = ErrorNote::new(text, text);
        assert_eq!(record.error.as_deref(), Some(text));
        assert_eq!(
            (record.error_class.as_ref(), record.error.as_ref()),
            (Some(&note.class), Some(&note.text))
        );
        let events = scene.events(run.fence.job).await;
        assert_eq!((&events[0].class, &events[0].text), (&note.class, &note.text));
    }
}

pub(super) async fn an_error_with_nul_is_cleaned_and_the_failure_counts(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let failure = Failure { class: "a\0b".into(), text: "c\0d".into(), retry: Retry::Ladder };
    scene.end_as(&run, &Ending::Failed(failure), State::Scheduled).await;
    let record = scene.record(run.fence.job).await;
    assert_eq!(record.error.as_deref(), Some("c\u{FFFD}d"));
    assert_eq!(record.error_class.as_deref(), Some("a\u{FFFD}b"));
}

pub(super) async fn a_cancel_wins_over_all_but_success_and_death(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for ending in endings() {
        let run = scene.run(&job("a")).await;
        subject.operate().cancel(&[run.fence.job]).await.unwrap();
        let settlement = ended(&run, &ending);
        let state = match settlement.state {
            State::Succeeded | State::Dead => settlement.state,
            State::Scheduled | State::Ready | State::Cancelled => State::Cancelled,
            State::Running => panic!("no run ends as running"),
        };
        assert_eq!(scene.settle(&settlement).await, Settled::Applied(state), "{ending:?}");
        let record = scene.record(run.fence.job).await;
        assert_eq!((record.state, record.counters), (state, settlement.counters));
        assert!(record.finished_at.is_some());
        assert_eq!(record.error_class, settlement.error.map(|note| note.class));
        let written = scene.events(run.fence.job).await;
        let mut kinds: Vec<_> = settlement.event.iter().map(|event| event.kind).collect();
        if state == State::Cancelled {
            kinds.push(EventKind::Cancelled);
            assert_eq!(written.last().map(|event| event.class.as_str()), Some(CANCELLED));
        }
        assert_eq!(written.iter().map(|event| event.kind).collect::<Vec<_>>(), kinds);
        assert!(written.iter().all(|event| event.claim == run.fence.claim));
    }
}

pub(super) async fn a_cancel_is_for_one_run_only(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    subject.operate().cancel(&[run.fence.job]).await.unwrap();
    scene.end_as(&run, &Ending::Unstarted, State::Cancelled).await;
    subject.operate().redrive(&[run.fence.job], super::super::Redrive::default()).await.unwrap();
    let next = scene.take().await;
    assert_eq!(scene.standing(next.fence).await, super::super::Standing::Held);
    scene.end_as(&next, &Ending::Unstarted, State::Ready).await;
}

pub(super) async fn one_batch_answers_in_its_own_order(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 40]).await;
    let mut runs = scene.claim(ALL).await;
    runs.reverse();
    let ending = |run: &ClaimedJob| match run.fence.job.0 % 3 {
        0 => Ending::Done,
        1 => failed(Retry::Never),
        _ => Ending::Snoozed(SECOND),
    };
    let settlements: Vec<_> = runs.iter().map(|run| ended(run, &ending(run))).collect();
    let settled = subject.store().settle(&scene.author(), &settlements).await.unwrap();
    let expected: Vec<_> =
        settlements.iter().map(|settlement| Settled::Applied(settlement.state)).collect();
    assert_eq!(settled, expected);
    for settlement in &settlements {
        assert_eq!(scene.state(settlement.fence.job).await, settlement.state);
    }
}

pub(super) async fn forty_thousand_snoozes_are_counted_and_spend_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let snoozes = 40_000;
    let many = Run { counters: Counters { snoozes, ..run.counters }, ..Run::from(&run) };
    let again = Ending::Snoozed(Duration::ZERO);
    scene.settle(&transition(&many, &again, &Ladder::default(), NO_JITTER)).await;
    let taken = scene.take().await;
    assert_eq!(taken.counters, Counters { snoozes: snoozes + 1, ..Counters::default() });
}

pub(super) async fn a_settled_job_waits_beside_the_scheduled_ones(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let before = scene.add(&due_in(SECOND * 30, job("a"))).await;
    scene.end_as(&run, &Ending::Snoozed(SECOND * 60), State::Scheduled).await;
    let after = scene.add(&due_in(SECOND * 90, job("a"))).await;
    subject.advance(SECOND * 100).await;
    assert_eq!(scene.promote().await, 3);
    assert_eq!(ids(&scene.claim(ALL).await), [before, run.fence.job, after]);
}
