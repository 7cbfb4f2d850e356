//! Values on their way through a store: kept exactly, or refused with a clear error.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{Error, ErrorKind, State, chain};
use serde::{Deserialize, Serialize};

use crate::support::{Fresh, Running, SCHEMES, ended, fresh, open, open_sqlite, worker};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "test.exact", version = "1.0.0", checkpoint = At)]
struct Exact {
    ids: Vec<u64>,
    least: i64,
    ratio: f64,
    texts: BTreeMap<String, String>,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Line {
    price: f32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At {
    exact: Exact,
}

/// What the handlers saw: payloads, and checkpoints after a failure.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<Exact>>>);

async fn see(job: Exact, mut cx: JobContext<Seen, At>) -> Result<(), JobError> {
    if cx.failures() == 0 {
        cx.checkpoint(&At { exact: job }).await?;
        return Err(JobError::new("again").retry_in(std::time::Duration::ZERO));
    }
    let at = cx.resume_or(At { exact: Exact::default() });
    cx.state.0.lock().unwrap().extend([job, at.exact]);
    Ok(())
}

fn exact() -> Exact {
    let hostile = ["\0", "a\0b", "", "\u{feff}", "\u{202e}", "🦀", "'; DROP TABLE jobs_job; --"];
    Exact {
        ids: vec![(1 << 53) + 1, 1_970_670_598_291_982_290, u64::MAX],
        least: i64::MIN,
        ratio: 0.1,
        texts: hostile.map(|text| (text.to_owned(), text.to_owned())).into(),
        lines: vec![Line { price: 0.1 }, Line { price: f32::MIN_POSITIVE }],
    }
}

#[tokio::test]
async fn every_digit_and_every_character_reaches_the_handler_also_by_way_of_a_checkpoint() {
    for jobs in open().await {
        let seen = Seen::default();
        let handlers = Registry::new().handle(see).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, seen.clone()));
        let id = jobs.enqueue(exact()).await.unwrap().id();
        assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        running.stop().await;
        assert_eq!(*seen.0.lock().unwrap(), [exact(), exact()]);
    }
}

async fn is_empty(jobs: &Fresh) -> bool {
    jobs.inspect().jobs(&Filter::default(), 1).await.unwrap().is_empty()
}

#[tokio::test]
async fn what_json_cannot_keep_is_refused_with_its_field() {
    for jobs in open().await {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = jobs.enqueue(Exact { ratio: odd, ..exact() }).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Payload);
            assert!(chain(&error).contains("`ratio`"), "{}", chain(&error));
        }
        let deep = Exact { lines: vec![Line::default(), Line { price: f32::NAN }], ..exact() };
        let error = chain(&jobs.enqueue(deep.clone()).await.unwrap_err());
        assert!(error.contains("`lines[1].price`"), "{error}");
        // One bad job of many: none is stored.
        let error = jobs.enqueue_all([exact(), deep]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Payload);
        assert!(is_empty(&jobs).await);
    }
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.bulky", version = "1.0.0")]
struct Bulky(String);

/// A payload of this many bytes as JSON text: the text and its two quotes.
fn bulky(bytes: usize) -> Bulky {
    Bulky("x".repeat(bytes - 2))
}

const MIB: usize = 1024 * 1024;

fn assert_too_large(error: &Error, bytes: usize, limit: usize) {
    let text = chain(error);
    assert_eq!(error.kind(), ErrorKind::Payload, "{text}");
    let wanted = format!("test.bulky has {bytes} bytes, more than the limit of {limit}");
    assert!(text.contains(&wanted) && text.len() < 1_000, "{text}");
}

#[tokio::test]
async fn a_payload_at_the_limit_runs_and_one_byte_more_stores_nothing() {
    async fn measure(job: Bulky, cx: JobContext<Arc<Mutex<usize>>>) -> Result<(), JobError> {
        *cx.state.lock().unwrap() = job.0.len();
        Ok(())
    }

    for limit in [MIB, 100, 4 * MIB] {
        for scheme in SCHEMES {
            let builder = match limit {
                MIB => Jobs::builder(),
                limit => Jobs::builder().max_payload_bytes(limit),
            };
            let jobs = fresh(scheme, builder).await;
            let error = jobs.enqueue(bulky(limit + 1)).await.unwrap_err();
            assert_too_large(&error, limit + 1, limit);
            let many = [bulky(limit), bulky(limit + 1)];
            assert_too_large(&jobs.enqueue_all(many).await.unwrap_err(), limit + 1, limit);
            assert!(is_empty(&jobs).await);
            let length = Arc::new(Mutex::new(0));
            let handlers = Registry::new().handle(measure).build().unwrap();
            let running = Running::start(worker(&jobs, handlers, length.clone()));
            let id = jobs.enqueue(bulky(limit)).await.unwrap().id();
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
            running.stop().await;
            assert_eq!(*length.lock().unwrap(), limit - 2);
        }
    }
}

#[tokio::test]
async fn a_limit_that_no_store_can_keep_is_refused() {
    for bytes in [0, 256 * MIB + 1, usize::MAX] {
        let opened = Jobs::builder().max_payload_bytes(bytes).open("memory:").await;
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    }
    Jobs::builder().max_payload_bytes(256 * MIB).open("memory:").await.unwrap();
}

#[tokio::test]
async fn a_payload_over_the_limit_leaves_the_transaction_as_it_was() {
    let jobs = open_sqlite().await;
    let mut tx = jobs.begin::<sqlx::Sqlite>().await.unwrap();
    let huge = jobs.enqueue(bulky(1024 * 1024 + 1)).in_tx(&mut tx).await;
    assert_too_large(&huge.unwrap_err(), 1024 * 1024 + 1, 1024 * 1024);
    let kept = jobs.enqueue(bulky(10)).in_tx(&mut tx).await.unwrap().id();
    tx.commit().await.unwrap();
    assert!(jobs.job(kept).await.unwrap().is_some());
}

#[tokio::test]
async fn names_that_no_store_keeps_are_refused_and_others_are_kept_as_they_are() {
    for jobs in open().await {
        let long = "k".repeat(513);
        for key in ["", "a\0b", "\n", "\u{7f}", &long] {
            let error = jobs.enqueue(bulky(9)).unique_key(key).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{key:?}");
            assert!(error.to_string().contains("unique key"), "{error}");
        }
        for queue in ["", "a\0b", "\u{1b}[31m", &long] {
            let error = jobs.enqueue(bulky(9)).queue(queue).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{queue:?}");
            assert!(error.to_string().contains("queue name"), "{error}");
        }
        let huge = jobs.enqueue(bulky(9)).header("h", "x".repeat(16 * 1024)).await;
        assert_eq!(huge.unwrap_err().kind(), ErrorKind::Payload);
        assert!(is_empty(&jobs).await);
        let odd =
            ["'; DROP TABLE jobs_job; --", "\"", "%", "🦀", "\u{202e}", " ", "<script>", "null"];
        for name in odd {
            let one = jobs.enqueue(bulky(9)).unique_key(name).queue(name).header(name, "\0");
            let record = jobs.job(one.await.unwrap().id()).await.unwrap().unwrap();
            assert_eq!((record.queue.as_str(), record.unique_key.as_deref()), (name, Some(name)));
            let headers: BTreeMap<String, String> =
                serde_json::from_str(&record.headers.unwrap()).unwrap();
            assert_eq!(headers[name], "\0");
        }
    }
    for label in ["", "a\0b", &"b".repeat(256)] {
        let refused = Jobs::builder().build_label(label).open("memory:").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Configuration, "{label:?}");
    }
}
