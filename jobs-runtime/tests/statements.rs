//! How often a worker asks its store: the calls of the contract are the statements of a database. And what
//! becomes of its schedules when some of them fail.

mod statements_store;

use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{
    DrainReport, EventKind, Lease, ManualClock, Random, SeededRandom, SystemClock, Timestamp,
};
use serde::{Deserialize, Serialize};
use statements_store::{Calls, Counted, Counter};
use tokio::sync::oneshot;

#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "test.nothing", version = "1.0.0")]
struct Nothing {}

/// Of the next build.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "test.nothing", version = "2.0.0")]
struct NextNothing {}

/// Of a kind that only the next build has.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "test.later", version = "1.0.0")]
struct Later {}

async fn nothing(_: Nothing, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

/// Comes before its time.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "test.early", version = "1.0.0")]
struct Early {}

async fn early(_: Early, _: JobContext<()>) -> Result<Outcome, JobError> {
    Ok(Outcome::Snooze(Duration::from_hours(1)))
}

/// How far the clock moves on at a time.
const STEP: Duration = Duration::from_millis(50);

/// A client on a fresh memory store, the clock of both, and what will be called.
struct Stage {
    jobs: Jobs,
    clock: Arc<ManualClock>,
    counter: Counter,
}

fn stage() -> Stage {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
    let store = Counted::new(clock.clone(), SeededRandom::new(7).draw());
    let counter = store.calls();
    let random = Arc::new(SeededRandom::new(8));
    let jobs = Jobs::builder().clock(clock.clone()).random(random).over(store);
    Stage { jobs: jobs.expect("the label is fine"), clock, counter }
}

/// Works for a span of virtual time; answers how often what was called meanwhile, and what the worker
/// says at its end.
async fn work(stage: &Stage, concurrency: usize, span: Duration) -> (Calls, DrainReport) {
    let handlers = Registry::new().handle(nothing).handle(early).build().expect("two handlers");
    let (stop, stopped) = oneshot::channel::<()>();
    // The heartbeat's thread lives in real time: this lease outlives the span.
    let worker = Worker::new(&stage.jobs, handlers, ()).concurrency(concurrency);
    let worker = worker.lease(Lease::LONGEST);
    let working = worker.run_until(async {
        drop(stopped.await);
    });
    let stopping = async {
        for _ in 0..span.as_millis() / STEP.as_millis() {
            tokio::time::sleep(STEP).await;
            stage.clock.advance(STEP);
        }
        let calls = stage.counter.take();
        drop(stop);
        calls
    };
    let (report, calls) = tokio::join!(working, stopping);
    (calls, report.expect("the worker runs"))
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_asks_less_than_twice_a_second() {
    let seconds = 600;
    let (calls, _) = work(&stage(), 10, Duration::from_secs(seconds)).await;
    // With the usual lease, every ten seconds a renewal and an audit, and a sweep, which is up to three
    // statements of an SQL store.
    let of_the_lease = 5 * seconds / 10;
    let all = calls.all() - calls.of("sweep") + of_the_lease;
    assert!(all < 2 * seconds, "{all} statements in {seconds} s: {calls:?}");
}

/// What a rollout costs old workers, however many jobs wait that they can't read.
#[tokio::test(start_paused = true)]
async fn foreign_jobs_cost_one_probe_a_route_and_cool_down() {
    let (seconds, span) = (600, Duration::from_mins(10));
    let (empty, _) = work(&stage(), 10, span).await;
    let beside = stage();
    // The reference store walks all it has for each call: a hundred thousand in the full size.
    let foreign = if std::env::var_os("JOBS_TEST_SIZE").is_some() { 50_000 } else { 500 };
    beside.jobs.enqueue_all(vec![NextNothing {}; foreign]).await.expect("the jobs are stored");
    beside.jobs.enqueue_all(vec![Later {}; foreign]).await.expect("the jobs are stored");
    beside.counter.take();
    let (calls, report) = work(&beside, 10, span).await;
    println!("{empty:?} in an empty queue\n{calls:?} beside foreign jobs, {report:?}");
    // A cool-down is ten seconds, give or take a tenth; a probe is given back.
    let probes = 2 * (seconds / 9 + 1);
    assert_eq!(report.settled, 0);
    assert!((probes / 2..=probes).contains(&report.released), "{report:?}");
    assert!(calls.claims() <= probes && calls.of("settle") <= probes, "{calls:?}");
    // Around a probe the routes are listed again, and its job is promoted when its delay is over. Once a
    // minute the worker asks who else might read it, and how many there are.
    let looks = 2 * (seconds / 54 + 1);
    assert!(calls.all() <= empty.all() + 10 * probes + looks, "{calls:?}, {empty:?} without them");
}

#[tokio::test(start_paused = true)]
async fn what_ends_together_is_claimed_and_settled_by_one_call_each() {
    let store = stage();
    store.jobs.enqueue_all(vec![Nothing {}; 1_000]).await.expect("the jobs are stored");
    let (calls, report) = work(&store, 100, Duration::from_secs(1)).await;
    assert_eq!(report.settled, 1_000);
    assert!(calls.claims() <= 10 + 3, "{calls:?}");
    assert!(calls.of("settle") <= 10 + 3, "{calls:?}");
    assert!(calls.of("routes") <= 3, "{calls:?}");
}

/// Where the last claim ended the next job is found, without a look before.
#[tokio::test(start_paused = true)]
async fn a_job_that_comes_is_taken_by_one_claim() {
    let store = stage();
    let count = 100;
    let coming = async {
        for _ in 0..count {
            tokio::time::sleep(2 * STEP).await;
            store.jobs.enqueue(Nothing {}).await.expect("it is stored");
        }
    };
    let working = work(&store, 10, Duration::from_secs(12));
    let ((calls, report), ()) = tokio::join!(working, coming);
    assert_eq!(report.settled, count);
    assert!(calls.claims() <= count + 3, "{calls:?}");
    assert!(calls.of("claim_idle") >= count - 3, "{calls:?}");
}

/// Each wake-up may be of a scheduled job that falls due before all others, but hardly ever is.
#[tokio::test(start_paused = true)]
async fn wake_ups_that_follow_each_other_share_a_promotion() {
    let store = stage();
    let count = 1_000;
    let coming = async {
        for _ in 0..count {
            tokio::time::sleep(Duration::from_millis(1)).await;
            store.jobs.enqueue(Nothing {}).await.expect("it is stored");
        }
    };
    let working = work(&store, 10, Duration::from_secs(2));
    let ((calls, report), ()) = tokio::join!(working, coming);
    assert_eq!(report.settled, count);
    assert!(calls.of("promote") <= count / 10 + 5, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_of_other_queues_cost_a_look_and_no_claim() {
    let store = stage();
    let count = 100;
    let coming = async {
        store.jobs.enqueue(Nothing {}).await.expect("it is stored");
        for _ in 0..count {
            tokio::time::sleep(2 * STEP).await;
            store.jobs.enqueue(Nothing {}).queue("other").await.expect("it is stored");
        }
    };
    let working = work(&store, 10, Duration::from_secs(12));
    let ((calls, report), ()) = tokio::join!(working, coming);
    assert_eq!(report.settled, 1);
    assert!(calls.claims() <= 3, "{calls:?}");
    assert!(calls.of("routes") <= count + 12 + 3, "{calls:?}");
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, Job)]
#[job(kind = "test.tick", version = "1.0.0", schedule = "every 1s")]
struct Tick {}

async fn tick(_: Tick, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test]
async fn a_leader_whose_start_meets_errors_runs_everything_once_they_have_passed() {
    let store = Counted::new(Arc::new(SystemClock), SeededRandom::new(7).draw());
    let calls = store.calls();
    let jobs = Jobs::builder().over(store).expect("the label is fine");
    for method in ["declare", "take_duty", "schedules", "advance", "advance"] {
        calls.fail(method);
    }
    let handlers = Registry::new()
        .handle(tick)
        .schedule(jobs_runtime::Schedule::new("every 1s", &Tick {}).named("the other"));
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(&jobs, handlers.build().expect("one handler"), ());
    let working = worker.run_until(async { drop(stopped.await) });
    let watching = async {
        let both_tick = async || {
            let ticked = async |name: &str| !jobs.ticks(name).await.expect("ticks").is_empty();
            ticked("test.tick").await && ticked("the other").await
        };
        while calls.to_fail() > 0 || !both_tick().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(stop);
    };
    let watching = tokio::time::timeout(Duration::from_secs(30), watching);
    let (report, watched) = tokio::join!(working, watching);
    watched.expect("every schedule ticks, whatever failed first");
    report.expect("the worker drains");
}

#[tokio::test(start_paused = true)]
async fn a_success_that_could_not_be_stored_at_once_says_so() {
    let store = stage();
    let ids = async |count| {
        let added = store.jobs.enqueue_all(vec![Nothing {}; count]).await.expect("they are stored");
        added.into_iter().map(jobs_runtime::Enqueued::id).collect::<Vec<_>>()
    };
    let late = ids(3).await;
    let snoozed = store.jobs.enqueue(Early {}).await.expect("it is stored").id();
    // With the pauses between its tries, the sixth comes 1.55 s after the first.
    for _ in 0..5 {
        store.counter.fail("settle");
    }
    let (_, report) = work(&store, 10, Duration::from_secs(5)).await;
    let in_time = ids(3).await;
    let (_, next) = work(&store, 10, Duration::from_secs(5)).await;
    assert_eq!((report.settled, next.settled), (4, 3));
    for id in late {
        let events = store.jobs.inspect().events(id).await.expect("its history");
        let told: Vec<_> = events.iter().map(|event| (event.kind, &*event.text)).collect();
        let text = "its handler ended 1 s before that could be stored";
        assert_eq!(told, [(EventKind::SettledLate, text)]);
    }
    // What is no success took no time that anyone would read off it.
    for id in in_time.into_iter().chain([snoozed]) {
        assert_eq!(store.jobs.inspect().events(id).await.expect("its history"), []);
    }
}
