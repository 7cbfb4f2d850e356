//! Health and metrics, asked as a supervisor asks them: over HTTP, whatever handlers do.

use std::fmt::Debug;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::store::{Phase, WorkerRecord};
use jobs_runtime::{Handlers, Job, JobContext, JobError, Jobs, Registry, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};

/// An address that nobody listens on.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The status and the body of an answer; `None` when nobody answers.
fn ask(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: health\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

/// Waits until a path answers with this status, and answers the body.
async fn answered(address: SocketAddr, path: &str, status: u16) -> String {
    let asked = async {
        loop {
            let path = path.to_owned();
            let answer = tokio::task::spawn_blocking(move || ask(address, &path)).await.unwrap();
            match answer {
                Some((found, body)) if found == status => return body,
                Some(_) | None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), asked).await;
    found.unwrap_or_else(|_| panic!("{path} never answers {status}"))
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "health.wait", version = "1.0.0", queue = "slow")]
struct Wait;

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "health.count", version = "1.0.0", max_failures = 1)]
struct Count {
    fails: bool,
}

async fn wait(_: Wait, cx: JobContext<Arc<Notify>>) -> Result<(), JobError> {
    cx.state.notified().await;
    Ok(())
}

async fn count(job: Count, _: JobContext<Arc<Notify>>) -> Result<(), JobError> {
    if job.fails { Err(std::io::Error::other("no").into()) } else { Ok(()) }
}

fn handlers() -> Handlers<Arc<Notify>> {
    Registry::new().handle(wait).handle(count).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_ends_with_the_stop_and_liveness_with_the_worker() {
    let jobs = Jobs::open("memory:").await.unwrap();
    let (release, address) = (Arc::new(Notify::new()), free_address());
    let id = jobs.enqueue(Wait).await.unwrap().id();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(&jobs, handlers(), release.clone()).health(address.to_string());
    let running = worker.run_until(async { drop(stopped.await) });
    let asking = async {
        answered(address, "/readyz", 200).await;
        answered(address, "/livez", 200).await;
        while jobs.job(id).await.unwrap().unwrap().claimed_at.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.send(()).unwrap();
        assert_eq!(answered(address, "/readyz", 503).await, "draining\n");
        assert_eq!(answered(address, "/livez", 200).await, "draining\n");
        release.notify_one();
    };
    let (report, ()) = tokio::join!(running, asking);
    report.unwrap();
    assert_eq!(ask(address, "/livez"), None);
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "health.block", version = "1.0.0")]
struct Block;

/// Holds the only thread of the runtime.
async fn block(_: Block, cx: JobContext<Arc<Mutex<Receiver<()>>>>) -> Result<(), JobError> {
    // It also returns when the test is gone.
    let _ = cx.state.lock().unwrap().recv();
    Ok(())
}

#[test]
fn liveness_fails_while_the_runtime_stands_still() {
    let (release, released) = channel::<()>();
    let address = free_address();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let jobs = Jobs::open("memory:").await.unwrap();
            jobs.enqueue(Block).await.unwrap();
            let released = Arc::new(Mutex::new(released));
            let handlers = Registry::new().handle(block).build().unwrap();
            let worker = Worker::new(&jobs, handlers, released).lease(Duration::from_secs(1));
            let worker = worker.health(address.to_string());
            worker.run_until(async { drop(stopped.await) }).await.unwrap();
        });
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let said = answered(address, "/livez", 503).await;
        assert_eq!(said, "the runtime stands still\n");
        release.send(()).unwrap();
        answered(address, "/livez", 200).await;
    });
    stop.send(()).unwrap();
    worker.join().unwrap();
}

fn has_settled(text: &str) -> bool {
    let lines = ["succeeded\"} 2", "failed\"} 1"];
    lines.iter().all(|line| text.contains(&format!("jobs_settlements_total{{outcome=\"{line}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_of_runs_and_queues() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
    let jobs = Jobs::open(&url).await.unwrap();
    let address = free_address();
    let added = jobs.enqueue_all([false, false, true].map(|fails| Count { fails })).await.unwrap();
    jobs.enqueue_all([Wait, Wait]).await.unwrap();
    let ask = async {
        for job in added {
            jobs.wait(job.id()).await.unwrap();
        }
        // The row is written before the worker hears of it and counts.
        loop {
            let text = answered(address, "/metrics", 200).await;
            if has_settled(&text) {
                return text;
            }
        }
    };
    let (told, text) = oneshot::channel();
    let worker = Worker::new(&jobs, handlers(), Arc::new(Notify::new())).queue("default");
    let worker = worker.health(address.to_string());
    worker.run_until(async { drop(told.send(ask.await)) }).await.unwrap();
    let text = text.await.unwrap();
    for line in [
        "jobs_claims_total{kind=\"health.count\"} 3",
        "jobs_run_seconds_count{kind=\"health.count\"} 3",
        "jobs_wait_seconds_count{kind=\"health.count\"} 3",
        "jobs_settlements_total{outcome=\"succeeded\"} 2",
        "jobs_settlements_total{outcome=\"failed\"} 1",
        "jobs_dead_total 1",
        "jobs_count{state=\"dead\"} 1",
        "jobs_count{state=\"ready\"} 2",
        "jobs_queue_ready{queue=\"slow\"} 2",
        "jobs_queue_running{queue=\"slow\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    for name in ["jobs_claim_batch_size_bucket", "jobs_settle_batch_size_bucket"] {
        assert!(text.contains(name), "{name} is not in:\n{text}");
    }
    assert!(text.contains("jobs_queue_head_age_seconds{queue=\"slow\"}"), "{text}");
}

/// Jobs that have begun, and what ends one of them.
#[derive(Debug, Default)]
struct Gate {
    begun: AtomicUsize,
    release: Notify,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "health.stay", version = "1.0.0")]
struct Stay;

async fn stay(_: Stay, cx: JobContext<Arc<Gate>>) -> Result<(), JobError> {
    cx.state.begun.fetch_add(1, Ordering::SeqCst);
    cx.state.release.notified().await;
    Ok(())
}

/// A metric's value in what `/metrics` answers; 0 where it is absent.
fn value<T: FromStr<Err: Debug> + Default>(text: &str, name: &str) -> T {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or_else(T::default, |value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_of_drains() {
    let jobs = Jobs::open("memory:").await.unwrap();
    let address = free_address();
    // Answers for this process, whichever of its workers drains.
    let (stop, stopped) = oneshot::channel::<()>();
    let asked = Worker::new(&jobs, handlers(), Arc::default()).queue("none");
    let asked = asked.health(address.to_string()).run_until(async { drop(stopped.await) });
    let draining = async {
        let before = answered(address, "/metrics", 200).await;
        let (gate, asks) = (Arc::new(Gate::default()), Notify::new());
        let handlers = Registry::new().handle(stay).build().unwrap();
        let worker = Worker::new(&jobs, handlers, gate.clone());
        let worker = worker.lease(Duration::from_secs(1)).grace_period(Duration::from_secs(4));
        let running = worker.run_until(asks.notified());
        jobs.enqueue_all([Stay, Stay]).await.unwrap();
        let stopping = async {
            while gate.begun.load(Ordering::SeqCst) < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            asks.notify_one();
            let is_draining = |worker: &WorkerRecord| worker.phase == Phase::Quiet;
            while !jobs.inspect().workers().await.unwrap().iter().any(is_draining) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // One of the two ends in time.
            gate.release.notify_one();
            loop {
                let text = answered(address, "/metrics", 200).await;
                if value::<u64>(&text, "jobs_drained_total{outcome=\"settled\"}") > 0 {
                    return text;
                }
            }
        };
        let (report, within) = tokio::join!(running, stopping);
        let report = report.unwrap().in_drain;
        assert_eq!((report.settled, report.interrupted, report.released), (1, 1, 0));
        let grown = |text: &str, name: &str| value::<u64>(text, name) - value::<u64>(&before, name);
        assert_eq!(grown(&within, "jobs_drain_seconds_count"), 0, "the drain goes on");
        let after = answered(address, "/metrics", 200).await;
        for (outcome, wanted) in
            [("settled", 1), ("interrupted", 1), ("released", 0), ("abandoned", 0)]
        {
            let name = format!("jobs_drained_total{{outcome=\"{outcome}\"}}");
            assert!(after.contains(&name), "{name} is not in:\n{after}");
            assert_eq!(grown(&after, &name), wanted, "{name}");
        }
        assert_eq!(grown(&after, "jobs_drain_seconds_count"), 1);
        let sum = |text: &str| value::<f64>(text, "jobs_drain_seconds_sum");
        let took = sum(&after) - sum(&before);
        assert!((took - report.took.as_secs_f64()).abs() < 1e-6, "{took} is not {report:?}");
        stop.send(()).unwrap();
    };
    let (ended, ()) = tokio::join!(asked, draining);
    ended.unwrap();
}

#[test]
fn every_metric_is_documented() {
    let documented = include_str!("../../docs/metrics.md");
    for source in
        [include_str!("../src/telemetry.rs"), include_str!("../src/worker/health/recorder.rs")]
    {
        for name in source.split('"').filter(|text| text.starts_with("jobs_")) {
            assert!(
                documented.contains(&format!("| `{name}` |")),
                "{name} is not in docs/metrics.md"
            );
        }
    }
}

#[tokio::test]
async fn an_address_that_can_not_be_served_is_refused_before_anything_runs() {
    let jobs = Jobs::open("memory:").await.unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for address in [taken.as_str(), "9100", "localhost"] {
        let worker = Worker::new(&jobs, handlers(), Arc::new(Notify::new())).health(address);
        let error = worker.run_until(std::future::pending()).await.unwrap_err();
        assert!(error.to_string().contains(address), "{error}");
    }
    assert_eq!(jobs.inspect().workers().await.unwrap(), []);
}
