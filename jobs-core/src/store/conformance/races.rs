//! Calls at the same time: whatever comes first, each thing happens once and none is lost.

use futures_util::future::{join, join_all, join3};

use super::super::{
    Cancelled, Claim, Claimed, Promoted, Redrive, Redriven, Retention, Settled, Standing,
};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, ended, failed, ids, job, unique};
use crate::id::ClaimNumber;
use crate::outcome::{Ending, Retry};
use crate::record::ClaimedJob;
use crate::state::State;

const ROUNDS: usize = 20;

pub(super) async fn of_two_settlements_at_once_one_is_written(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for _ in 0..ROUNDS {
        let run = scene.run(&job("a")).await;
        let done = ended(&run, &Ending::Done);
        let dead = ended(&run, &failed(Retry::Never));
        let answers = join(scene.settle(&done), scene.settle(&dead)).await;
        let state = scene.state(run.fence.job).await;
        match answers {
            (Settled::Applied(one), Settled::LeaseLost)
            | (Settled::LeaseLost, Settled::Applied(one)) => assert_eq!(one, state),
            other => panic!("one is written: {other:?}"),
        }
    }
}

pub(super) async fn a_checkpoint_beside_a_settlement_is_written_before_it_or_not_at_all(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    for _ in 0..ROUNDS {
        let run = scene.run(&job("a")).await;
        let ending = failed(Retry::Never);
        let (saved, settled) = join(scene.save(run.fence, "[1]"), scene.end(&run, &ending)).await;
        assert_eq!(settled, Settled::Applied(State::Dead));
        let checkpoint = scene.record(run.fence.job).await.checkpoint;
        assert_eq!(saved == Standing::Held, checkpoint.is_some(), "{saved:?}");
    }
}

/// What is claimed under a worker and closed with it runs nowhere.
pub(super) async fn a_claim_beside_its_workers_end_leaves_no_run(subject: &dyn Subject) {
    for _ in 0..ROUNDS {
        let scene = Scene::open(subject).await;
        scene.enqueue(&vec![job("a"); 5]).await;
        let heads = scene.heads(&["default"]).await;
        let claim = Claim { worker: scene.worker, heads: &heads, limit: 3 };
        let (claimed, given_back) = join(subject.store().claim(claim), scene.close()).await;
        let claimed = match claimed.unwrap() {
            Claimed::Jobs(runs) => runs,
            Claimed::WorkerEnded => Vec::new(),
        };
        assert_eq!(ids(&claimed), given_back);
        for record in scene.records().await {
            assert!(record.state.is_finished() || record.state == State::Ready, "{record:?}");
        }
        let all: Vec<_> = scene.records().await.iter().map(|record| record.id).collect();
        subject.operate().cancel(&all).await.unwrap();
    }
}

pub(super) async fn a_claim_beside_the_taking_back_of_its_worker_leaves_no_run(
    subject: &dyn Subject,
) {
    for _ in 0..ROUNDS {
        let scene = Scene::open(subject).await;
        let added = scene.add(&job("a")).await;
        let heads = scene.heads(&["default"]).await;
        scene.sweep().await;
        subject.advance(crate::Lease::default().length() + SECOND).await;
        let claim = Claim { worker: scene.worker, heads: &heads, limit: 3 };
        let (claimed, swept) = join(subject.store().claim(claim), scene.sweep()).await;
        // What the claim held while it was swept is left for the next sweep.
        let later = scene.sweep().await;
        assert_eq!([swept.workers, later.workers].concat(), [scene.worker]);
        let taken = match claimed.unwrap() {
            Claimed::Jobs(runs) => runs.len(),
            Claimed::WorkerEnded => 0,
        };
        assert_eq!(taken, swept.jobs.len() + later.jobs.len());
        assert_eq!(scene.state(added).await, State::Ready);
        subject.operate().cancel(&[added]).await.unwrap();
    }
}

pub(super) async fn a_cancel_beside_a_claim_is_heard_of_or_comes_first(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for _ in 0..ROUNDS {
        let id = [scene.add(&job("a")).await];
        let heads = scene.heads(&["default"]).await;
        let (claimed, cancelled) =
            join(scene.claim_from(&heads, ALL), subject.operate().cancel(&id)).await;
        match (&claimed[..], &cancelled.unwrap()[..]) {
            ([], [Cancelled::Cancelled]) => {}
            ([run], [Cancelled::Requested]) => {
                assert_eq!(scene.standing(run.fence).await, Standing::CancelRequested);
                scene.end_as(run, &Ending::Unstarted, State::Cancelled).await;
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(scene.state(id[0]).await, State::Cancelled);
    }
}

pub(super) async fn two_promotions_at_once_make_each_job_ready_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![due_in(SECOND, job("a")); 50]).await;
    subject.advance(SECOND * 5).await;
    let (one, two) = join(subject.store().promote(30), subject.store().promote(30)).await;
    let rest = subject.store().promote(ALL).await.unwrap();
    let promoted = [one.unwrap(), two.unwrap(), rest];
    let count: u32 = promoted.iter().map(|promoted: &Promoted| promoted.count).sum();
    assert_eq!(count, 50);
    assert_eq!(scene.claim(ALL).await.len(), 50);
}

pub(super) async fn a_job_is_run_now_and_promoted_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for _ in 0..ROUNDS {
        let id = [scene.add(&due_in(SECOND, job("a"))).await];
        subject.advance(SECOND * 5).await;
        let (run_now, promoted) =
            join(subject.operate().run_now(&id), subject.store().promote(ALL)).await;
        let made_ready = u32::from(run_now.unwrap()[0]) + promoted.unwrap().count;
        assert!(made_ready <= 1, "{made_ready}");
        scene.promote().await;
        let run = scene.take().await;
        scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    }
}

pub(super) async fn of_two_redrives_at_once_one_brings_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..ROUNDS {
        let id = [scene.dead(&unique(&format!("k{round}"))).await];
        let redrive = || subject.operate().redrive(&id, Redrive::default());
        let (one, two) = join(redrive(), redrive()).await;
        let mut answers = [one.unwrap()[0], two.unwrap()[0]];
        answers.sort_by_key(|answer| *answer != Redriven::Ready);
        assert_eq!(answers, [Redriven::Ready, Redriven::Not(State::Ready)]);
        assert_eq!(scene.events(id[0]).await.len(), 2);
        subject.operate().cancel(&id).await.unwrap();
    }
}

/// Two dead twins brought back at once, and a new one enqueued: one of the three waits.
pub(super) async fn of_twins_that_come_at_once_one_waits(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..ROUNDS {
        let key = unique(&format!("k{round}"));
        let (one, two) = ([scene.dead(&key).await], [scene.dead(&key).await]);
        let operate = subject.operate();
        let new = [key];
        let (first, second, _) = join3(
            operate.redrive(&one, Redrive::default()),
            operate.redrive(&two, Redrive::default()),
            scene.enqueue(&new),
        )
        .await;
        let answers = [first.unwrap()[0], second.unwrap()[0]];
        assert!(answers.iter().all(|answer| !matches!(answer, Redriven::Not(_))), "{answers:?}");
        let run = scene.take().await;
        scene.end_as(&run, &Ending::Done, State::Succeeded).await;
    }
}

pub(super) async fn a_twin_that_comes_beside_a_retry_leaves_one_that_waits(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for round in 0..ROUNDS {
        let key = unique(&format!("k{round}"));
        let run = scene.run(&key).await;
        let new = [key];
        let retry = Ending::Snoozed(std::time::Duration::ZERO);
        let (added, settled) = join(scene.enqueue(&new), scene.end(&run, &retry)).await;
        let waits = scene.take().await;
        match settled {
            Settled::Applied(State::Cancelled) => assert_ne!(waits.fence.job, run.fence.job),
            Settled::Applied(State::Ready) => assert_eq!(waits.fence.job, run.fence.job),
            other => panic!("{other:?}"),
        }
        assert_eq!(added[0].id(), waits.fence.job);
        scene.end_as(&waits, &Ending::Done, State::Succeeded).await;
    }
}

pub(super) async fn two_prunes_at_once_count_each_job_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 40]).await;
    let runs = scene.claim(ALL).await;
    let settlements: Vec<_> = runs.iter().map(|run| ended(run, &Ending::Done)).collect();
    subject.store().settle(&scene.author(), &settlements).await.unwrap();
    subject.advance(Retention::default().succeeded + SECOND).await;
    let prune = |limit| subject.store().prune(Retention::default(), limit);
    let (one, two) = join(prune(30), prune(30)).await;
    let pruned = one.unwrap() + two.unwrap() + prune(ALL).await.unwrap();
    assert_eq!(pruned, 40);
    assert_eq!(scene.records().await, []);
}

/// Four workers and a producer at once: every job runs to its end, each claim is settled once.
pub(super) async fn a_crowd_runs_every_job_once(subject: &dyn Subject) {
    let producer = Scene::open(subject).await;
    let added = producer.enqueue(&vec![job("a"); 20]).await;
    let heads = producer.heads(&["default"]).await;
    let work = async || {
        let scene = producer.another().await;
        let mut done = Vec::new();
        loop {
            let runs: Vec<ClaimedJob> = scene.claim_from(&heads, 3).await;
            if runs.is_empty() {
                return done;
            }
            let settlements: Vec<_> = runs.iter().map(|run| ended(run, &Ending::Done)).collect();
            let settled = subject.store().settle(&scene.author(), &settlements).await.unwrap();
            assert!(settled.iter().all(|one| *one == Settled::Applied(State::Succeeded)));
            done.extend(ids(&runs));
        }
    };
    let produce = async {
        let mut more = Vec::new();
        for _ in 0..20 {
            more.push(producer.add(&job("a")).await);
        }
        more
    };
    let (done, more) = join(join_all([work(), work(), work(), work()]), produce).await;
    let mut done = done.concat();
    // A job that came when all had gone home.
    let rest = producer.claim(ALL).await;
    for run in &rest {
        producer.end_as(run, &Ending::Done, State::Succeeded).await;
    }
    done.extend(ids(&rest));
    done.sort_unstable();
    let all: Vec<_> = added.into_iter().map(super::super::Enqueued::id).chain(more).collect();
    assert_eq!(done, all);
    for record in producer.records().await {
        assert_eq!((record.state, record.claim), (State::Succeeded, ClaimNumber(1)));
    }
}
