//! Jobs and helpers that the tests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{DrainReport, Handlers, JobId, JobRecord, State};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// What the test handlers share.
#[derive(Debug, Clone, Default)]
pub(crate) struct App {
    pub(crate) runs: Arc<AtomicUsize>,
}

impl App {
    pub(crate) fn count(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) fn ran(&self) {
        self.runs.fetch_add(1, Ordering::SeqCst);
    }
}

/// A job that does what its text says.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.act", version = "1.0.0", max_failures = 1)]
pub(crate) struct Act {
    pub(crate) how: String,
}

pub(crate) fn act(how: &str) -> Act {
    Act { how: how.to_owned() }
}

/// A client on a fresh store, whose files go when it is dropped.
pub(crate) struct Fresh {
    jobs: Jobs,
    _folder: tempfile::TempDir,
}

impl std::ops::Deref for Fresh {
    type Target = Jobs;

    fn deref(&self) -> &Jobs {
        &self.jobs
    }
}

/// One fresh client per embedded store.
pub(crate) async fn open() -> Vec<Fresh> {
    let mut all = Vec::new();
    for scheme in ["memory:", "sqlite://"] {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("{scheme}{}", folder.path().join("jobs.db").display());
        let jobs = Jobs::open(&url).await.expect("the store opens");
        all.push(Fresh { jobs, _folder: folder });
    }
    all
}

/// A worker that runs in the background until it is told to stop.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    worker: tokio::task::JoinHandle<Result<DrainReport, jobs_runtime::Error>>,
}

impl Running {
    #[expect(clippy::disallowed_methods, reason = "the task is joined by `stop`")]
    pub(crate) fn start<S: Clone + Send + Sync + 'static>(worker: Worker<S>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let worker = tokio::spawn(worker.run_until(async {
            drop(stopped.await);
        }));
        Self { stop, worker }
    }

    pub(crate) async fn stop(self) -> DrainReport {
        self.stop.send(()).expect("the worker still waits");
        self.worker.await.expect("the worker does not panic").expect("the worker runs")
    }
}

/// A worker with fast timers.
pub(crate) fn worker<S: Clone + Send + Sync + 'static>(
    jobs: &Jobs,
    handlers: Handlers<S>,
    state: S,
) -> Worker<S> {
    Worker::new(jobs, handlers, state)
        .poll_interval(Duration::from_millis(50))
        .lease(Duration::from_secs(3))
        .grace_period(Duration::from_secs(5))
}

/// Waits for a job's end, but not for ever.
pub(crate) async fn ended(jobs: &Jobs, id: JobId) -> JobRecord {
    tokio::time::timeout(Duration::from_secs(20), jobs.wait(id))
        .await
        .expect("the job ends in time")
        .expect("the job can be read")
}

/// Waits until a job's record is as wanted, but not for ever.
pub(crate) async fn until(
    jobs: &Jobs,
    id: JobId,
    is_wanted: impl Fn(&JobRecord) -> bool,
) -> JobRecord {
    let look = async {
        loop {
            let record = jobs.job(id).await.expect("the store answers").expect("the job exists");
            if is_wanted(&record) {
                return record;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), look).await.expect("the record gets there")
}

pub(crate) fn is_running(record: &JobRecord) -> bool {
    record.state == State::Running
}
