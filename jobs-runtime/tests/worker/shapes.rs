//! Payloads of every shape, and kinds apart from the names of their types.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jobs_runtime::prelude::*;
use jobs_runtime::{JobId, State};
use serde::{Deserialize, Serialize};

use crate::support::{Fresh, Running, ended, open, worker};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.unit", version = "1.0.0")]
struct Unit;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.empty", version = "1.0.0")]
struct Empty {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.empty_tuple", version = "1.0.0")]
struct EmptyTuple();

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.tuple", version = "1.0.0")]
struct Tuple(u8, String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.newtype", version = "1.0.0")]
struct Newtype(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.none", version = "1.0.0")]
struct Nothing {
    memo: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.newtype_none", version = "1.0.0")]
struct NewtypeOfNone(Option<u8>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "shape.choice", version = "1.0.0")]
enum Choice {
    Unit,
    Tuple(u8, u8),
    Named { at: i64 },
}

/// What ran, by job, as the handlers got it.
type Seen = Arc<Mutex<BTreeMap<JobId, String>>>;

async fn see<J: Job + std::fmt::Debug>(job: J, cx: JobContext<Seen>) -> Result<(), JobError> {
    let before = cx.state.lock().unwrap().insert(cx.id(), format!("{job:?}"));
    assert_eq!(before, None, "it runs once");
    Ok(())
}

fn worker_of_all(jobs: &Jobs, seen: &Seen) -> Running {
    let handlers = Registry::new()
        .handle(see::<Unit>)
        .handle(see::<Empty>)
        .handle(see::<EmptyTuple>)
        .handle(see::<Tuple>)
        .handle(see::<Newtype>)
        .handle(see::<Nothing>)
        .handle(see::<NewtypeOfNone>)
        .handle(see::<Choice>);
    Running::start(worker(jobs, handlers.build().unwrap(), seen.clone()))
}

/// Enqueues one job of every shape; answers what their handlers must see.
async fn enqueue_all(jobs: &Fresh) -> BTreeMap<JobId, String> {
    let mut wanted = BTreeMap::new();
    macro_rules! enqueue {
        ($($job:expr),+) => {
            $(
                let id = jobs.enqueue($job).await.unwrap().id();
                wanted.insert(id, format!("{:?}", $job));
            )+
        };
    }
    enqueue!(
        Unit,
        Empty {},
        EmptyTuple(),
        Tuple(0, String::new()),
        Newtype(u64::MAX),
        Nothing { memo: None },
        NewtypeOfNone(None),
        Choice::Unit,
        Choice::Tuple(1, 2),
        Choice::Named { at: i64::MIN }
    );
    wanted
}

#[tokio::test]
async fn every_shape_runs_from_one_queue_over_three_restarts() {
    for jobs in open().await {
        let seen = Seen::default();
        let mut wanted = BTreeMap::new();
        for _ in 0..3 {
            // The first stored jobs wait for the worker, the others find it running.
            wanted.append(&mut enqueue_all(&jobs).await);
            let running = worker_of_all(&jobs, &seen);
            wanted.append(&mut enqueue_all(&jobs).await);
            for id in wanted.keys() {
                assert_eq!(ended(&jobs, *id).await.state, State::Succeeded);
            }
            running.stop().await;
        }
        assert_eq!(*seen.lock().unwrap(), wanted);
    }
}

#[tokio::test]
async fn one_row_that_does_not_decode_parks_alone_among_its_kind() {
    for jobs in open().await {
        let mut wrong = jobs_runtime::NewJob::of(&Unit, 1_000).unwrap();
        for payload in ["{}", "[]", "\"unit\"", "0"] {
            payload.clone_into(&mut wrong.payload);
            jobs.store().enqueue(std::slice::from_ref(&wrong)).await.unwrap();
        }
        let wanted = enqueue_all(&jobs).await;
        let seen = Seen::default();
        let running = worker_of_all(&jobs, &seen);
        for id in wanted.keys() {
            assert_eq!(ended(&jobs, *id).await.state, State::Succeeded);
        }
        running.stop().await;
        assert_eq!(*seen.lock().unwrap(), wanted);
    }
}

mod before {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "shop.report", version = "1.0.0")]
    pub(crate) struct Report {
        pub(crate) of: u32,
    }

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "shop.invoice", version = "1.0.0")]
    pub(crate) struct Invoice {
        pub(crate) of: u32,
    }
}

mod after {
    pub(crate) mod deeper {
        use super::super::*;

        /// Moved here: its kind is as before.
        #[derive(Debug, Serialize, Deserialize, Job)]
        #[job(kind = "shop.report", version = "1.0.0")]
        pub(crate) struct Report {
            pub(crate) of: u32,
        }

        /// Renamed, and its kind too.
        #[derive(Debug, Serialize, Deserialize, Job)]
        #[job(kind = "shop.bill", version = "1.0.0", aliases("shop.invoice"))]
        pub(crate) struct Bill {
            pub(crate) of: u32,
        }
    }
}

#[tokio::test]
async fn rows_of_a_moved_and_of_a_renamed_type_still_run() {
    for jobs in open().await {
        let moved = jobs.enqueue(before::Report { of: 1 }).await.unwrap().id();
        let renamed = jobs.enqueue(before::Invoice { of: 2 }).await.unwrap().id();
        let fresh = jobs.enqueue(after::deeper::Bill { of: 3 }).await.unwrap().id();
        let handlers = Registry::new()
            .handle(see::<after::deeper::Report>)
            .handle(see::<after::deeper::Bill>)
            .build();
        let seen = Seen::default();
        let running = Running::start(worker(&jobs, handlers.unwrap(), seen.clone()));
        for id in [moved, renamed, fresh] {
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        running.stop().await;
        let seen = seen.lock().unwrap();
        assert_eq!(seen[&moved], "Report { of: 1 }");
        assert_eq!(seen[&renamed], "Bill { of: 2 }");
        assert_eq!(seen[&fresh], "Bill { of: 3 }");
    }
}

#[tokio::test]
async fn two_types_of_one_kind_are_refused_before_anything_runs() {
    let clash = Registry::<Seen>::new()
        .handle(see::<before::Report>)
        .handle(see::<after::deeper::Report>)
        .build()
        .unwrap_err()
        .to_string();
    for wanted in ["shop.report", "before::Report", "after::deeper::Report"] {
        assert!(clash.contains(wanted), "{clash}");
    }
}
