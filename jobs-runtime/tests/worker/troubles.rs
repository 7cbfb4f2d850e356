//! What a worker does when its store answers late, badly or never, and when a part of it breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::memory::MemoryStore;
use jobs_runtime::store::{Declaration, NewWorker};
use jobs_runtime::{
    BuildId, Clock, ErrorKind, JobId, Lease, ManualClock, NewJob, ScheduleName, State,
    StoreErrorKind, SystemClock, Timestamp, WorkerName,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::lines::Lines;
use crate::planted::Planted;
use crate::support::{
    Act, Running, SCHEMES, act, close_behind, ended, fresh, is_running, until, worker,
};

/// No wait of these tests is longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the handlers share with their test.
#[derive(Debug, Clone, Default)]
struct Scene {
    starts: Arc<AtomicUsize>,
    /// How many handlers were dropped or returned.
    ends: Arc<AtomicUsize>,
    ended: Arc<Notify>,
}

/// Tells of a handler's end, however it ends.
struct Tells(Scene);

impl Drop for Tells {
    fn drop(&mut self) {
        self.0.ends.fetch_add(1, Ordering::SeqCst);
        self.0.ended.notify_one();
    }
}

impl Scene {
    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }

    fn ends(&self) -> usize {
        self.ends.load(Ordering::SeqCst)
    }
}

async fn play(job: Act, cx: JobContext<Scene>) -> Result<Outcome, JobError> {
    cx.state.starts.fetch_add(1, Ordering::SeqCst);
    let _tells = Tells(cx.state.clone());
    if job.how == "deaf" {
        std::future::pending::<()>().await;
    }
    Ok(Outcome::Done)
}

fn playing(jobs: &Jobs, scene: &Scene) -> Worker<Scene> {
    let handlers = Registry::new().handle(play).build().unwrap();
    worker(jobs, handlers, scene.clone())
}

async fn patiently<T>(what: &str, call: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, call).await.unwrap_or_else(|_| panic!("in time: {what}"))
}

async fn started(jobs: &Jobs, scene: &Scene, how: &str) -> JobId {
    let id = jobs.enqueue(act(how)).await.unwrap().id();
    until(jobs, id, |record| is_running(record) && scene.starts() > 0).await;
    id
}

#[tokio::test]
async fn a_run_whose_row_was_held_is_settled_while_others_end_all_the_time() {
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let id = jobs.enqueue(act("")).await.unwrap().id();
    store.plan().locked.insert(id);
    let running = Running::start(playing(&jobs, &scene));
    let met = store.until(|plan| plan.met_locked.contains(&id));
    patiently("the settler meets the held row", met).await;
    store.plan().locked.clear();
    patiently("the run is settled", async {
        while !jobs.job(id).await.unwrap().unwrap().state.is_finished() {
            let other = jobs.enqueue(act("")).await.unwrap().id();
            ended(&jobs, other).await;
        }
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn a_heartbeat_that_panics_ends_the_worker_and_gives_its_runs_up() {
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let working = playing(&jobs, &scene).run_until(std::future::pending());
    let breaking = async {
        let id = started(&jobs, &scene, "deaf").await;
        store.plan().panicking.insert("renew");
        id
    };
    let (ended, id) = patiently("the worker ends", async { tokio::join!(working, breaking) }).await;
    let error = ended.expect_err("a bug is no end of a drain");
    assert!(error.to_string().contains("heartbeat"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Broken);
    assert_eq!(scene.ends(), 1, "no handler goes on without a lease");
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.counters.crashes), (State::Ready, 0), "it was given up");
    assert_eq!(record.counters.interruptions, 1);
}

#[tokio::test]
async fn a_loop_that_panics_drains_the_worker_and_is_told_as_a_bug() {
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let worker = playing(&jobs, &scene).grace_period(Duration::from_secs(1));
    let working = worker.run_until(std::future::pending());
    let breaking = async {
        let id = started(&jobs, &scene, "deaf").await;
        store.plan().panicking.extend(["promote", "routes"]);
        // Both loops look again.
        jobs.enqueue(act("")).delay(Duration::from_millis(1)).await.unwrap();
        id
    };
    let (ended, id) = patiently("the worker ends", async { tokio::join!(working, breaking) }).await;
    let error = ended.expect_err("a bug is no end of a drain");
    assert_eq!(error.kind(), ErrorKind::Broken, "{error}");
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.counters.interruptions), (State::Ready, 1), "it drained");
}

#[tokio::test]
async fn a_worker_that_is_dropped_takes_its_handlers_along() {
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let id = tokio::select! {
        report = playing(&jobs, &scene).run_until(std::future::pending()) => {
            unreachable!("nobody stops it: {report:?}")
        }
        id = started(&jobs, &scene, "deaf") => id,
    };
    patiently("the handler is dropped", scene.ended.notified()).await;
    assert_eq!((scene.starts(), scene.ends()), (1, 1));
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!(record.state, State::Running, "its job is left to the lease");
}

#[tokio::test]
async fn a_drain_counts_a_job_once_that_this_worker_holds_under_two_claims() {
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let worker = playing(&jobs, &scene);
    let running = Running::start(worker.lease(Duration::from_secs(1)));
    let id = started(&jobs, &scene, "deaf").await;
    let first = jobs.job(id).await.unwrap().unwrap();
    // Both runs are given up, and neither can be settled.
    store.plan().away.insert("settle");
    close_behind(&jobs, first.worker.unwrap()).await;
    until(&jobs, id, |record| record.claim > first.claim && scene.starts() == 2).await;
    let report = patiently("the worker leaves", running.stop()).await;
    assert_eq!((report.interrupted, report.released, report.abandoned), (1, 0, 0));
    let record = jobs.job(id).await.unwrap().unwrap();
    assert_eq!(record.state, State::Ready, "the close gave it back");
}

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At(u32);

/// Saves a checkpoint, after which only its row knows its counters.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.saves", version = "1.0.0", checkpoint = At)]
struct Saves {}

async fn save(_: Saves, cx: JobContext<Scene, At>) -> Result<(), JobError> {
    cx.checkpoint(&At(1)).await
}

#[tokio::test]
async fn a_row_that_can_never_be_read_keeps_no_other_run_from_being_settled() {
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let unread = jobs.enqueue(Saves {}).await.unwrap().id();
    store.plan().corrupt.insert(unread);
    let others = [jobs.enqueue(act("")).await.unwrap(), jobs.enqueue(Saves {}).await.unwrap()];
    let handlers = Registry::new().handle(play).handle(save).build().unwrap();
    let worker = worker(&jobs, handlers, scene.clone()).grace_period(Duration::from_secs(2));
    let running = Running::start(worker);
    for other in others {
        assert_eq!(ended(&jobs, other.id()).await.state, State::Succeeded);
    }
    let record = jobs.job(unread).await.unwrap().unwrap();
    assert_eq!(record.state, State::Running, "nobody knows what became of it");
    let report = patiently("the worker leaves", running.stop()).await;
    assert_eq!((report.settled, report.interrupted), (2, 1));
    assert_eq!(jobs.job(unread).await.unwrap().unwrap().state, State::Ready);
}

#[tokio::test]
async fn an_outcome_that_the_store_does_not_take_is_a_failure_that_says_why() {
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let refused = jobs.enqueue(act("")).await.unwrap().id();
    store.plan().refused.insert(refused);
    let other = jobs.enqueue(act("")).await.unwrap().id();
    let running = Running::start(playing(&jobs, &scene));
    assert_eq!(ended(&jobs, other).await.state, State::Succeeded);
    let record = until(&jobs, refused, |record| record.counters.failures > 0).await;
    assert_eq!(record.error_class.as_deref(), Some("unsettleable"));
    let text = record.error.unwrap();
    assert!(text.contains("could not settle runs: a character has no equivalent"), "{text}");
    running.stop().await;
}

#[tokio::test]
async fn a_run_with_which_every_batch_fails_keeps_no_other_from_being_settled() {
    use StoreErrorKind::{Busy, Configuration, Full, ReadOnly, Schema, Unavailable};
    let kinds = [Unavailable, Busy, Full, ReadOnly, Schema, Configuration];
    let store = Planted::new();
    let (jobs, scene) = (store.jobs(), Scene::default());
    let mut spoiling = Vec::new();
    let mut others = Vec::new();
    for kind in kinds {
        others.push(jobs.enqueue(act("")).await.unwrap().id());
        let id = jobs.enqueue(act("")).await.unwrap().id();
        store.plan().spoiling.insert(id, kind);
        spoiling.push(id);
        others.push(jobs.enqueue(act("")).await.unwrap().id());
    }
    let running = Running::start(playing(&jobs, &scene));
    for id in others {
        let record = patiently("the others are settled", ended(&jobs, id)).await;
        assert_eq!((record.state, record.claim.0), (State::Succeeded, 1));
    }
    let later = jobs.enqueue(act("")).await.unwrap().id();
    patiently("and so is what ends later", ended(&jobs, later)).await;
    for id in &spoiling {
        let record = jobs.job(*id).await.unwrap().unwrap();
        assert_eq!((record.state, record.counters.failures), (State::Running, 0));
    }
    store.plan().spoiling.clear();
    for id in spoiling {
        let record = patiently("they are tried again", ended(&jobs, id)).await;
        assert_eq!((record.state, record.claim.0), (State::Succeeded, 1));
    }
    running.stop().await;
}

#[tokio::test]
async fn a_row_that_fails_in_the_words_of_an_outage_begins_none_and_is_told_by_its_job() {
    let (store, lines) = (Planted::new(), Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (jobs, scene) = (store.jobs(), Scene::default());
    let id = jobs.enqueue(act("")).await.unwrap().id();
    store.plan().spoiling.insert(id, StoreErrorKind::Unavailable);
    // What the heartbeat's thread says is not heard here, so that thread has nothing to do after its first beat.
    let running = Running::start(playing(&jobs, &scene).lease(Duration::from_hours(1)));
    let told = format!("does not take the outcome of this run; trying again job={id} ");
    let (mut others, mut settled) = (0, 0);
    // Alone at first, and then beside others, longer than an outage takes to be over.
    patiently("it is told", lines.until(&told)).await;
    let told_at = SystemClock.elapsed();
    while SystemClock.elapsed() < told_at + Duration::from_secs(4) {
        others += 1;
        let other = jobs.enqueue(act("")).await.unwrap().id();
        settled += usize::from(ended(&jobs, other).await.state == State::Succeeded);
    }
    assert_eq!(settled, others);
    assert_eq!(lines.of(&told), 1, "{:?}", lines.all());
    assert_eq!(lines.of("the store does not answer"), 0, "{:?}", lines.all());
    assert_eq!(lines.of("the store answers again"), 0);
    store.plan().spoiling.clear();
    assert_eq!(patiently("it is settled", ended(&jobs, id)).await.state, State::Succeeded);
    running.stop().await;
}

/// Where no other call says that the store is away.
#[tokio::test]
async fn settlements_that_fail_while_nothing_is_answered_begin_an_outage() {
    let (store, lines) = (Planted::new(), Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (jobs, scene) = (store.jobs(), Scene::default());
    let running = Running::start(playing(&jobs, &scene).lease(Duration::from_hours(1)));
    store.plan().away.insert("settle");
    jobs.enqueue(act("")).await.unwrap();
    patiently("its handler ends", scene.ended.notified()).await;
    store.plan().stuck.extend(["promote", "routes", "claim"]);
    patiently("it is told", lines.until("the store does not answer")).await;
    assert_eq!(lines.of("call=\"settle\""), 1, "{:?}", lines.all());
    drop(running);
}

#[tokio::test]
async fn a_renewal_beside_the_close_of_its_worker_tells_of_no_lost_lease() {
    let (store, lines) = (Planted::new(), Lines::of_all_threads());
    let jobs = store.jobs();
    for _ in 0..WORKERS_OF_A_TEST {
        jobs.store().register(&nobody()).await.unwrap();
    }
    let ours = format!("worker={} ", WORKERS_OF_A_TEST + 1);
    store.plan().is_close_slow = true;
    let running = Running::start(playing(&jobs, &Scene::default()));
    patiently("it works", lines.until(&format!("registered {ours}"))).await;
    patiently("the worker leaves", running.stop()).await;
    assert!(store.plan().met.contains("renew when done"));
    assert_eq!(lines.of(&format!("was taken back; registering anew {ours}")), 0);
}

/// More than any other test here registers. Where all of them run in one process, each over a store that
/// counts its workers from 1, a line about a worker with a higher number is of no other test.
const WORKERS_OF_A_TEST: u32 = 1_000;

#[tokio::test]
async fn a_worker_whose_tables_are_dropped_says_so_and_leaves() {
    let lines = Lines::of_all_threads();
    for scheme in SCHEMES.into_iter().filter(|scheme| *scheme != "memory:") {
        let jobs = fresh(scheme, Jobs::builder()).await;
        let scene = Scene::default();
        let running = Running::start(playing(&jobs, &scene));
        let id = jobs.enqueue(act("")).await.unwrap().id();
        ended(&jobs, id).await;
        jobs.drop_tables().await;
        patiently("it leaves", running.left()).await;
        let error = jobs.enqueue(act("")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::Schema), "{error:?}");
        let why = if scheme == "sqlite://" { "not in the file" } else { "not there" };
        let told: Vec<String> = lines.all();
        let told: Vec<&String> = told.iter().filter(|line| line.contains("draining")).collect();
        let says = |line: &&&String| {
            let parts =
                ["can't work on the schema any more", why, "somebody dropped", "jobs migrate"];
            parts.iter().all(|part| line.contains(part))
        };
        assert_eq!(told.iter().filter(says).count(), 1, "{scheme}: {told:?}");
        assert!(!told.iter().any(|line| line.contains("newer build")), "{told:?}");
    }
}

fn nobody() -> NewWorker {
    NewWorker {
        name: WorkerName::new("nobody").unwrap(),
        build: BuildId::default(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    }
}

#[tokio::test]
async fn all_that_slows_a_store_down_is_warned_of() {
    let (store, warnings) = (Planted::new(), Lines::default());
    let _guard = tracing::subscriber::set_default(warnings.clone());
    store.plan().warnings = vec!["a snapshot is held".to_owned(), "the log grows".to_owned()];
    let running = Running::start(playing(&store.jobs(), &Scene::default()));
    for warning in ["a snapshot is held", "the log grows"] {
        patiently("both are warned of", warnings.until(warning)).await;
    }
    running.stop().await;
}

#[tokio::test]
async fn all_schedules_that_a_build_cannot_read_are_warned_of() {
    let (store, warnings) = (Planted::new(), Lines::default());
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let jobs = store.jobs();
    let declarations = ["first", "second"].map(|name| Declaration {
        name: ScheduleName::new(name).unwrap(),
        text: "of a later build".to_owned(),
    });
    jobs.store().declare(None, &declarations).await.unwrap();
    let running = Running::start(playing(&jobs, &Scene::default()));
    for warning in ["first: ", "second: "] {
        patiently("both are warned of", warnings.until(warning)).await;
    }
    running.stop().await;
}

#[tokio::test]
async fn a_store_that_answers_an_enqueue_with_nothing_is_told_to_be_damaged() {
    let store = Planted::new();
    let jobs = store.jobs();
    store.plan().is_mute = true;
    let text = NewJob::of(&act(""), 1_024).unwrap();
    for error in
        [jobs.enqueue(act("")).await.unwrap_err(), jobs.enqueue_new(text).await.unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::Corrupt), "{error}");
    }
    jobs.enqueue_all(["a", "b"].map(act)).await.unwrap_err();
}

#[tokio::test]
async fn an_outage_is_told_once_and_so_is_its_end() {
    let (store, lines) = (Planted::new(), Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    let calls = ["routes", "promote", "expire", "prune"];
    // What the heartbeat's thread says is not heard here, so that thread has nothing to do after its first beat.
    let worker = playing(&store.jobs(), &Scene::default()).lease(Duration::from_hours(1));
    let running = Running::start(worker);
    let all_came = |calls: [&'static str; 2]| {
        store.until(move |plan| calls.iter().all(|call| plan.met.contains(call)))
    };
    patiently("it works", all_came(["routes", "held"])).await;
    {
        let mut plan = store.plan();
        plan.away.extend(calls);
        plan.met.clear();
    }
    patiently("two kinds of calls fail", all_came(["routes", "promote"])).await;
    store.plan().away.clear();
    patiently("it is over", lines.until("the store answers again")).await;
    running.stop().await;
    assert_eq!(lines.of("the store does not answer"), 1, "{:?}", lines.all());
    assert_eq!(lines.of("the store answers again"), 1);
    assert_eq!(lines.of("can't"), 0);
}

#[tokio::test]
async fn what_keeps_expired_jobs_from_ending_keeps_none_from_being_pruned() {
    let (store, warnings) = (Planted::new(), Lines::default());
    let _guard = tracing::subscriber::set_default(warnings.clone());
    store.plan().away.insert("expire");
    let running = Running::start(playing(&store.jobs(), &Scene::default()));
    patiently("it prunes", store.until(|plan| plan.met.contains("prune"))).await;
    running.stop().await;
    assert_eq!(warnings.of("the store does not answer"), 1, "{:?}", warnings.all());
    assert_eq!(warnings.of("end expired jobs"), 1);
}

/// Of a kind that the worker does not know.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.foreign", version = "1.0.0")]
struct Foreign {}

#[tokio::test(start_paused = true)]
async fn a_short_deadline_of_stranded_jobs_waits_for_ten_minutes_of_watching() {
    const MINUTE: Duration = Duration::from_mins(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
    let store = MemoryStore::new(clock.clone(), 7);
    let jobs = Jobs::builder().clock(clock.clone()).over(store).unwrap();
    let handlers = Registry::new().handle(play).build().unwrap();
    // The heartbeat has a thread of its own, and real time.
    let worker = Worker::new(&jobs, handlers, Scene::default()).lease(Lease::LONGEST);
    let running = Running::start(worker.stranded_deadline(MINUTE));
    let pass = async |span: Duration| {
        for _ in 0..span.as_secs() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            clock.advance(Duration::from_secs(1));
        }
    };
    let id = jobs.enqueue(Foreign {}).await.unwrap().id();
    let state = async || jobs.job(id).await.unwrap().unwrap().state;
    pass(MINUTE * 10).await;
    assert_ne!(state().await, State::Dead, "a deploy may bring a build that reads it");
    pass(MINUTE * 4).await;
    assert_eq!(state().await, State::Dead);
    running.stop().await;
}
