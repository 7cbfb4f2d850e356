//! What a kind says of its interruptions, and what its handlers can do about them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Counters, JobId, JobRecord, State};
use serde::{Deserialize, Serialize};

use crate::support::{Running, close_behind, ended, is_running, open, until, worker};

/// What the handlers of a test tell, in order.
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

/// A job that reserves something outside, which must be undone.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.reserve", version = "1.0.0", on_stop = "undo")]
struct Reserve {
    undo: Undo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Undo {
    Ends,
    Fails,
    Panics,
    Hangs,
}

impl Handler<Told> for Reserve {
    async fn run(self, cx: JobContext<Told>) -> Result<Outcome, JobError> {
        if cx.claim().0 > 1 {
            cx.state.tell(if cx.was_cut_off().await? { "cut off before" } else { "clean before" });
            return Ok(Outcome::Done);
        }
        assert!(!cx.was_cut_off().await?);
        cx.state.tell("reserved");
        std::future::pending().await
    }

    async fn on_interrupt(self, cx: JobContext<Told>) -> Result<(), JobError> {
        cx.state.tell("undoing");
        assert!(!cx.is_stopping(), "the undo is not asked to stop");
        match self.undo {
            Undo::Ends => tokio::time::sleep(Duration::from_millis(10)).await,
            Undo::Fails => return Err(JobError::new("the desk is closed")),
            Undo::Panics => panic!("the desk is gone"),
            Undo::Hangs => std::future::pending().await,
        }
        cx.state.tell("undone");
        Ok(())
    }
}

fn reserving(jobs: &Jobs, told: &Told) -> Worker<Told> {
    let handlers = Registry::new().job::<Reserve>().build().unwrap();
    worker(jobs, handlers, told.clone()).grace_period(Duration::from_secs(2))
}

/// Interrupts a run by a drain, and answers the job then and once it has run again.
async fn interrupted(jobs: &Jobs, told: &Told, undo: Undo) -> (JobRecord, JobRecord) {
    let id = jobs.enqueue(Reserve { undo }).await.unwrap().id();
    let first = Running::start(reserving(jobs, told));
    until(jobs, id, |_| told.all() == ["reserved"]).await;
    first.stop().await;
    let record = jobs.job(id).await.unwrap().unwrap();
    let second = Running::start(reserving(jobs, told));
    let after = ended(jobs, id).await;
    second.stop().await;
    (record, after)
}

#[tokio::test]
async fn a_run_with_state_outside_is_given_back_once_that_is_undone() {
    for jobs in open().await {
        let told = Told::default();
        let (record, after) = interrupted(&jobs, &told, Undo::Ends).await;
        assert_eq!((record.state, record.counters.interruptions), (State::Ready, 1));
        assert_eq!(told.all(), ["reserved", "undoing", "undone", "clean before"]);
        assert_eq!((after.state, after.counters.failures), (State::Succeeded, 0));
    }
}

#[tokio::test]
async fn the_next_run_hears_of_an_undo_that_failed() {
    for undo in [Undo::Fails, Undo::Panics] {
        for jobs in open().await {
            let told = Told::default();
            let (record, _) = interrupted(&jobs, &told, undo).await;
            assert_eq!(record.state, State::Ready, "{undo:?}");
            assert_eq!(told.all(), ["reserved", "undoing", "cut off before"], "{undo:?}");
            let events = jobs.inspect().events(record.id).await.unwrap();
            assert_eq!(events[0].class, "undo_failed", "{undo:?}");
            assert!(events[0].text.contains("the desk is"), "{undo:?}: {}", events[0].text);
        }
    }
}

#[tokio::test]
async fn an_undo_that_does_not_end_is_left_to_the_lease_and_told() {
    for jobs in open().await {
        let told = Told::default();
        let (record, after) = interrupted(&jobs, &told, Undo::Hangs).await;
        assert_eq!(record.state, State::Running, "nobody may start while the undo works");
        assert_eq!(told.all(), ["reserved", "undoing", "cut off before"]);
        let Counters { failures, interruptions, crashes, .. } = after.counters;
        assert_eq!((failures, interruptions, crashes), (0, 1, 0));
    }
}

#[tokio::test]
async fn a_run_that_lost_its_lease_is_not_undone_and_its_successor_hears_of_it() {
    for jobs in open().await {
        let told = Told::default();
        let id = jobs.enqueue(Reserve { undo: Undo::Ends }).await.unwrap().id();
        let running = Running::start(reserving(&jobs, &told).lease(Duration::from_secs(1)));
        until(&jobs, id, |_| told.all() == ["reserved"]).await;
        let me = jobs.inspect().workers().await.unwrap()[0].id;
        close_behind(&jobs, me).await;
        assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        assert_eq!(told.all(), ["reserved", "cut off before"]);
        running.stop().await;
    }
}

#[test]
fn a_function_can_not_undo() {
    async fn reserve(_: Reserve, _: JobContext<()>) -> Result<(), JobError> {
        Ok(())
    }

    let error = Registry::new().handle(reserve).build().unwrap_err();
    assert!(error.problems()[0].contains("needs `impl Handler`"), "{error}");
}

/// A job that is better left alone for a while.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.finish", version = "1.0.0", on_stop = "finish")]
struct Finish {}

/// A job beside it that is asked.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.return", version = "1.0.0")]
struct Return {}

async fn finish(_: Finish, cx: JobContext<Told>) -> Result<(), JobError> {
    cx.state.tell("begun");
    while !cx.state.all().contains(&"asked".to_owned()) {
        tokio::task::yield_now().await;
    }
    cx.state.tell(if cx.is_stopping() { "asked too" } else { "left alone" });
    Ok(())
}

async fn return_when_asked(_: Return, cx: JobContext<Told>) -> Result<(), JobError> {
    cx.state.tell("begun");
    cx.stopping().await;
    cx.state.tell("asked");
    cx.check().await
}

#[tokio::test]
async fn a_kind_that_finishes_is_not_asked_to_return() {
    for jobs in open().await {
        let told = Told::default();
        let handlers = Registry::new().handle(finish).handle(return_when_asked).build().unwrap();
        let worker = worker(&jobs, handlers, told.clone()).grace_period(Duration::from_secs(2));
        let running = Running::start(worker);
        let id = jobs.enqueue(Finish {}).await.unwrap().id();
        jobs.enqueue(Return {}).await.unwrap();
        until(&jobs, id, |_| told.all() == ["begun", "begun"]).await;
        let report = running.stop().await;
        assert_eq!((report.settled, report.interrupted), (1, 1));
        assert_eq!(told.all(), ["begun", "begun", "asked", "left alone"]);
    }
}

/// A job that must never start twice.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.once", version = "1.0.0", on_stop = "at_most_once")]
struct Once {
    fails: bool,
}

async fn once(job: Once, cx: JobContext<Told>) -> Result<(), JobError> {
    cx.state.tell("begun");
    if job.fails {
        return Err(JobError::new("it failed"));
    }
    std::future::pending().await
}

async fn dead(jobs: &Jobs, id: JobId) -> (String, Counters) {
    let record = ended(jobs, id).await;
    assert_eq!(record.state, State::Dead);
    (record.error_class.unwrap(), record.counters)
}

#[tokio::test]
async fn a_job_that_runs_at_most_once_is_dead_after_a_failure_a_stop_or_a_lost_lease() {
    for jobs in open().await {
        let told = Told::default();
        let handlers = || Registry::new().handle(once).build().unwrap();
        let worker =
            || worker(&jobs, handlers(), told.clone()).grace_period(Duration::from_secs(2));
        let running = Running::start(worker());
        let failed = jobs.enqueue(Once { fails: true }).await.unwrap().id();
        assert_eq!(dead(&jobs, failed).await.0, "error");
        let lost = jobs.enqueue(Once { fails: false }).await.unwrap().id();
        until(&jobs, lost, |_| told.all().len() == 2).await;
        let me = jobs.inspect().workers().await.unwrap()[0].id;
        close_behind(&jobs, me).await;
        let (class, counters) = dead(&jobs, lost).await;
        assert_eq!((class.as_str(), counters.failures), ("interrupted", 0));
        let stopped = jobs.enqueue(Once { fails: false }).await.unwrap().id();
        until(&jobs, stopped, |_| told.all().len() == 3).await;
        running.stop().await;
        assert_eq!(dead(&jobs, stopped).await.0, "interrupted");
        // One that never started was not interrupted.
        let next = Running::start(worker());
        let waits = jobs.enqueue(Once { fails: true }).await.unwrap().id();
        assert_eq!(dead(&jobs, waits).await.0, "error");
        next.stop().await;
        assert_eq!(told.all().len(), 4);
    }
}

/// How many tasks of handlers live.
#[derive(Debug, Clone, Default)]
struct Alive(Arc<AtomicUsize>);

struct Living(Alive);

impl Living {
    fn new(alive: &Alive) -> Self {
        alive.0.fetch_add(1, Ordering::SeqCst);
        Self(alive.clone())
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.spawn", version = "1.0.0", max_failures = 1)]
struct Spawn {
    how: String,
}

async fn spawn(job: Spawn, cx: JobContext<Alive>) -> Result<(), JobError> {
    let alive = cx.state.clone();
    let living = move || {
        let living = Living::new(&alive);
        async move {
            std::future::pending::<()>().await;
            drop(living);
        }
    };
    drop(cx.spawn(living()));
    match job.how.as_str() {
        "result" => assert_eq!(cx.spawn(async { 7 }).await?, 7),
        "panic" => cx.spawn(async { panic!("as told") }).await?,
        _ => cx.spawn(living()).await?,
    }
    Ok(())
}

#[tokio::test]
async fn what_a_handler_spawned_is_gone_before_its_run_ends() {
    for jobs in open().await {
        let alive = Alive::default();
        let handlers = Registry::new().handle(spawn).build().unwrap();
        let worker = worker(&jobs, handlers, alive.clone()).grace_period(Duration::from_secs(2));
        let running = Running::start(worker);
        let enqueue =
            async |how: &str| jobs.enqueue(Spawn { how: how.to_owned() }).await.unwrap().id();
        let count = || alive.0.load(Ordering::SeqCst);
        let id = enqueue("result").await;
        assert_eq!((ended(&jobs, id).await.state, count()), (State::Succeeded, 0));
        let id = enqueue("panic").await;
        assert_eq!((ended(&jobs, id).await.state, count()), (State::Dead, 0));
        let id = enqueue("waits").await;
        until(&jobs, id, |record| is_running(record) && count() == 2).await;
        running.stop().await;
        assert_eq!((jobs.job(id).await.unwrap().unwrap().state, count()), (State::Ready, 0));
    }
}
