//! Suspects: jobs that are one crash away from the ceiling.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Author, Claim, Claimed, Head, Leaving, NewWorker};
use jobs_runtime::{
    BuildId, Counters, Ending, JobId, Ladder, Lease, Place, QueueName, Route, Run, SUSPECT_CRASHES,
    Settlement, State, WorkerName, transition,
};

use crate::support::{Act, Running, act, ended, is_running, open, until, worker};

/// How many handlers run in one worker, and what the suspects saw.
#[derive(Debug, Clone, Default)]
struct Company {
    now: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
    fleet: Fleet,
}

/// What the workers of a test share.
#[derive(Debug, Clone, Default)]
struct Fleet {
    suspects: Arc<AtomicUsize>,
    most_suspects: Arc<AtomicUsize>,
    /// How many innocents have ended.
    ended: Arc<AtomicUsize>,
}

/// What one suspect saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// How many innocents of all workers had ended when it started, and when it ended.
    ended: (usize, usize),
    /// How many handlers ran at most in its worker meanwhile.
    most: usize,
}

async fn count(job: Act, cx: JobContext<Company>) -> Result<(), JobError> {
    let Company { now, seen, fleet } = &cx.state;
    let mut most = now.fetch_add(1, Ordering::SeqCst) + 1;
    if job.how == "suspect" {
        let suspects = fleet.suspects.fetch_add(1, Ordering::SeqCst) + 1;
        fleet.most_suspects.fetch_max(suspects, Ordering::SeqCst);
        let before = fleet.ended.load(Ordering::SeqCst);
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            most = most.max(now.load(Ordering::SeqCst));
        }
        let ended = (before, fleet.ended.load(Ordering::SeqCst));
        seen.lock().unwrap().push(Seen { ended, most });
        fleet.suspects.fetch_sub(1, Ordering::SeqCst);
    } else {
        tokio::time::sleep(Duration::from_millis(20)).await;
        fleet.ended.fetch_add(1, Ordering::SeqCst);
    }
    now.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

/// A ready job whose runs have ended so often with the death of their worker.
pub(crate) async fn suspect(jobs: &Jobs) -> JobId {
    let id = jobs.enqueue(act("suspect")).await.unwrap().id();
    let new = NewWorker {
        name: WorkerName::new("gone").unwrap(),
        build: BuildId::default(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    let gone = jobs.store().register(&new).await.unwrap();
    let route = Route::derive("test.act", "1.0.0", None);
    let head = Head { queue: QueueName::default(), route, from: Place::FIRST, limit: 1 };
    let claim = Claim { worker: gone, heads: std::slice::from_ref(&head), limit: 1 };
    let Claimed::Jobs(claimed) = jobs.store().claim(claim).await.unwrap() else {
        panic!("the worker is open");
    };
    let unstarted = transition(&Run::from(&claimed[0]), &Ending::Unstarted, &Ladder::default(), 0);
    let counters = Counters { crashes: SUSPECT_CRASHES, ..Counters::default() };
    let by = Author { worker: Some(gone), build: BuildId::default() };
    jobs.store().settle(&by, &[Settlement { counters, ..unstarted }]).await.unwrap();
    let mut heartbeat = jobs.store().heartbeat().await.unwrap();
    heartbeat.close(gone, &by, &Leaving::default()).await.unwrap();
    id
}

fn counting(jobs: &Jobs, company: &Company) -> Worker<Company> {
    let handlers = Registry::new().handle(count).build().unwrap();
    worker(jobs, handlers, company.clone()).concurrency(4).lease(Duration::from_secs(1))
}

#[tokio::test]
async fn an_idle_worker_runs_a_suspect_at_once_and_nothing_beside_it() {
    for jobs in open().await {
        let company = Company::default();
        let id = suspect(&jobs).await;
        let running = Running::start(counting(&jobs, &company));
        until(&jobs, id, is_running).await;
        let others = jobs.enqueue_all((0..8).map(|_| act("innocent"))).await.unwrap();
        for other in others {
            assert_eq!(ended(&jobs, other.id()).await.state, State::Succeeded);
        }
        assert_eq!(jobs.job(id).await.unwrap().unwrap().state, State::Succeeded);
        assert_eq!(*company.seen.lock().unwrap(), [Seen { ended: (0, 0), most: 1 }]);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_worker_that_is_always_busy_makes_itself_clear_for_suspects() {
    runs_suspects_alone("default", |worker| worker).await;
}

#[tokio::test]
async fn a_worker_whose_queues_share_its_slots_makes_itself_clear_too() {
    let shares = |worker: Worker<Company>| {
        let worker = worker.queue("default").queue("other").queue("third");
        worker.queue_weight("other", 2)
    };
    runs_suspects_alone("other", shares).await;
}

/// Suspects beside a backlog of others, which are in this queue.
async fn runs_suspects_alone(queue: &str, set: impl Fn(Worker<Company>) -> Worker<Company>) {
    for jobs in open().await {
        let company = Company::default();
        let mut suspects = Vec::new();
        for _ in 0..2 {
            suspects.push(suspect(&jobs).await);
        }
        let total = 1_000;
        let innocents = (0..total).map(|_| act("innocent"));
        jobs.enqueue_all(innocents).queue(queue).await.unwrap();
        let running = Running::start(set(counting(&jobs, &company)));
        for id in suspects {
            let record = ended(&jobs, id).await;
            assert_eq!(record.state, State::Succeeded);
            assert_eq!(record.counters.crashes, SUSPECT_CRASHES, "a success changes no counter");
        }
        let seen = company.seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 2);
        for Seen { ended: (before, after), most } in seen {
            assert!(0 < before && after < total, "it started when {before} of {total} had ended");
            assert_eq!((before, most), (after, 1), "it ran alone");
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn of_two_workers_one_is_clear_at_a_time_and_the_other_goes_on() {
    for jobs in open().await {
        let fleet = Fleet::default();
        let company = || Company { fleet: fleet.clone(), ..Company::default() };
        let (one, two) = (company(), company());
        let mut suspects = Vec::new();
        for _ in 0..3 {
            suspects.push(suspect(&jobs).await);
        }
        jobs.enqueue_all((0..2_000).map(|_| act("innocent"))).await.unwrap();
        let running = [&one, &two].map(|company| Running::start(counting(&jobs, company)));
        for id in suspects {
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        assert_eq!(fleet.most_suspects.load(Ordering::SeqCst), 1, "never two at once");
        let of = |company: &Company| company.seen.lock().unwrap().clone();
        let seen = [of(&one), of(&two)].concat();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|seen| seen.most == 1), "each ran alone in its worker: {seen:?}");
        let went_on = seen.iter().any(|Seen { ended: (before, after), .. }| before < after);
        assert!(went_on, "the other worker went on beside them: {seen:?}");
        for running in running {
            running.stop().await;
        }
    }
}
