//! A worker that is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::Phase;
use jobs_runtime::{Counters, DrainReport, Enqueued, Interrupted, JobId, State};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::lines::Lines;
use crate::support::{
    Act, App, Running, act, close_behind, ended, fresh, is_running, open, until, worker,
};

async fn do_as_told(job: Act, cx: JobContext<App>) -> Result<Outcome, JobError> {
    cx.state.ran();
    match job.how.as_str() {
        "short" => tokio::time::sleep(Duration::from_millis(300)).await,
        "cooperative" => {
            cx.stopping().await;
            cx.check().await?;
        }
        "fails when stopped" => {
            cx.stopping().await;
            return Err(JobError::new("the connection was closed under me"));
        }
        "permanent when stopped" => {
            cx.stopping().await;
            return Err(JobError::new("no such customer").permanent());
        }
        _ => std::future::pending().await,
    }
    Ok(Outcome::Done)
}

/// Runs one job until its handler has started, stops the worker, and reads the job.
async fn stopped(jobs: &Jobs, how: &str) -> (jobs_runtime::JobRecord, jobs_runtime::DrainReport) {
    let handlers = Registry::new().handle(do_as_told).build().unwrap();
    let app = App::default();
    let worker = worker(jobs, handlers, app.clone()).grace_period(Duration::from_secs(2));
    let running = Running::start(worker);
    let id = jobs.enqueue(act(how)).await.unwrap().id();
    // The row says `running` before the handler starts, and a stop in between gives it back unrun.
    until(jobs, id, |_| app.count() == 1).await;
    let report = running.stop().await;
    (jobs.job(id).await.unwrap().unwrap(), report)
}

/// What a handler waits for that ends when the test says so.
static GATE: Notify = Notify::const_new();

async fn wait_at_the_gate(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    GATE.notified().await;
    Ok(())
}

/// The phase of the only worker, as everyone sees it.
async fn phase(jobs: &Jobs) -> Phase {
    jobs.inspect().workers().await.unwrap()[0].phase
}

#[tokio::test]
async fn a_worker_that_drains_says_so_at_once() {
    for jobs in open().await {
        let handlers = Registry::new().handle(wait_at_the_gate).build().unwrap();
        let app = App::default();
        let lease = Duration::from_mins(5);
        let running = Running::start(worker(&jobs, handlers, app.clone()).lease(lease));
        let id = jobs.enqueue(act("waits")).await.unwrap().id();
        until(&jobs, id, |_| app.count() == 1).await;
        let seen = async {
            while phase(&jobs).await != Phase::Quiet {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            GATE.notify_one();
        };
        let both = async { tokio::join!(running.stop(), seen) };
        let both = tokio::time::timeout(Duration::from_secs(9), both).await;
        let (report, ()) = both.expect("its phase is seen while it drains");
        assert_eq!((report.settled, report.interrupted), (1, 0));
    }
}

/// Ends a little after everyone can see that handlers are asked to return.
async fn outlast_the_phase(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    while phase(cx.jobs()).await != Phase::Interrupting {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok(())
}

/// Two audits in a row abort a handler whose job was cancelled, and are a heartbeat apart, however often a
/// drain publishes its phase.
#[tokio::test]
async fn a_phase_that_is_published_cuts_no_cancelled_handler_short() {
    let jobs = fresh("memory:", Jobs::builder()).await;
    let handlers = Registry::new().handle(outlast_the_phase).build().unwrap();
    let app = App::default();
    let lease = Duration::from_mins(5);
    let running = Running::start(worker(&jobs, handlers, app.clone()).lease(lease));
    let id = jobs.enqueue(act("outlasts")).await.unwrap().id();
    until(&jobs, id, |_| app.count() == 1).await;
    jobs.operate().cancel(&[id]).await.unwrap();
    assert_eq!(running.stop().await.settled, 1);
    assert_eq!(jobs.job(id).await.unwrap().unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn a_handler_that_ends_in_time_is_settled() {
    for jobs in open().await {
        let (record, report) = stopped(&jobs, "short").await;
        assert_eq!(record.state, State::Succeeded);
        assert_eq!((report.settled, report.interrupted, report.abandoned), (1, 0, 0));
    }
}

#[tokio::test]
async fn a_handler_that_is_stopped_is_given_back_as_an_interruption() {
    for jobs in open().await {
        for how in ["cooperative", "fails when stopped", "deaf"] {
            let (record, report) = stopped(&jobs, how).await;
            assert_eq!(record.state, State::Ready, "{how}");
            assert_eq!((record.counters.failures, record.counters.interruptions), (0, 1), "{how}");
            assert_eq!((report.interrupted, report.abandoned), (1, 0), "{how}");
            assert!(report.took < Duration::from_secs(2), "{how}: {:?}", report.took);
            jobs.operate().cancel(&[record.id]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_a_drain_did_is_kept_with_its_worker_and_added_up_by_build() {
    for jobs in open().await {
        let (record, report) = stopped(&jobs, "cooperative").await;
        jobs.operate().cancel(&[record.id]).await.unwrap();
        let (_, short) = stopped(&jobs, "short").await;
        let workers = jobs.inspect().workers().await.unwrap();
        let kept: Vec<_> = workers.iter().map(|worker| worker.drained.unwrap()).collect();
        assert_eq!((kept[1].settled, kept[1].interrupted), (0, 1));
        assert_eq!((kept[0].settled, kept[0].interrupted), (1, 0));
        for (kept, report) in kept.iter().zip([short, report]) {
            assert_eq!(kept.settled, report.in_drain.settled);
            assert!(Duration::ZERO < kept.took && kept.took <= report.took, "{kept:?}");
        }
        let deploys = jobs.inspect().deploys().await.unwrap();
        assert_eq!(deploys.len(), 1);
        let deploy = &deploys[0];
        assert_eq!((deploy.workers, deploy.drained, deploy.taken_back), (2, 2, 0));
        assert_eq!((deploy.settled, deploy.interrupted, deploy.reclaimed), (1, 1, 0));
        assert_eq!(deploy.share_by_expiry(), Some(0.0));
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At(i64);

#[derive(Debug, serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "test.block", version = "1.0.0", checkpoint = At)]
struct Block {}

/// How the first run is let go, and what it says then.
#[derive(Clone)]
struct Hold {
    begun: Arc<AtomicBool>,
    until: Arc<Mutex<Receiver<()>>>,
    says: Sender<String>,
    later: TaskTracker,
}

async fn block(_: Block, cx: JobContext<Hold, At>) -> Result<(), JobError> {
    if cx.claim().0 > 1 {
        return cx.checkpoint(&At(cx.claim().0)).await;
    }
    cx.state.begun.store(true, Ordering::SeqCst);
    // Holds its thread; it also returns when the test is gone.
    let _ = cx.state.until.lock().unwrap().recv();
    // Tracked elsewhere, since this run is aborted as soon as it yields.
    let later = cx.state.later.clone();
    later.spawn(async move {
        let answer = cx.checkpoint(&At(1)).await;
        cx.state.says.send(answer.unwrap_err().to_string()).unwrap();
    });
    Ok(())
}

#[tokio::test]
async fn a_handler_that_blocks_for_ever_is_left_behind_and_can_write_no_more() {
    let all = open().await;
    futures_util::future::join_all(all.iter().map(|jobs| left_behind(jobs))).await;
}

async fn left_behind(jobs: &Jobs) {
    let (release, until_released) = channel();
    let (says, said) = channel();
    let until_released = Arc::new(Mutex::new(until_released));
    let (begun, later) = (Arc::default(), TaskTracker::new());
    let hold = Hold { begun, until: until_released, says, later };
    let handlers = || Registry::new().handle(block).build().unwrap();
    let worker = || worker(jobs, handlers(), hold.clone()).lease(Duration::from_secs(1));
    let first = worker().lease(Duration::from_mins(1));
    let first = first.grace_period(Duration::from_secs(2));
    // On a runtime of its own, of which it holds a thread for ever.
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let first = std::thread::spawn(move || {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        let report = runtime.block_on(first.run_until(async { drop(stopped.await) }));
        (report.unwrap(), runtime)
    });
    let id = jobs.enqueue(Block {}).await.unwrap().id();
    until(jobs, id, |_| hold.begun.load(Ordering::SeqCst)).await;
    stop.send(()).unwrap();
    let first = tokio::task::spawn_blocking(|| first.join().unwrap());
    let (report, runtime) = first.await.unwrap();
    assert_eq!((report.abandoned, report.in_drain.abandoned), (1, 1));
    assert!(report.took < Duration::from_secs(2), "{:?}", report.took);
    assert_eq!(jobs.job(id).await.unwrap().unwrap().state, State::Running);
    // Its lease ends with the grace period, not after the minute that it was taken for.
    let second = Running::start(worker());
    let record = ended(jobs, id).await;
    assert_eq!(record.state, State::Succeeded);
    let Counters { failures, interruptions, crashes, .. } = record.counters;
    assert_eq!((failures, interruptions, crashes), (0, 0, 0), "its checkpoint moved");
    let events = jobs.inspect().events(id).await.unwrap();
    assert_eq!(events[0].class, "given_up");
    release.send(()).unwrap();
    let late = tokio::task::spawn_blocking(move || said.recv().unwrap()).await.unwrap();
    assert!(late.contains("lost its claim"), "{late}");
    second.stop().await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!(record.state, State::Succeeded);
    assert_eq!(record.checkpoint.unwrap().text, record.claim.0.to_string());
    runtime.shutdown_background();
}

/// Which runs of which jobs were begun, and what holds the first.
#[derive(Clone)]
struct Stuck {
    begun: Arc<Mutex<Vec<(JobId, i64)>>>,
    until: Arc<Mutex<Receiver<()>>>,
}

/// A first run holds its thread until it is let go, or the test is gone.
async fn hold_a_thread(_: Act, cx: JobContext<Stuck>) -> Result<(), JobError> {
    cx.state.begun.lock().unwrap().push((cx.id(), cx.claim().0));
    if cx.claim().0 == 1 {
        let _ = cx.state.until.lock().unwrap().recv();
    }
    Ok(())
}

/// A worker on a runtime of its own with a single thread, which the first of two jobs holds. Its store is in
/// memory: that thread would serve the connections of a client too.
struct Behind {
    stuck: Stuck,
    release: Sender<()>,
    ids: [JobId; 2],
    stop: tokio::sync::oneshot::Sender<()>,
    thread: std::thread::JoinHandle<(DrainReport, tokio::runtime::Runtime)>,
}

impl Behind {
    async fn start(jobs: &Jobs) -> Self {
        let (release, until_released) = channel();
        let until_released = Arc::new(Mutex::new(until_released));
        let stuck = Stuck { begun: Arc::default(), until: until_released };
        let ids = [jobs.enqueue(act("")).await.unwrap(), jobs.enqueue(act("")).await.unwrap()];
        let handlers = Registry::new().handle(hold_a_thread).build().unwrap();
        let worker = worker(jobs, handlers, stuck.clone()).grace_period(Duration::from_secs(2));
        let worker = worker.lease(Duration::from_secs(2));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.unwrap();
            let report = runtime.block_on(worker.run_until(async { drop(stopped.await) }));
            (report.unwrap(), runtime)
        });
        let ids = ids.map(Enqueued::id);
        until(jobs, ids[1], |record| is_running(record) && !stuck.begun.lock().unwrap().is_empty())
            .await;
        Self { stuck, release, ids, stop, thread }
    }

    fn begun(&self) -> Vec<(JobId, i64)> {
        self.stuck.begun.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn what_waits_behind_a_blocked_thread_to_the_end_of_a_drain_is_released_unstarted() {
    let jobs = fresh("memory:", Jobs::builder()).await;
    let behind = Behind::start(&jobs).await;
    let (begun, [holds, waits]) = (behind.stuck.begun.clone(), behind.ids);
    behind.stop.send(()).unwrap();
    // The drain has a thread of its own.
    let record = until(&jobs, waits, |record| record.state != State::Running).await;
    assert_eq!((record.state, record.counters), (State::Ready, Counters::default()));
    assert_eq!(jobs.inspect().events(waits).await.unwrap(), []);
    assert_eq!(jobs.job(holds).await.unwrap().unwrap().state, State::Running);
    behind.release.send(()).unwrap();
    let left = tokio::task::spawn_blocking(|| behind.thread.join().unwrap());
    let (report, runtime) = left.await.unwrap();
    assert_eq!((report.abandoned, report.released, report.interrupted), (1, 1, 0));
    let over = move || runtime.shutdown_timeout(Duration::from_secs(10));
    tokio::task::spawn_blocking(over).await.unwrap();
    assert_eq!(*begun.lock().unwrap(), [(holds, 1)], "it is not begun any more");
}

#[tokio::test]
async fn what_waits_behind_a_blocked_thread_while_its_lease_is_lost_is_not_begun() {
    let jobs = fresh("memory:", Jobs::builder()).await;
    let behind = Behind::start(&jobs).await;
    let [holds, waits] = behind.ids;
    let workers = jobs.inspect().workers().await.unwrap();
    let lines = Lines::of_all_threads();
    let told = format!("the lease was taken back; registering anew worker={} ", workers[0].id.0);
    let before = lines.of(&told);
    close_behind(&jobs, workers[0].id).await;
    while lines.of(&told) == before {
        tokio::task::yield_now().await;
    }
    behind.release.send(()).unwrap();
    for id in behind.ids {
        assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
    }
    let begun = behind.begun();
    let of = |job| {
        let runs = begun.iter().filter(|(begun, _)| *begun == job);
        runs.map(|(_, claim)| *claim).collect::<Vec<_>>()
    };
    assert_eq!(of(holds), [1, 3]);
    assert_eq!(of(waits), [3], "not under the claim that was taken back");
    behind.stop.send(()).unwrap();
    let left = tokio::task::spawn_blocking(|| behind.thread.join().unwrap());
    left.await.unwrap().1.shutdown_background();
}

#[tokio::test]
async fn a_permanent_error_after_the_stop_is_a_dead_letter() {
    for jobs in open().await {
        let (record, _) = stopped(&jobs, "permanent when stopped").await;
        assert_eq!((record.state, record.counters.failures), (State::Dead, 1));
    }
}

#[tokio::test]
async fn an_idle_worker_stops_at_once_and_closes_its_lease() {
    for jobs in open().await {
        let handlers = Registry::new().handle(do_as_told).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        let report = running.stop().await;
        assert!(report.took < Duration::from_secs(1), "{:?}", report.took);
        let workers = jobs.inspect().workers().await.unwrap();
        assert!(workers.iter().all(|worker| worker.ended_at.is_some() && !worker.is_taken_back));
    }
}

#[tokio::test]
async fn a_cancelled_run_ends_as_cancelled() {
    async fn until_cancelled(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
        loop {
            cx.check().await?;
            tokio::task::yield_now().await;
        }
    }

    for jobs in open().await {
        let handlers = Registry::new().handle(until_cancelled).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        let id = jobs.enqueue(act("")).await.unwrap().id();
        until(&jobs, id, is_running).await;
        jobs.operate().cancel(&[id]).await.unwrap();
        let record = ended(&jobs, id).await;
        assert_eq!((record.state, record.counters.failures), (State::Cancelled, 0));
        running.stop().await;
    }
}

#[tokio::test]
async fn a_deaf_handler_is_cancelled_by_the_audits() {
    for jobs in open().await {
        let handlers = Registry::new().handle(do_as_told).build().unwrap();
        let worker = worker(&jobs, handlers, App::default()).lease(Duration::from_secs(1));
        let running = Running::start(worker);
        let id = jobs.enqueue(act("deaf")).await.unwrap().id();
        until(&jobs, id, is_running).await;
        jobs.operate().cancel(&[id]).await.unwrap();
        assert_eq!(ended(&jobs, id).await.state, State::Cancelled);
        running.stop().await;
    }
}

#[test]
fn an_interruption_says_what_it_is() {
    let texts = [Interrupted::Stopping, Interrupted::Cancelled, Interrupted::LeaseLost];
    let texts = texts.map(|interrupted| interrupted.to_string());
    assert_eq!(
        texts,
        ["the worker is stopping", "the job was cancelled", "the run lost its claim on the job"]
    );
}

#[tokio::test]
async fn a_run_that_times_out_after_the_stop_is_an_interruption() {
    #[derive(Debug, serde::Serialize, serde::Deserialize, Job)]
    #[job(kind = "test.slow", version = "1.0.0", timeout = "1700ms", max_failures = 1)]
    struct Slow {}

    async fn hang(_: Slow, cx: JobContext<App>) -> Result<(), JobError> {
        cx.state.ran();
        std::future::pending().await
    }

    for jobs in open().await {
        let handlers = Registry::new().handle(hang).build().unwrap();
        let app = App::default();
        // Asked to return after 1.6 s of the 2 s, and timed out before it is aborted at 1.83 s.
        let worker = worker(&jobs, handlers, app.clone()).grace_period(Duration::from_secs(2));
        let running = Running::start(worker);
        let id = jobs.enqueue(Slow {}).await.unwrap().id();
        until(&jobs, id, |_| app.count() == 1).await;
        running.stop().await;
        let record = jobs.job(id).await.unwrap().unwrap();
        assert_eq!((record.counters.failures, record.counters.interruptions), (0, 1));
    }
}

#[tokio::test]
async fn a_state_that_panics_when_it_is_cloned_costs_one_failure_and_no_slot() {
    #[derive(Debug)]
    struct Fragile(std::sync::Arc<std::sync::atomic::AtomicBool>);

    impl Clone for Fragile {
        fn clone(&self) -> Self {
            assert!(!self.0.swap(false, std::sync::atomic::Ordering::SeqCst), "not now");
            Self(self.0.clone())
        }
    }

    async fn work(_: Act, _: JobContext<Fragile>) -> Result<(), JobError> {
        Ok(())
    }

    for jobs in open().await {
        let breaks = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let handlers = Registry::new().handle(work).build().unwrap();
        let worker = worker(&jobs, handlers, Fragile(breaks)).concurrency(1);
        let running = Running::start(worker);
        let first = jobs.enqueue(act("")).await.unwrap().id();
        assert_eq!(ended(&jobs, first).await.error_class.as_deref(), Some("panic"));
        let second = jobs.enqueue(act("")).await.unwrap().id();
        assert_eq!(ended(&jobs, second).await.state, State::Succeeded);
        running.stop().await;
    }
}
