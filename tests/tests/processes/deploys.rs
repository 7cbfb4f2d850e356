//! Deploys: what a stop, a kill and a cancel in between make of the jobs.

use jobs_runtime::Counters;
use jobs_runtime::store::WorkerEnd;
use tests::{Frail, Once, Stay, Staying};

use super::*;

const SOON: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_millis(1_500);

async fn running(jobs: &Jobs, ids: &[JobId], setup: &Setup) {
    until("the handlers have started", SOON, async || {
        let told = ledger::read(&setup.ledger);
        for id in ids {
            let record = jobs.job(*id).await.unwrap().unwrap();
            let is_started = told.get(&id.0).is_some_and(|of| of.contains_key(&record.claim.0));
            if record.state != State::Running || !is_started {
                return false;
            }
        }
        true
    })
    .await;
}

#[tokio::test]
async fn what_a_drain_releases_starts_elsewhere_within_a_second() {
    over_each_store(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let grace = Duration::from_secs(sized(4, 10));
        let setup = store(BINARY, folder.path()).with("GRACE_MS", &grace.as_millis());
        let jobs = setup.open().await;
        let id = jobs.enqueue(Work { millis: 60_000 }).await.unwrap().id();
        let first = setup.start("first");
        running(&jobs, &[id], &setup).await;
        let second = setup.start("second");
        first.signal(Signal::TERM);
        assert!(ended(first).await.success());
        until_state(&jobs, id, State::Running, SOON).await;
        running(&jobs, &[id], &setup).await;
        let record = jobs.job(id).await.unwrap().unwrap();
        assert_eq!((record.counters.interruptions, record.counters.crashes), (1, 0));
        let released_us = jobs.inspect().events(id).await.unwrap()[0].at.as_micros();
        let started_us = ledger::read(&setup.ledger)[&id.0][&record.claim.0].started_us;
        assert!(started_us - released_us < 1_000_000, "{released_us} to {started_us}");
        second.kill();
    })
    .await;
}

#[tokio::test]
async fn deploys_with_deaf_handlers_make_no_job_a_suspect() {
    over_each_store(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let setup = store(BINARY, folder.path()).with("GRACE_MS", &3_000).with("LEASE_MS", &1_500);
        let jobs = setup.open().await;
        let stay = [Staying::Deaf, Staying::Spinning, Staying::Deaf].map(|how| Stay { how });
        let added = jobs.enqueue_all(stay).await.unwrap();
        let ids: Vec<JobId> = added.iter().map(|added| added.id()).collect();
        for deploy in 1..=3 {
            let process = setup.start(&format!("build {deploy}"));
            // Not the runs that the one before abandoned, which are still claimed for a moment.
            until("this build has taken all of them", SOON, async || {
                let workers = jobs.inspect().workers().await.unwrap();
                workers.first().is_some_and(|worker| worker.held == 3) && workers.len() == deploy
            })
            .await;
            running(&jobs, &ids, &setup).await;
            process.signal(Signal::TERM);
            assert_eq!(ended(process).await.code(), Some(jobs_runtime::EXIT_UNFINISHED));
        }
        for id in ids {
            let Counters { failures, crashes, .. } = jobs.job(id).await.unwrap().unwrap().counters;
            assert_eq!((failures, crashes), (0, 0), "job {id}");
        }
        let workers = jobs.inspect().workers().await.unwrap();
        assert!(workers.iter().all(|worker| worker.end() == WorkerEnd::Drained));
        let deploys = jobs.inspect().deploys().await.unwrap();
        assert_eq!((deploys[0].drained, deploys[0].abandoned), (3, 3));
        assert_eq!((deploys[0].interrupted, deploys[0].share_by_expiry()), (6, Some(0.0)));
    })
    .await;
}

/// Two runs that outlast the budget, the first of them cancelled while its worker drains or is dead.
async fn cancelled_in(store: MakeSetup, signal: Signal) -> [JobRecord; 2] {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(BINARY, folder.path()).with("GRACE_MS", &2_000).with("LEASE_MS", &1_500);
    let jobs = setup.open().await;
    let added = jobs.enqueue_all((0..2).map(|_| Work { millis: 4_000 })).await.unwrap();
    let ids: Vec<JobId> = added.iter().map(|added| added.id()).collect();
    let first = setup.start("first");
    running(&jobs, &ids, &setup).await;
    first.signal(signal);
    jobs.operate().cancel(&ids[..1]).await.unwrap();
    ended(first).await;
    let second = setup.start("second");
    let other = until_state(&jobs, ids[1], State::Succeeded, SOON).await;
    let cancelled = until_state(&jobs, ids[0], State::Cancelled, SOON).await;
    second.signal(Signal::TERM);
    assert!(ended(second).await.success());
    assert_eq!(ledger::read(&setup.ledger)[&ids[0].0].len(), 1, "a cancelled job starts no more");
    [cancelled, other]
}

#[tokio::test]
async fn a_stop_never_makes_worse_of_a_job_than_a_kill() {
    over_each_store(async |store| {
        let end_by = async |signal, crashes| {
            let [cancelled, other] = cancelled_in(store, signal).await;
            assert_eq!((cancelled.state, other.state), (State::Cancelled, State::Succeeded));
            let Counters { failures, interruptions, crashes: seen, .. } = other.counters;
            assert_eq!((failures, interruptions, seen), (0, 1, crashes), "{signal:?}");
        };
        tokio::join!(end_by(Signal::TERM, 0), end_by(Signal::KILL, 1));
    })
    .await;
}

#[tokio::test]
async fn a_kill_is_no_failure_unless_the_kind_runs_at_most_once() {
    over_each_store(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let setup = store(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
        let jobs = setup.open().await;
        let frail = jobs.enqueue_all((0..5).map(|_| Frail { millis: 1_000 })).await.unwrap();
        let once = jobs.enqueue_all((0..5).map(|_| Once { millis: 1_000 })).await.unwrap();
        let [frail, once] =
            [frail, once].map(|added| added.iter().map(|it| it.id()).collect::<Vec<JobId>>());
        let first = setup.start("first");
        running(&jobs, &[frail.clone(), once.clone()].concat(), &setup).await;
        first.kill();
        let second = setup.start("second");
        for id in frail {
            let record = until_state(&jobs, id, State::Succeeded, SOON).await;
            assert_eq!((record.counters.failures, record.counters.crashes), (0, 1));
        }
        for id in once {
            let record = until_state(&jobs, id, State::Dead, SOON).await;
            assert_eq!(record.error_class.as_deref(), Some("interrupted"));
            assert_eq!(ledger::read(&setup.ledger)[&id.0].len(), 1, "job {id} started once");
        }
        second.signal(Signal::TERM);
        assert!(ended(second).await.success());
    })
    .await;
}

#[tokio::test]
async fn a_start_never_takes_over_what_the_same_name_has_just_begun() {
    let starts = sized(12, 300);
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let setup = store(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
        let jobs = setup.open().await;
        for _ in 0..starts {
            let id = jobs.enqueue(Work { millis: 0 }).await.unwrap().id();
            let process = setup.start("always the same");
            let record = until_state(&jobs, id, State::Succeeded, SOON).await;
            assert_eq!((record.claim.0, record.counters), (1, Counters::default()));
            process.signal(Signal::TERM);
            assert!(ended(process).await.success());
        }
        let runs = ledger::read(&setup.ledger);
        assert_eq!(runs.len(), starts);
        assert!(runs.values().all(|of_job| of_job.len() == 1));
    }
}
