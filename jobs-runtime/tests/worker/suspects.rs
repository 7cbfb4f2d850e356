//! Suspects: jobs that are one crash away from the ceiling.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Author, Claim, Claimed, Head, Leaving, NewWorker};
use jobs_runtime::{
    BuildId, Counters, Ending, JobId, Ladder, Lease, QueueName, Route, Run, SUSPECT_CRASHES,
    Settlement, State, WorkerName, transition,
};

use crate::support::{Act, Running, act, ended, is_running, open, until, worker};

/// How many handlers run, and what the suspects saw.
#[derive(Debug, Clone, Default)]
struct Company {
    now: Arc<AtomicUsize>,
    /// How many innocents had ended when a suspect started, and how many handlers ran at most while
    /// it did.
    seen: Arc<Mutex<Vec<(usize, usize)>>>,
    ended: Arc<AtomicUsize>,
}

async fn count(job: Act, cx: JobContext<Company>) -> Result<(), JobError> {
    let company = &cx.state;
    let mut most = company.now.fetch_add(1, Ordering::SeqCst) + 1;
    if job.how == "suspect" {
        let before = company.ended.load(Ordering::SeqCst);
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            most = most.max(company.now.load(Ordering::SeqCst));
        }
        company.seen.lock().unwrap().push((before, most));
    } else {
        tokio::time::sleep(Duration::from_millis(20)).await;
        company.ended.fetch_add(1, Ordering::SeqCst);
    }
    company.now.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

/// A ready job whose runs have ended so often with the death of their worker.
async fn suspect(jobs: &Jobs) -> JobId {
    let id = jobs.enqueue(act("suspect")).await.unwrap().id();
    let new = NewWorker {
        name: WorkerName::new("gone").unwrap(),
        build: BuildId::default(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    let gone = jobs.store().register(&new).await.unwrap();
    let route = Route::derive("test.act", "1.0.0", None);
    let head = Head { queue: QueueName::default(), route, after: None, limit: 1 };
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
        assert_eq!(*company.seen.lock().unwrap(), [(0, 1)]);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_worker_that_is_always_busy_makes_itself_clear_for_suspects() {
    for jobs in open().await {
        let company = Company::default();
        let mut suspects = Vec::new();
        for _ in 0..2 {
            suspects.push(suspect(&jobs).await);
        }
        let total = 1_000;
        jobs.enqueue_all((0..total).map(|_| act("innocent"))).await.unwrap();
        let running = Running::start(counting(&jobs, &company));
        for id in suspects {
            let record = ended(&jobs, id).await;
            assert_eq!(record.state, State::Succeeded);
            assert_eq!(record.counters.crashes, SUSPECT_CRASHES, "a success changes no counter");
        }
        let seen = company.seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 2);
        for (ended, most) in seen {
            assert!(0 < ended && ended < total, "it started when {ended} of {total} had ended");
            assert_eq!(most, 1, "it ran alone");
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn of_two_workers_one_is_clear_at_a_time() {
    for jobs in open().await {
        let (one, two) = (Company::default(), Company::default());
        let mut suspects = Vec::new();
        for _ in 0..3 {
            suspects.push(suspect(&jobs).await);
        }
        let running = [&one, &two].map(|company| Running::start(counting(&jobs, company)));
        for id in suspects {
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
            assert!(one.now.load(Ordering::SeqCst) + two.now.load(Ordering::SeqCst) <= 1);
        }
        for company in [one, two] {
            let seen = company.seen.lock().unwrap().clone();
            assert!(seen.iter().all(|(_, most)| *most == 1), "{seen:?}");
        }
        for running in running {
            running.stop().await;
        }
    }
}
