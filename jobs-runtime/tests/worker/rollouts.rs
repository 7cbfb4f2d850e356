//! A build beside others: each row of the table of versions end to end, renames, the producer's gate,
//! and what an old build does beside rows that it knows nothing of.

use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::manifest::Manifest;
use jobs_runtime::prelude::*;
use jobs_runtime::store::{Head, NewWorker, Redrive};
use jobs_runtime::{
    BuildId, ErrorKind, Gate, JobId, Kind, Lease, ManualClock, MinReader, NewJob, Place, QueueName,
    Route, State, Timestamp, Version, WorkerName,
};
use serde::{Deserialize, Serialize};

use crate::support::{App, Fresh, Running, SCHEMES, ended, fresh, open, until, worker};

#[derive(Debug, Serialize, Deserialize, PastJob)]
#[job(kind = "test.order", version = "1.3.0")]
struct OrderV1 {
    dollars: u32,
}

#[derive(Debug, Serialize, Deserialize, PastJob)]
#[job(kind = "test.order", version = "2.0.0", previous = OrderV1)]
struct OrderV2 {
    cents: u64,
}

#[derive(Debug, Serialize, Deserialize, PastJob)]
#[job(kind = "test.order", version = "3.1.0", previous = OrderV2)]
struct OrderV3 {
    amount: String,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.order", version = "4.2.0", previous = OrderV3, checkpoint = OrderAt)]
#[job(aliases("test.purchase"), max_failures = 1)]
struct Order {
    cents: u64,
}

#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "2.1.0")]
struct OrderAt {
    line: u32,
}

impl From<OrderV1> for OrderV2 {
    fn from(past: OrderV1) -> Self {
        Self { cents: u64::from(past.dollars) * 100 }
    }
}

impl From<OrderV2> for OrderV3 {
    fn from(past: OrderV2) -> Self {
        Self { amount: past.cents.to_string() }
    }
}

impl TryFrom<OrderV3> for Order {
    type Error = std::num::ParseIntError;

    fn try_from(past: OrderV3) -> Result<Self, Self::Error> {
        Ok(Self { cents: past.amount.parse()? })
    }
}

async fn order(job: Order, cx: JobContext<App, OrderAt>) -> Result<(), JobError> {
    assert_eq!(job.cents, 700, "whatever the version");
    cx.state.ran();
    Ok(())
}

fn handlers() -> jobs_runtime::Handlers<App> {
    Registry::new().handle(order).retired("test.gone").build().expect("no clash")
}

/// A row as another build may have written it.
fn row(kind: &str, version: (u32, u32), reader: (u32, u32), payload: &str) -> NewJob {
    NewJob {
        kind: Kind::new(kind).expect("a kind"),
        version: Version::new(version.0, version.1, 0),
        min_reader: MinReader { major: reader.0, minor: reader.1 },
        payload: payload.to_owned(),
        ..NewJob::of(&Order { cents: 0 }, 1_000).expect("it can be encoded")
    }
}

async fn add(jobs: &Jobs, new: NewJob) -> JobId {
    jobs.store().enqueue(&[new]).await.expect("it is stored")[0].id()
}

/// How a row of the table ends.
#[derive(Debug, Clone, Copy)]
enum Ends {
    Runs,
    Refused(&'static str),
    Dead(&'static str),
}

#[tokio::test]
async fn each_row_of_the_table_of_versions_ends_as_it_says() {
    use Ends::{Dead, Refused, Runs};
    let cents = r#"{"cents":700}"#;
    let table = [
        ("test.unknown", (1, 0), (1, 0), "{}", Refused("unknown_kind")),
        ("test.gone", (9, 9), (9, 9), "{}", Dead("retired")),
        ("test.order", (4, 2), (4, 2), cents, Runs),
        ("test.order", (4, 0), (4, 0), cents, Runs),
        ("test.purchase", (4, 1), (4, 1), cents, Runs),
        ("test.order", (3, 1), (3, 1), r#"{"amount":"700"}"#, Runs),
        ("test.order", (2, 0), (2, 0), cents, Runs),
        ("test.order", (1, 0), (1, 0), r#"{"dollars":7}"#, Runs),
        ("test.purchase", (1, 3), (1, 3), r#"{"dollars":7}"#, Runs),
        ("test.order", (4, 5), (4, 1), r#"{"cents":700,"later":1}"#, Runs),
        ("test.order", (2, 7), (2, 0), cents, Runs),
        ("test.order", (4, 3), (4, 3), cents, Refused("newer")),
        ("test.order", (5, 0), (5, 0), cents, Refused("newer")),
        ("test.order", (2, 1), (2, 1), cents, Refused("newer")),
        ("test.order", (4, 0), (4, 0), r#"{"other":1}"#, Dead("malformed_payload")),
        ("test.order", (3, 0), (3, 0), r#"{"amount":"x"}"#, Dead("upcast_failed")),
        ("test.order", (4, 5), (4, 1), r#"{"other":1}"#, Refused("newer")),
    ];
    for jobs in open().await {
        let app = App::default();
        let running = Running::start(worker(&jobs, handlers(), app.clone()).queue("default"));
        let mut runs = 0;
        for (kind, version, reader, payload, ends) in table {
            let id = add(&jobs, row(kind, version, reader, payload)).await;
            let what = format!("{kind} {version:?} for {reader:?}: {payload}");
            match ends {
                Runs => {
                    let record = ended(&jobs, id).await;
                    assert_eq!(record.state, State::Succeeded, "{what}");
                    assert_eq!(record.counters, jobs_runtime::Counters::default(), "{what}");
                    runs += 1;
                }
                Refused(reason) => {
                    let refused = until(&jobs, id, |job| job.counters.refusals > 0).await;
                    assert_eq!(refused.counters.failures, 0, "{what}");
                    assert_eq!(refused.refused.expect(&what).reason, reason, "{what}");
                    assert_eq!(refused.payload, payload, "{what}");
                }
                Dead(class) => {
                    let record = ended(&jobs, id).await;
                    assert_eq!(record.state, State::Dead, "{what}");
                    assert_eq!(record.error_class.as_deref(), Some(class), "{what}");
                    assert_eq!(record.payload, payload, "{what}");
                }
            }
        }
        running.stop().await;
        assert_eq!(app.count(), runs);
    }
}

#[tokio::test]
async fn a_checkpoint_that_this_build_can_not_read_is_refused() {
    let table = [
        ((2, 1), r#"{"line":1}"#, None),
        ((2, 2), r#"{"line":1}"#, Some("checkpoint")),
        ((3, 0), r#"{"line":1}"#, Some("checkpoint")),
        ((1, 0), r#"{"line":1}"#, Some("checkpoint")),
    ];
    for jobs in open().await {
        for (version, text, refused) in table {
            let id = add(&jobs, row("test.order", (4, 2), (4, 2), r#"{"cents":700}"#)).await;
            let elsewhere = run_elsewhere(&jobs, id).await;
            let version = Version::new(version.0, version.1, 0);
            let save = jobs_runtime::store::CheckpointSave {
                fence: elsewhere.1,
                version,
                min_reader: version.own_reader(),
                text: text.to_owned(),
                keeps_failures: false,
            };
            jobs.store().checkpoint(&[save]).await.unwrap();
            crate::support::close_behind(&jobs, elsewhere.0).await;
            let running = Running::start(worker(&jobs, handlers(), App::default()));
            if let Some(reason) = refused {
                let record = until(&jobs, id, |job| job.counters.refusals > 0).await;
                assert_eq!(record.refused.unwrap().reason, reason, "{version}");
                assert_eq!(record.counters.failures, 0);
                jobs.operate().cancel(&[id]).await.unwrap();
            } else {
                assert_eq!(ended(&jobs, id).await.state, State::Succeeded, "{version}");
            }
            running.stop().await;
        }
    }
}

/// Claims a job as another worker would.
async fn run_elsewhere(jobs: &Jobs, id: JobId) -> (jobs_runtime::WorkerId, jobs_runtime::Fence) {
    let new = NewWorker {
        name: WorkerName::new("another").unwrap(),
        build: BuildId::new("another").unwrap(),
        manifest: Manifest::default().to_json(),
        lease: Lease::default(),
    };
    let worker = jobs.store().register(&new).await.unwrap();
    let record = jobs.job(id).await.unwrap().unwrap();
    let route = Route::derive(&record.kind, &record.version, record.min_reader.as_deref());
    let head = Head { queue: QueueName::default(), route, from: Place::FIRST, limit: 1 };
    let claim = jobs_runtime::store::Claim { worker, heads: &[head], limit: 1 };
    match jobs.store().claim(claim).await.unwrap() {
        jobs_runtime::store::Claimed::Jobs(claimed) => {
            assert_eq!(claimed[0].fence.job, id);
            (worker, claimed[0].fence)
        }
        jobs_runtime::store::Claimed::WorkerEnded => panic!("the worker has just registered"),
    }
}

/// Rows from before a rename, and from before the type moved to another module.
#[tokio::test]
async fn a_moved_and_renamed_type_runs_the_rows_of_its_old_name() {
    mod before {
        use super::*;

        #[derive(Debug, Serialize, Deserialize, Job)]
        #[job(kind = "test.purchase", version = "4.2.0")]
        pub(super) struct Purchase {
            pub(super) cents: u64,
        }
    }

    for jobs in open().await {
        let id = jobs.enqueue(before::Purchase { cents: 700 }).await.unwrap().id();
        let running = Running::start(worker(&jobs, handlers(), App::default()));
        let record = ended(&jobs, id).await;
        assert_eq!((record.state, record.kind.as_str()), (State::Succeeded, "test.purchase"));
        running.stop().await;
    }
}

/// A worker of a build that knows none of the kinds: it sweeps, prunes, schedules and redrives.
#[tokio::test]
async fn an_old_build_gives_foreign_claims_back_and_ends_none() {
    for jobs in open().await {
        let held = add(&jobs, row("later.kind", (7, 1), (7, 1), r#"["of no build"]"#)).await;
        let (other, _) = run_elsewhere(&jobs, held).await;
        let later = NewJob {
            due: jobs_runtime::Due::In(Duration::from_millis(300)),
            ..row("later.kind", (7, 1), (7, 1), "[1]")
        };
        let scheduled = add(&jobs, later).await;
        crate::support::close_behind(&jobs, other).await;
        let dead = add(&jobs, row("test.gone", (1, 0), (1, 0), "{}")).await;
        let running = Running::start(worker(&jobs, handlers(), App::default()));
        assert_eq!(ended(&jobs, dead).await.error_class.as_deref(), Some("retired"));
        jobs.operate().redrive(&[dead], Redrive::default()).await.unwrap();
        for (id, payload) in [(held, r#"["of no build"]"#), (scheduled, "[1]")] {
            let record = until(&jobs, id, |job| job.counters.refusals > 0).await;
            assert!(record.state.is_waiting(), "{record:?}");
            assert_eq!((record.counters.failures, record.payload.as_str()), (0, payload));
            assert_eq!(record.refused.unwrap().reason, "unknown_kind");
        }
        running.stop().await;
        for id in [held, scheduled] {
            assert!(jobs.job(id).await.unwrap().unwrap().state.is_waiting());
        }
    }
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "later.kind", version = "1.0.0")]
struct Later {}

async fn later(_: Later, _: JobContext<App>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test]
async fn the_gate_refuses_what_no_live_worker_reads() {
    for scheme in SCHEMES {
        let jobs = fresh(scheme, Jobs::builder().gate(Gate::Refuse)).await;
        // Before the first worker of all everything may be enqueued.
        let first = jobs.enqueue(Order { cents: 700 }).await.unwrap().id();
        let old = Running::start(worker(&jobs, handlers(), App::default()));
        ended(&jobs, first).await;
        let refused = jobs.enqueue(Later {}).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unreadable);
        let what = "no live worker reads `later.kind` 1.0.0: deploy a worker that does before what \
                    enqueues it";
        assert_eq!(refused.to_string(), what);
        let text = NewJob::of(&Later {}, 1_024).unwrap();
        let refused = jobs.enqueue_new(text).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unreadable, "as a tool that knows no type for it");
        assert_eq!(stored(&jobs).await, 1, "nothing was stored");
        jobs.enqueue(Order { cents: 700 }).await.unwrap();
        let both = Registry::new().handle(order).handle(later).build().unwrap();
        let new = Running::start(worker(&jobs, both, App::default()));
        // A no stands for two seconds at most.
        let passes = async {
            while jobs.enqueue(Later {}).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), passes).await.expect("the gate opens");
        old.stop().await;
        new.stop().await;
    }
}

#[tokio::test]
async fn a_gate_that_warns_stores_all_the_same() {
    for scheme in SCHEMES {
        let jobs = fresh(scheme, Jobs::builder().gate(Gate::Warn)).await;
        let old = Running::start(worker(&jobs, handlers(), App::default()));
        until_a_worker_is_there(&jobs).await;
        jobs.enqueue(Later {}).await.unwrap();
        assert_eq!(stored(&jobs).await, 1);
        old.stop().await;
    }
}

#[tokio::test]
async fn programs_say_what_they_produce_and_workers_what_they_handle() {
    for scheme in SCHEMES {
        let jobs = fresh(scheme, Jobs::builder().build_label("shop 7").produces::<Later>()).await;
        let builds = jobs.inspect().builds().await.unwrap();
        assert_eq!(builds.len(), 1);
        assert_eq!(builds[0].build, "shop 7");
        let manifest = Manifest::parse(&builds[0].manifest).unwrap();
        assert_eq!(manifest.produces[0].kind, "later.kind");
        assert_eq!(manifest.produces[0].version, "1.0.0");
        let running = Running::start(worker(&jobs, handlers(), App::default()));
        until_a_worker_is_there(&jobs).await;
        let workers = jobs.inspect().workers().await.unwrap();
        let manifest = Manifest::parse(&workers[0].manifest).unwrap();
        assert_eq!(
            manifest.handles[0].reads,
            ["1.0 to 1.3", "2.0", "3.0 to 3.1", "4.0 to 4.2"],
            "in the words of the log"
        );
        assert_eq!(manifest.handles[0].checkpoint_reads, ["2.0 to 2.1"]);
        assert_eq!(manifest.handles[0].checkpoint_readable_by, "2.1");
        assert!(!manifest.handles[0].restarts);
        assert_eq!(manifest.handles[0].aliases, ["test.purchase"]);
        assert_eq!(manifest.retired, ["test.gone"]);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_program_that_enqueues_only_within_transactions_stays_known() {
    for scheme in SCHEMES.into_iter().filter(|scheme| !scheme.starts_with("memory")) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        let builder = Jobs::builder().clock(clock.clone()).produces::<Later>();
        let jobs = fresh(scheme, builder).await;
        let seen_at = async || jobs.inspect().builds().await.unwrap()[0].seen_at;
        let first = seen_at().await;
        clock.advance(Duration::from_hours(2));
        if scheme.starts_with("sqlite") {
            let mut tx = jobs.begin::<sqlx::Sqlite>().await.unwrap();
            jobs.enqueue(Later {}).in_tx(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
        } else {
            #[cfg(feature = "postgres")]
            {
                let mut tx = jobs.begin::<sqlx::Postgres>().await.unwrap();
                jobs.enqueue(Later {}).in_tx(&mut tx).await.unwrap();
                tx.commit().await.unwrap();
            }
        }
        let again = async {
            while seen_at().await == first {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), again).await.expect("it says so again");
    }
}

async fn until_a_worker_is_there(jobs: &Fresh) {
    let there = async {
        while jobs.inspect().workers().await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), there).await.expect("the worker registers");
}

async fn stored(jobs: &Jobs) -> u64 {
    jobs.inspect().counts().await.unwrap().iter().map(|count| count.jobs).sum()
}
