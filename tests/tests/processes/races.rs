//! Operators and producers in this process against workers in others, over one store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Cancelled, Filter, Redrive, Redriven};
use jobs_runtime::{Enqueued, EventKind, JobId, Random, ScheduleName, SeededRandom, State, below};
use rustix::process::Signal;
use tests::process::{Process, Setup};
use tests::{Work, ledger, sized, until};

use crate::{BINARY, MakeSetup, STORES, all, count, over_each_store};

const LIMIT: Duration = Duration::from_mins(1);

fn stop(processes: impl IntoIterator<Item = Process>) {
    for process in processes {
        process.signal(Signal::TERM);
        assert!(process.wait().success());
    }
}

/// No two runs of a job at once, none behind one that ended, but for those that its history tells of, and
/// the run that the store accepted is one that ended. Every handler here succeeds.
async fn assert_one_run_each(setup: &Setup, jobs: &Jobs, records: &[jobs_runtime::JobRecord]) {
    let runs = ledger::read(&setup.ledger);
    for record in records {
        let of_job: Vec<_> = runs.get(&record.id.0).into_iter().flatten().collect();
        for pair in of_job.windows(2) {
            let (before, after) = (pair[0].1, pair[1].1);
            let ended_us = before.ended_us.unwrap_or(before.started_us);
            assert!(ended_us <= after.started_us, "job {}: {of_job:?}", record.id);
        }
        if of_job.len() > 1 {
            let history = jobs.inspect().events(record.id).await.unwrap();
            let is_cut = |event: &&jobs_runtime::Event| {
                matches!(event.kind, EventKind::Crashed | EventKind::Interrupted)
            };
            let cut = history.iter().filter(is_cut).count();
            assert!(of_job.len() <= 1 + cut, "job {}: {of_job:?}, {history:?}", record.id);
        }
        if record.state == State::Succeeded {
            let accepted = of_job.iter().find(|(claim, _)| **claim == record.claim.0);
            assert!(accepted.is_some_and(|(_, run)| run.ended_us.is_some()), "job {}", record.id);
        }
    }
}

#[tokio::test]
async fn cancels_and_redrives_beside_claims_and_settlements_lose_and_double_nothing() {
    for store in STORES {
        cancel_and_redrive(store).await;
    }
}

async fn cancel_and_redrive(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(BINARY, folder.path()).with("CONCURRENCY", &8);
    let jobs = setup.open().await;
    let wanted = sized(600, 6_000);
    let work = (0..wanted).map(|n| Work { millis: 20 + n % 30 });
    let added = jobs.enqueue_all(work).await.unwrap();
    let ids: Vec<JobId> = added.into_iter().map(Enqueued::id).collect();
    let processes = [setup.start("one"), setup.start("two")];
    until("some have run", LIMIT, async || count(&jobs, State::Succeeded).await > 0).await;
    let random = SeededRandom::new(7);
    let drawn = || ids[usize::try_from(below(random.draw(), wanted)).unwrap()];
    let running = Filter { state: Some(State::Running), ..Filter::default() };
    let (mut cancelled, mut requested) = (0, 0);
    for _ in 0..sized(200, 2_000) {
        // Any of them, and some that are in the middle of their runs.
        let mut some: Vec<JobId> = (0..3).map(|_| drawn()).collect();
        let held = jobs.inspect().briefs(&running, 2).await.unwrap();
        some.extend(held.into_iter().map(|job| job.id));
        let answers = jobs.operate().cancel(&some).await.unwrap();
        cancelled += answers.iter().filter(|answer| **answer == Cancelled::Cancelled).count();
        requested += answers.iter().filter(|answer| **answer == Cancelled::Requested).count();
        for answer in jobs.operate().redrive(&some, Redrive::default()).await.unwrap() {
            assert!(!matches!(answer, Redriven::Missing | Redriven::TwinWaits(_)), "{answer:?}");
        }
    }
    until("all have ended", LIMIT, async || {
        jobs.operate().redrive(&ids, Redrive::default()).await.unwrap();
        count(&jobs, State::Succeeded).await == wanted
    })
    .await;
    stop(processes);
    assert!(cancelled > 0, "nothing was cancelled while it waited");
    assert!(requested > 0, "nothing was asked of what ran");
    let records = all(&jobs).await;
    assert_eq!(records.len(), ids.len());
    assert_one_run_each(&setup, &jobs, &records).await;
}

#[tokio::test]
async fn nothing_starts_from_a_queue_once_its_pause_is_known() {
    for store in STORES {
        pause_beside_claims(store).await;
    }
}

async fn pause_beside_claims(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(BINARY, folder.path()).with("CONCURRENCY", &4);
    let setup = setup.with("QUEUES", &format!("default,{BESIDE}"));
    let jobs = setup.open().await;
    let wanted = sized(300, 3_000);
    jobs.enqueue_all((0..wanted).map(|_| Work { millis: 10 })).await.unwrap();
    let processes = [setup.start("one"), setup.start("two")];
    let queue = jobs_runtime::QueueName::default();
    let of_queue = Filter { queue: Some(queue.to_string()), ..Filter::default() };
    for round in 1..=3 {
        until("some have run", LIMIT, async || {
            count(&jobs, State::Succeeded).await > wanted / 5 * (round - 1)
        })
        .await;
        jobs.operate().pause(&queue, "the test", "to see").await.unwrap();
        // Claims that began before the pause still land; then nothing runs.
        setup.until_written().await;
        until("nothing runs", LIMIT, async || count(&jobs, State::Running).await == 0).await;
        let claims = async || {
            let paused = jobs.inspect().jobs(&of_queue, u32::MAX).await.unwrap();
            paused.iter().map(|job| job.claim.0).sum::<i64>()
        };
        let before = claims().await;
        jobs.enqueue(Work { millis: 0 }).await.unwrap();
        both_claim_beside(&jobs).await;
        assert_eq!(claims().await, before, "round {round}: something was claimed");
        jobs.operate().resume(&queue).await.unwrap();
    }
    let all_of_them = u64::try_from(all(&jobs).await.len()).unwrap();
    until("all succeed", LIMIT, async || count(&jobs, State::Succeeded).await == all_of_them).await;
    stop(processes);
    assert_one_run_each(&setup, &jobs, &all(&jobs).await).await;
}

/// A queue that the workers work beside the one that is paused.
const BESIDE: &str = "beside";

/// Waits until each of two workers has claimed what is enqueued from now on, in claims that would have
/// taken from any other of their queues too.
async fn both_claim_beside(jobs: &Jobs) {
    let mut workers = BTreeSet::new();
    until("both workers claim", LIMIT, async || {
        // As many as have room in both: one that takes all that it can leaves some to the other.
        let work = (0..8).map(|_| Work { millis: 50 });
        let added = jobs.enqueue_all(work).queue(BESIDE).await.unwrap();
        for job in added {
            workers.extend(jobs.wait(job.id()).await.unwrap().worker);
        }
        workers.len() == 2
    })
    .await;
}

#[tokio::test]
async fn a_unique_key_holds_beside_rollbacks_and_claims() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Setup::over_sqlite(BINARY, folder.path());
    let jobs = sqlite.open().await;
    unique_beside_rollbacks::<sqlx::Sqlite>(&sqlite, &jobs).await;
    let folder = tempfile::tempdir().unwrap();
    let postgres = Setup::over_postgres(BINARY, folder.path());
    let jobs = postgres.open().await;
    unique_beside_rollbacks::<sqlx::Postgres>(&postgres, &jobs).await;
}

/// Every job that was answered for with a commit behind it is there and runs, and no other.
async fn unique_beside_rollbacks<DB>(setup: &Setup, jobs: &Jobs)
where
    DB: jobs_runtime::store::StoreDatabase,
    for<'t> sqlx::Transaction<'t, DB>: jobs_runtime::UserTransaction,
{
    let other = setup.open().await;
    let processes = [setup.start("one"), setup.start("two")];
    let rounds = sized(60, 600);
    let random = SeededRandom::new(11);
    let mut added = BTreeSet::new();
    for _ in 0..rounds {
        let mut tx = jobs.begin::<DB>().await.unwrap();
        let inside = jobs.enqueue(Work { millis: 1 }).unique_key("k").in_tx(&mut tx);
        let inside = inside.await.unwrap();
        let outside = async { other.enqueue(Work { millis: 1 }).unique_key("k").await.unwrap() };
        let is_kept = random.draw().is_multiple_of(2);
        let end = async {
            tokio::task::yield_now().await;
            if is_kept { tx.commit().await.unwrap() } else { tx.rollback().await.unwrap() }
        };
        let (outside, ()) = tokio::join!(outside, end);
        if is_kept && let Enqueued::Added(id) = inside {
            added.insert(id);
        }
        if let Enqueued::Added(id) = outside {
            added.insert(id);
        }
        let ready = Filter { state: Some(State::Ready), ..Filter::default() };
        let waiting = jobs.inspect().briefs(&ready, 10).await.unwrap();
        assert!(waiting.len() <= 1, "of one key wait {waiting:?}");
        let (told, told_inside) = (outside.id(), inside.id());
        assert!(jobs.job(told).await.unwrap().is_some(), "job {told} was told of and is not there");
        if is_kept {
            assert!(
                jobs.job(told_inside).await.unwrap().is_some(),
                "job {told_inside} is not there"
            );
        }
    }
    let wanted = u64::try_from(added.len()).unwrap();
    until("all succeed", LIMIT, async || count(jobs, State::Succeeded).await == wanted).await;
    stop(processes);
    let records = all(jobs).await;
    assert_eq!(
        records.iter().map(|job| job.id).collect::<Vec<_>>(),
        added.into_iter().collect::<Vec<_>>()
    );
    assert_one_run_each(setup, jobs, &records).await;
}

#[tokio::test]
async fn two_leaders_that_take_turns_by_dying_tick_each_second_once() {
    over_each_store(flapping_leaders).await;
}

async fn flapping_leaders(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(BINARY, folder.path()).with("LEASE_MS", &1_000);
    let secondly = setup.clone().with("SCHEDULE", &"* * * * * *");
    // One declares what the other does not know of.
    let other = secondly.clone().with("SCHEDULE_NAME", &"of the other");
    let jobs = setup.open().await;
    let ticks = async |name: &str| {
        let name = ScheduleName::new(name).unwrap();
        jobs.store().ticks(&name).await.unwrap()
    };
    let (mut one, two) = (secondly.start("one"), other.start("two"));
    until("both tick", LIMIT, async || {
        !ticks("test.work").await.is_empty() && !ticks("of the other").await.is_empty()
    })
    .await;
    let latest = async || ticks("of the other").await[0].at;
    for _ in 0..sized(3, 60) {
        // Someone leads: the first tick after the last kill may have been the dead one's.
        let seen = latest().await;
        until("it ticks twice", LIMIT, async || {
            latest().await.since(seen) >= Duration::from_secs(2)
        })
        .await;
        std::mem::replace(&mut one, secondly.start("one")).kill();
    }
    let seen = latest().await;
    until("the other's still tick", LIMIT, async || {
        latest().await.since(seen) > Duration::from_secs(2)
    })
    .await;
    stop([one, two]);
    let mut of_tick: BTreeMap<String, u32> = BTreeMap::new();
    for record in all(&jobs).await {
        let header = record.headers.expect("a job of a schedule says so");
        *of_tick.entry(header).or_default() += 1;
    }
    assert!(of_tick.values().all(|jobs| *jobs == 1), "{of_tick:?}");
    let ticks = ticks("of the other").await;
    let step = Duration::from_secs(1);
    assert!(ticks.windows(2).all(|pair| pair[0].at.since(pair[1].at) == step), "{ticks:?}");
}
