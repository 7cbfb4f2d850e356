//! Taking back: from workers that vanished, and from nobody at all.

use std::time::Duration;

use futures_util::future::join;

use super::super::{Author, CANCELLED, Swept};
use super::scene::{ALL, NO_JITTER, SECOND, Scene, ended, ids, job, moved, sweep};
use super::{Subject, Tampering};
use crate::id::ClaimNumber;
use crate::lease::Lease;
use crate::outcome::Ending;
use crate::record::{Budget, Counters, EventKind};
use crate::state::State;
use crate::transition::{MAX_CRASHES, NOT_PROGRESSING, Settlement};

pub(super) async fn an_expired_worker_loses_its_runs_as_crashes(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&[job("a"), job("a"), job("a")]).await;
    let runs = scene.claim(2).await;
    let waiting = scene.records().await.remove(2);
    let swept = scene.expire().await;
    assert_eq!(swept.workers, [scene.worker]);
    let mut jobs = swept.jobs;
    jobs.sort_unstable();
    assert_eq!(jobs, ids(&runs).into_iter().map(|id| (id, State::Ready)).collect::<Vec<_>>());
    for run in &runs {
        let record = scene.record(run.fence.job).await;
        let counters = Counters { interruptions: 1, crashes: 1, ..Counters::default() };
        assert_eq!((record.state, record.worker), (State::Ready, None));
        assert_eq!((record.claim, record.counters), (moved(run.fence, 1).claim, counters));
        let events = scene.events(run.fence.job).await;
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].kind, events[0].class.as_str()), (EventKind::Crashed, "crash"));
        assert_eq!(events[0].claim, run.fence.claim);
    }
    let after = scene.records().await.remove(2);
    assert_eq!((after.state, after.claim), (waiting.state, waiting.claim));
}

pub(super) async fn a_crashed_run_keeps_its_place(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.add(&job("a")).await;
    scene.expire().await;
    assert_eq!(scene.another().await.claim(1).await[0].fence.job, run.fence.job);
}

pub(super) async fn a_sweep_touches_no_live_worker(subject: &dyn Subject) {
    let live = Scene::open(subject).await;
    let run = live.run(&job("a")).await;
    let gone = live.another().await;
    let lost = gone.run(&job("a")).await;
    live.sweep().await;
    for _ in 0..2 {
        subject.advance(SECOND * 16).await;
        live.renew().await;
    }
    let before = live.record(run.fence.job).await;
    let swept = live.sweep().await;
    assert_eq!(swept.workers, [gone.worker]);
    assert_eq!(ids(&[lost]), swept.jobs.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    assert_eq!(live.record(run.fence.job).await.state, before.state);
    live.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_sweep_at_the_start_touches_no_fresh_claim(subject: &dyn Subject) {
    for _ in 0..300 {
        let scene = Scene::open(subject).await;
        let grace = Lease::default().length();
        let id = scene.add(&job("a")).await;
        let heads = scene.heads(&["default"]).await;
        let at_start = sweep(grace, ALL);
        let (claimed, swept) =
            join(scene.claim_from(&heads, ALL), subject.store().sweep(&at_start)).await;
        assert_eq!((ids(&claimed), swept.unwrap()), (vec![id], Swept::default()));
        assert_eq!(subject.store().sweep(&at_start).await.unwrap(), Swept::default());
        scene.end_as(&claimed[0], &Ending::Done, State::Succeeded).await;
        scene.close().await;
    }
}

pub(super) async fn a_grace_spares_leases_that_ended_lately(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.run(&job("a")).await;
    let with_grace = sweep(Lease::default().length(), ALL);
    for _ in 0..2 {
        assert_eq!(subject.store().sweep(&with_grace).await.unwrap(), Swept::default());
        subject.advance(SECOND * 29).await;
    }
    assert_eq!(subject.store().sweep(&with_grace).await.unwrap(), Swept::default());
    subject.advance(SECOND * 5).await;
    let swept = subject.store().sweep(&with_grace).await.unwrap();
    assert_eq!((swept.workers.len(), swept.jobs.len()), (1, 1));
}

pub(super) async fn a_second_sweep_takes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.expire().await;
    assert_eq!(scene.sweep().await, Swept::default());
    let next = scene.another().await;
    let taken = next.take().await;
    assert_eq!(next.sweep().await, Swept::default());
    assert_eq!(taken.fence, moved(run.fence, 2));
}

pub(super) async fn two_sweeps_at_once_take_each_run_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 30]).await;
    assert_eq!(scene.claim(ALL).await.len(), 30);
    scene.sweep().await;
    subject.advance(Lease::default().length() + SECOND).await;
    let (one, two) = join(scene.sweep(), scene.sweep()).await;
    let workers = [one.workers, two.workers].concat();
    assert_eq!(workers, [scene.worker]);
    let mut taken: Vec<_> = [one.jobs, two.jobs, scene.sweep().await.jobs].concat();
    taken.sort_unstable();
    assert_eq!(taken.len(), 30);
    for record in scene.records().await {
        assert_eq!((record.state, record.claim), (State::Ready, ClaimNumber(2)));
    }
}

pub(super) async fn a_sweep_takes_at_most_its_limit(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 10]).await;
    scene.claim(ALL).await;
    scene.sweep().await;
    subject.advance(Lease::default().length() + SECOND).await;
    let mut taken = Vec::new();
    for _ in 0..5 {
        let swept = subject.store().sweep(&sweep(Duration::ZERO, 3)).await.unwrap();
        assert!(swept.jobs.len() <= 3, "{swept:?}");
        taken.extend(swept.jobs);
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 10);
    assert!(scene.records().await.iter().all(|record| record.claim == ClaimNumber(2)));
}

pub(super) async fn a_run_held_by_nobody_is_taken_back_at_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let id = scene.add(&job("a")).await;
    subject.tamper(id, &Tampering::RunUnheld).await;
    let before = scene.record(id).await;
    let swept = scene.sweep().await;
    assert_eq!((swept.workers, swept.jobs), (vec![], vec![(id, State::Ready)]));
    let record = scene.record(id).await;
    assert_eq!(record.claim, ClaimNumber(before.claim.0 + 1));
    assert_eq!(scene.take().await.fence.job, id);
}

pub(super) async fn a_held_run_that_lost_its_holder_is_taken_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    subject.tamper(run.fence.job, &Tampering::RunUnheld).await;
    assert_eq!(scene.sweep().await.jobs, [(run.fence.job, State::Ready)]);
    assert_eq!(scene.standing(run.fence).await, super::super::Standing::Lost);
}

pub(super) async fn crashes_in_a_row_back_off_and_end_dead(subject: &dyn Subject) {
    let id = Scene::open(subject).await.add(&job("a")).await;
    for crash in 1..=MAX_CRASHES {
        let scene = Scene::open(subject).await;
        subject.operate().run_now(&[id]).await.unwrap();
        let run = scene.take().await;
        assert_eq!(run.counters.crashes, crash - 1);
        let state = match crash {
            1 => State::Ready,
            MAX_CRASHES => State::Dead,
            _ => State::Scheduled,
        };
        assert!(scene.sweep().await.jobs.is_empty());
        subject.advance(Lease::default().length() + SECOND).await;
        assert_eq!(scene.sweep().await.jobs, [(id, state)], "crash {crash}");
    }
    let scene = Scene::open(subject).await;
    let record = scene.record(id).await;
    assert_eq!(record.error_class.as_deref(), Some("crash_loop"));
    let counted = (record.counters.failures, record.counters.interruptions);
    assert_eq!((counted, record.claim), ((0, 5), ClaimNumber(10)));
    assert!(record.finished_at.is_some());
}

pub(super) async fn only_a_crash_alone_is_deadly(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let suspect = scene.suspect(&job("a")).await;
    scene.add(&job("b")).await;
    let runs = scene.claim(ALL).await;
    assert_eq!(runs.len(), 2);
    // Taken back in parts: what was left of its worker's runs in between counts for nothing.
    scene.sweep().await;
    subject.advance(Lease::default().length() + SECOND).await;
    let mut swept = subject.store().sweep(&sweep(Duration::ZERO, 1)).await.unwrap().jobs;
    swept.extend(scene.sweep().await.jobs);
    assert_eq!(swept.len(), 2);
    let record = scene.record(suspect).await;
    assert_eq!((record.state, record.counters.crashes), (State::Scheduled, MAX_CRASHES));
    let alone = scene.another().await;
    subject.operate().run_now(&[suspect]).await.unwrap();
    let run = alone.claim_from(&alone.heads_of_suspects().await, ALL).await;
    assert_eq!(ids(&run), [suspect]);
    assert_eq!(alone.expire().await.jobs, [(suspect, State::Dead)]);
    let record = scene.record(suspect).await;
    assert_eq!(record.error_class.as_deref(), Some("crash_loop"));
}

pub(super) async fn a_sweep_judges_by_the_counters_and_the_budget_on_the_row(
    subject: &dyn Subject,
) {
    let cases = [
        (Counters { crashes: MAX_CRASHES - 1, ..Counters::default() }, None, State::Dead),
        (Counters { interruptions: 2, ..Counters::default() }, Some(3), State::Dead),
        (Counters { interruptions: 1, ..Counters::default() }, Some(3), State::Ready),
        (
            Counters { interruptions: NOT_PROGRESSING, ..Counters::default() },
            None,
            State::Scheduled,
        ),
    ];
    for (counters, max_interruptions, state) in cases {
        let scene = Scene::open(subject).await;
        let budget = Budget { max_interruptions, ..Budget::default() };
        let run = scene.run(&crate::NewJob { budget, ..job("a") }).await;
        scene.settle(&Settlement { counters, ..ended(&run, &Ending::Unstarted) }).await;
        let run = scene.take().await;
        let swept = scene.expire().await;
        assert_eq!(swept.jobs, [(run.fence.job, state)], "{counters:?}");
        let after = scene.record(run.fence.job).await.counters;
        assert_eq!(after.interruptions, counters.interruptions + 1);
        assert_eq!(after.crashes, counters.crashes + 1);
        subject.operate().cancel(&[run.fence.job]).await.unwrap();
    }
}

pub(super) async fn a_cancelled_run_is_not_brought_back_by_a_sweep(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    subject.operate().cancel(&[run.fence.job]).await.unwrap();
    assert_eq!(scene.expire().await.jobs, [(run.fence.job, State::Cancelled)]);
    let kinds: Vec<_> = scene.events(run.fence.job).await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Crashed, EventKind::Cancelled]);
    assert_eq!(scene.events(run.fence.job).await[1].class, CANCELLED);
}

pub(super) async fn a_crash_is_recorded_against_the_worker_that_was_lost(subject: &dyn Subject) {
    let lost = Scene::open(subject).await;
    let run = lost.run(&job("a")).await;
    let too_late = lost.run(&job("b")).await;
    let also_lost = lost.another().await;
    let other = also_lost.run(&job("c")).await;
    subject.operate().cancel(&[too_late.fence.job]).await.unwrap();
    lost.sweep().await;
    subject.advance(Lease::default().length() + SECOND).await;
    let by = Author {
        worker: lost.another().await.author().worker,
        build: crate::BuildId::new("shop 2.0.0").unwrap(),
    };
    let signed = super::super::Sweep { by: by.clone(), ..sweep(Duration::ZERO, ALL) };
    subject.store().sweep(&signed).await.unwrap();
    let finder = format!("; noticed by worker {} of shop 2.0.0", by.worker.unwrap().0);
    let held = [(&run, &lost), (&too_late, &lost), (&other, &also_lost)];
    for (run, scene) in held {
        let event = lost.events(run.fence.job).await.remove(0);
        assert_eq!(event.kind, EventKind::Crashed);
        let author = (event.worker, event.build.as_deref());
        assert_eq!(author, (Some(scene.worker), Some("shop 1.0.0")), "{event:?}");
        assert!(event.text.ends_with(&finder), "{event:?}");
    }
}

pub(super) async fn draws_spread_the_waits_of_a_sweep(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 20]).await;
    let counters = Counters { crashes: 3, ..Counters::default() };
    let crashed = |run| Settlement { counters, ..ended(run, &Ending::Unstarted) };
    let settlements: Vec<_> = scene.claim(ALL).await.iter().map(crashed).collect();
    subject.store().settle(&scene.author(), &settlements).await.unwrap();
    assert_eq!(scene.claim(ALL).await.len(), 20);
    scene.sweep().await;
    subject.advance(Lease::default().length() + SECOND).await;
    let drawn = super::super::Sweep { draw: NO_JITTER / 3, ..sweep(Duration::ZERO, ALL) };
    assert_eq!(subject.store().sweep(&drawn).await.unwrap().jobs.len(), 20);
    let due: std::collections::BTreeSet<_> =
        scene.records().await.iter().map(|record| record.due_at).collect();
    assert!(due.len() > 1, "jobs that crashed together come back apart");
}

pub(super) async fn a_run_settled_while_its_lease_is_swept_is_written_once(subject: &dyn Subject) {
    for _ in 0..20 {
        let scene = Scene::open(subject).await;
        let run = scene.run(&job("a")).await;
        scene.sweep().await;
        subject.advance(Lease::default().length() + SECOND).await;
        let (swept, settled) = join(scene.sweep(), scene.end(&run, &Ending::Done)).await;
        let record = scene.record(run.fence.job).await;
        match settled {
            super::super::Settled::Applied(state) => {
                assert_eq!((state, record.claim), (State::Succeeded, run.fence.claim));
                assert_eq!((record.state, swept.jobs), (State::Succeeded, vec![]));
            }
            super::super::Settled::LeaseLost => {
                assert_eq!(record.claim, moved(run.fence, 1).claim);
                assert_eq!(swept.jobs, [(run.fence.job, State::Ready)]);
            }
            super::super::Settled::Locked => panic!("no transaction is left open"),
        }
        subject.operate().cancel(&[run.fence.job]).await.unwrap();
    }
}
