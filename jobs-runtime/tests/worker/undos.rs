//! What the undo of an interrupted run sees, and what it leaves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{JobRecord, State};
use serde::{Deserialize, Serialize};

use crate::support::{Running, ended, open, open_sqlite, until, worker};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At(u32);

/// What the handlers tell, in order.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn tell(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Takes two steps outside, and stays there.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.walk", version = "1.0.0", checkpoint = At, on_stop = "undo")]
struct Walk {
    /// Whether the undo says how far it came.
    undo_saves: bool,
}

/// The same, where the second checkpoint comes too soon to be written.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.stroll", version = "1.0.0", checkpoint = At, on_stop = "undo")]
#[job(checkpoint_every = "1h")]
struct Stroll {
    undo_saves: bool,
}

async fn walk(mut cx: JobContext<Told, At>) -> Result<Outcome, JobError> {
    if let at @ At(1..) = cx.resume_or(At(0)) {
        cx.state.tell(format!("goes on at {}", at.0));
        return Ok(Outcome::Done);
    }
    if cx.claim().0 > 1 {
        cx.state.tell("begins anew");
        return Ok(Outcome::Done);
    }
    for at in 1..=2 {
        cx.checkpoint(&At(at)).await?;
    }
    cx.state.tell("walked");
    std::future::pending().await
}

async fn walk_back(mut cx: JobContext<Told, At>, saves: bool) -> Result<(), JobError> {
    let at = cx.resume_or(At(0));
    cx.state.tell(format!("undoes {}", at.0));
    if saves {
        for back in (0..at.0).rev() {
            cx.checkpoint(&At(back)).await?;
        }
    }
    Ok(())
}

impl Handler<Told> for Walk {
    async fn run(self, cx: JobContext<Told, At>) -> Result<Outcome, JobError> {
        walk(cx).await
    }

    async fn on_interrupt(self, cx: JobContext<Told, At>) -> Result<(), JobError> {
        walk_back(cx, self.undo_saves).await
    }
}

impl Handler<Told> for Stroll {
    async fn run(self, cx: JobContext<Told, At>) -> Result<Outcome, JobError> {
        walk(cx).await
    }

    async fn on_interrupt(self, cx: JobContext<Told, At>) -> Result<(), JobError> {
        walk_back(cx, self.undo_saves).await
    }
}

/// A handler that stays is aborted before its undo begins, and a busy machine may need a while for that.
fn walking(jobs: &Jobs, told: &Told) -> Worker<Told> {
    let handlers = Registry::new().job::<Walk>().job::<Stroll>().build().unwrap();
    worker(jobs, handlers, told.clone()).grace_period(Duration::from_secs(6))
}

/// Interrupts the run of a job by a drain, lets another worker run it, and answers what was told.
async fn interrupted<J: Job>(jobs: &Jobs, job: J) -> Vec<String> {
    let told = Told::default();
    let id = jobs.enqueue(job).await.unwrap().id();
    let first = Running::start(walking(jobs, &told));
    until(jobs, id, |_| told.all() == ["walked"]).await;
    first.stop().await;
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.counters.failures), (State::Ready, 0));
    let second = Running::start(walking(jobs, &told));
    assert_eq!(ended(jobs, id).await.state, State::Succeeded);
    second.stop().await;
    told.all()
}

/// Interrupts both kinds of walks over each store, at the same time: most of it is waiting.
async fn over_each_store(undo_saves: bool, wanted: [&str; 3]) {
    let stores = open().await;
    let each = stores.iter().map(async |jobs| {
        assert_eq!(interrupted(jobs, Walk { undo_saves }).await, wanted);
        // The run's last checkpoint, and the undo's if there is one, were put off.
        assert_eq!(interrupted(jobs, Stroll { undo_saves }).await, wanted, "put off");
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn an_undo_sees_the_last_checkpoint_that_its_run_saved() {
    over_each_store(false, ["walked", "undoes 2", "goes on at 2"]).await;
}

#[tokio::test]
async fn the_next_run_begins_where_the_undo_came_to() {
    over_each_store(true, ["walked", "undoes 2", "begins anew"]).await;
}

/// Writes its success in a transaction, and stays.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.sell", version = "1.0.0", on_stop = "undo")]
struct Sell {
    commits: bool,
}

impl Handler<Told> for Sell {
    async fn run(self, cx: JobContext<Told>) -> Result<Outcome, JobError> {
        let mut tx = cx.begin::<sqlx::Sqlite>().await?;
        cx.done_in(&mut tx).await?;
        if self.commits {
            tx.commit().await?;
        } else {
            tx.rollback().await?;
        }
        cx.state.tell("sold");
        std::future::pending().await
    }

    async fn on_interrupt(self, cx: JobContext<Told>) -> Result<(), JobError> {
        cx.state.tell("undone");
        Ok(())
    }
}

#[tokio::test]
async fn a_run_whose_success_is_committed_is_not_undone() {
    let jobs = open_sqlite().await;
    let stopped = async |commits: bool| -> (JobRecord, Vec<String>) {
        let told = Told::default();
        let handlers = Registry::new().job::<Sell>().build().unwrap();
        let worker = worker(&jobs, handlers, told.clone()).grace_period(Duration::from_secs(4));
        let running = Running::start(worker);
        let id = jobs.enqueue(Sell { commits }).await.unwrap().id();
        until(&jobs, id, |_| told.all() == ["sold"]).await;
        running.stop().await;
        let record = jobs.job(id).await.unwrap().unwrap();
        (record, told.all())
    };
    let (record, told) = stopped(true).await;
    assert_eq!((record.state, told), (State::Succeeded, vec!["sold".to_owned()]));
    let (record, told) = stopped(false).await;
    assert_eq!(record.state, State::Ready);
    assert_eq!(told, ["sold", "undone"], "it was rolled back");
}

/// What it needs is away, and its undo hangs with something in its hands that panics when dropped.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.fragile", version = "1.0.0", on_stop = "undo", timeout = "300ms")]
struct Fragile {}

struct Vase;

impl Drop for Vase {
    fn drop(&mut self) {
        panic!("the vase breaks");
    }
}

impl Handler<Told> for Fragile {
    async fn run(self, _: JobContext<Told>) -> Result<Outcome, JobError> {
        Err(JobError::new("away").infrastructure())
    }

    async fn on_interrupt(self, _: JobContext<Told>) -> Result<(), JobError> {
        let _vase = Vase;
        std::future::pending().await
    }
}

#[tokio::test]
async fn an_undo_whose_destructor_panics_is_one_that_failed() {
    for jobs in open().await {
        let handlers = Registry::new().job::<Fragile>().build().unwrap();
        let running = Running::start(worker(&jobs, handlers, Told::default()));
        let id = jobs.enqueue(Fragile {}).await.unwrap().id();
        until(&jobs, id, |record| record.counters.interruptions > 0).await;
        let events = jobs.inspect().events(id).await.unwrap();
        assert_eq!(events[0].class, "undo_failed", "{events:?}");
        running.stop().await;
    }
}
