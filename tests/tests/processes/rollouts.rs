//! Two builds, compiled apart, over one store while workers are replaced one by one.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Clock, EventKind, JobRecord, State, SystemClock};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tests::process::{Process, Setup};
use tests::{ledger, sized, until};

use crate::{MakeSetup, STORES, all, count};

const OLD: &str = env!("CARGO_BIN_EXE_rollout-old");
const NEW: &str = env!("CARGO_BIN_EXE_rollout-new");
const WORKERS: usize = 3;

/// What the old build writes.
mod old {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "rollout.mail", version = "1.0.0")]
    pub(super) struct Mail {
        pub(super) millis: u64,
    }
}

/// What the new build writes.
mod new {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "rollout.mail", version = "2.0.0")]
    pub(super) struct Mail {
        pub(super) micros: u64,
        pub(super) note: String,
    }

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "rollout.digest", version = "1.0.0")]
    pub(super) struct Digest {
        pub(super) millis: u64,
    }
}

/// A fleet of workers, each of one of the builds.
struct Fleet {
    setup: Setup,
    workers: Vec<Process>,
    started: usize,
}

impl Fleet {
    /// Starts a worker, and returns when it has registered: it hears a signal from then on.
    async fn start(&mut self, binary: &str, jobs: &Jobs) {
        self.started += 1;
        let name = format!("worker-{}", self.started);
        let setup = Setup { binary: binary.into(), ..self.setup.clone() };
        self.workers.push(setup.start(&name));
        until("the worker has registered", Duration::from_secs(30), async || {
            jobs.inspect().workers().await.unwrap().iter().any(|worker| worker.name == name)
        })
        .await;
    }

    /// Replaces the workers one by one, and enqueues a share of jobs after each.
    async fn roll(&mut self, to: &str, jobs: &Jobs, share: u64) {
        for _ in 0..WORKERS {
            let goes = self.workers.remove(0);
            goes.signal(Signal::TERM);
            self.start(to, jobs).await;
            enqueue(jobs, share).await;
            assert!(goes.wait().success());
        }
    }
}

/// As many jobs of the old version, of the new one, and of the new kind.
async fn enqueue(jobs: &Jobs, share: u64) {
    let millis = |n: u64| 5 + n % 40;
    let old = (0..share).map(|n| old::Mail { millis: millis(n) });
    let new =
        (0..share).map(|n| new::Mail { micros: millis(n) * 1_000, note: format!("note {n}") });
    let digests = (0..share).map(|n| new::Digest { millis: millis(n) });
    jobs.enqueue_all(old).await.unwrap();
    jobs.enqueue_all(new).await.unwrap();
    jobs.enqueue_all(digests).await.unwrap();
}

#[tokio::test]
async fn two_builds_roll_forwards_and_back_and_each_job_succeeds_once() {
    for store in STORES {
        roll(store).await;
    }
}

async fn roll(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(OLD, folder.path());
    let jobs = setup.open().await;
    // Thirteen shares of three kinds of jobs each: 2,028 in all when it is full.
    let share = sized(8, 52);
    let mut fleet = Fleet { setup, workers: Vec::new(), started: 0 };
    for _ in 0..WORKERS {
        fleet.start(OLD, &jobs).await;
    }
    enqueue(&jobs, share).await;
    fleet.roll(NEW, &jobs, share).await;
    fleet.roll(OLD, &jobs, share).await;
    fleet.roll(NEW, &jobs, share).await;
    // All workers are new now: what comes now starts soon, whatever else waits.
    let from = SystemClock.now();
    enqueue(&jobs, share).await;
    enqueue(&jobs, share).await;
    enqueue(&jobs, share).await;
    let wanted = 13 * 3 * share;
    let limit = Duration::from_secs(sized(60, 300));
    until("all succeed", limit, async || count(&jobs, State::Succeeded).await == wanted).await;
    for worker in fleet.workers {
        worker.signal(Signal::TERM);
        assert!(worker.wait().success());
    }
    let runs = ledger::read(&fleet.setup.ledger);
    let mut delays = Vec::new();
    for record in all(&jobs).await {
        assert_succeeded_once(&jobs, &record, &runs[&record.id.0]).await;
        if record.enqueued_at >= from && record.version == "2.0.0" {
            let first = runs[&record.id.0].values().map(|run| run.started_us).min().unwrap();
            delays.push(first - record.enqueued_at.as_micros());
        }
    }
    delays.sort_unstable();
    let p99 = Duration::from_micros(delays[delays.len() * 99 / 100].max(0).unsigned_abs());
    assert!(p99 < Duration::from_secs(3), "a job of the new version started after {p99:?}");
}

/// It succeeded once, failed never, and nothing but the stops ended its runs: a claim is a start, an
/// interruption or a refusal.
async fn assert_succeeded_once(
    jobs: &Jobs,
    record: &JobRecord,
    runs: &std::collections::BTreeMap<i64, ledger::Told>,
) {
    let (id, counters) = (record.id, record.counters);
    assert_eq!((record.state, counters.failures), (State::Succeeded, 0), "job {id}");
    assert_eq!(counters.crashes, 0, "job {id}: nobody was killed");
    let ended = runs.values().filter(|run| run.ended_us.is_some()).count();
    let events = jobs.inspect().events(id).await.unwrap();
    let told = |kind| events.iter().filter(|event| event.kind == kind).count();
    // An interruption may come after the end of the handler: its settlement was then too late.
    assert!(ended <= 1 + told(EventKind::Interrupted), "job {id}: {runs:?}");
    let accepted = runs.get(&record.claim.0);
    assert!(accepted.is_some_and(|run| run.ended_us.is_some()), "job {id}: {runs:?}");
    let starts = u32::try_from(runs.len()).unwrap();
    assert!(starts <= 1 + counters.interruptions, "job {id}: {counters:?}, {runs:?}");
    let is_foreign_to_old = record.version == "2.0.0" || record.kind == "rollout.digest";
    assert!(is_foreign_to_old || counters.refusals == 0, "job {id} is for both builds");
}

#[tokio::test]
async fn old_workers_leave_what_is_new_to_the_new_ones() {
    for store in STORES {
        leave_to_the_new(store).await;
    }
}

/// An old worker meets 50 jobs of a new kind and 50 of a newer version.
async fn leave_to_the_new(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(OLD, folder.path());
    let jobs = setup.open().await;
    let old = setup.start("old");
    let mails = (0..50).map(|n| new::Mail { micros: 1_000, note: format!("note {n}") });
    jobs.enqueue_all(mails).await.unwrap();
    jobs.enqueue_all((0..50).map(|_| new::Digest { millis: 1 })).await.unwrap();
    // Long enough for the old worker to try each route more than once.
    let refusals = async || {
        let all = all(&jobs).await;
        all.iter().map(|job| job.counters.refusals).sum::<u32>()
    };
    let overlap = Duration::from_secs(sized(40, 120));
    until("both routes were tried twice", overlap, async || refusals().await >= 4).await;
    assert_eq!(count(&jobs, State::Succeeded).await, 0);
    let from = SystemClock.now();
    let new = Setup { binary: NEW.into(), ..setup.clone() }.start("new");
    until("all succeed", Duration::from_secs(20), async || {
        count(&jobs, State::Succeeded).await == 100
    })
    .await;
    let runs = ledger::read(&setup.ledger);
    for record in all(&jobs).await {
        assert_eq!((record.counters.failures, record.counters.interruptions), (0, 0));
        let first = runs[&record.id.0].values().map(|run| run.started_us).min().unwrap();
        let delay = Duration::from_micros((first - from.as_micros()).max(0).unsigned_abs());
        // The process starts and registers meanwhile.
        assert!(delay < jobs_runtime::RELEASE_DELAY + Duration::from_secs(2), "{delay:?}");
    }
    for process in [old, new] {
        process.signal(Signal::TERM);
        assert!(process.wait().success());
    }
}
