//! Jobs that kill their worker, among others that do not.

use jobs_runtime::store::WorkerEnd;
use tests::Die;

use super::*;

const LEASE: Duration = Duration::from_millis(1_500);
/// Four crashes with their waits, the wait of a suspect, its crash, and the leases in between.
const LONGEST: Duration = Duration::from_secs(100);

/// Starts a process again whenever it is gone, as a supervisor does.
struct Supervisor<'a> {
    setup: &'a Setup,
    processes: Vec<Process>,
    started: usize,
}

impl<'a> Supervisor<'a> {
    fn start(setup: &'a Setup, count: usize) -> Self {
        let processes = (0..count).map(|n| setup.start(&format!("worker-{n}"))).collect();
        Self { setup, processes, started: count }
    }

    fn restart(&mut self) {
        for (n, process) in self.processes.iter_mut().enumerate() {
            if !process.is_running() {
                *process = self.setup.start(&format!("worker-{n}"));
                self.started += 1;
            }
        }
    }

    async fn until(&mut self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        until(what, LONGEST, async || {
            self.restart();
            holds().await
        })
        .await;
    }

    fn stop(self) {
        for process in &self.processes {
            process.signal(Signal::TERM);
        }
        for process in self.processes {
            assert!(process.wait().success());
        }
    }
}

#[tokio::test]
async fn jobs_that_kill_their_worker_end_dead_and_every_innocent_succeeds() {
    over_each_store(crash_among_innocents).await;
}

async fn crash_among_innocents(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup =
        store(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis()).with("CONCURRENCY", &10);
    let jobs = setup.open().await;
    let crashers = jobs.enqueue_all((0..sized(1, 3)).map(|_| Die {})).await.unwrap();
    let crashers: Vec<JobId> = crashers.iter().map(|added| added.id()).collect();
    let innocents = (0..sized(50, 150)).map(|n| Work { millis: 500 + n % 10 * 200 });
    let innocents = jobs.enqueue_all(innocents).await.unwrap();
    let mut supervisor = Supervisor::start(&setup, sized(1, 3));
    supervisor
        .until("every crasher is dead and every innocent has succeeded", async || {
            let dead = count(&jobs, State::Dead).await;
            let succeeded = count(&jobs, State::Succeeded).await;
            (dead, succeeded) == (crashers.len() as u64, innocents.len() as u64)
        })
        .await;
    for id in &crashers {
        let record = jobs.job(*id).await.unwrap().unwrap();
        assert_eq!(record.error_class.as_deref(), Some("crash_loop"));
        assert_eq!((record.counters.failures, record.counters.crashes), (0, 5));
    }
    let runs = ledger::read(&setup.ledger);
    for innocent in &innocents {
        let record = jobs.job(innocent.id()).await.unwrap().unwrap();
        assert_eq!(record.counters.failures, 0);
        assert!(runs[&record.id.0][&record.claim.0].ended_us.is_some(), "{record:?}");
    }
    // Each death was a crash, for one or more of the crashers that ran in it, and there were no more.
    let deaths = supervisor.started - supervisor.processes.len();
    assert!((5..=5 * crashers.len()).contains(&deaths), "{deaths} deaths");
    let workers = jobs.inspect().workers().await.unwrap();
    let taken_back = workers.iter().filter(|worker| worker.end() == WorkerEnd::TakenBack);
    assert_eq!(taken_back.count(), deaths);
    println!("{} crashers, {deaths} deaths of {} processes", crashers.len(), supervisor.started);
    supervisor.stop();
}

#[tokio::test]
async fn a_cancel_holds_for_a_job_that_kills_its_worker() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("LEASE_MS", &LEASE.as_millis());
    let jobs = setup.open().await;
    let id = jobs.enqueue(Die {}).await.unwrap().id();
    let mut supervisor = Supervisor::start(&setup, 1);
    let read = async || jobs.job(id).await.unwrap().unwrap();
    supervisor.until("it has crashed twice", async || read().await.counters.crashes >= 2).await;
    jobs.operate().cancel(&[id]).await.unwrap();
    supervisor.until("it is cancelled", async || read().await.state == State::Cancelled).await;
    let claim = read().await.claim;
    let next = jobs.enqueue(Work { millis: 0 }).await.unwrap().id();
    supervisor
        .until("others run on", async || {
            jobs.job(next).await.unwrap().unwrap().state == State::Succeeded
        })
        .await;
    assert_eq!((read().await.state, read().await.claim), (State::Cancelled, claim));
    supervisor.stop();
}
