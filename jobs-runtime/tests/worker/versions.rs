//! Checkpoints of other versions than a build's own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use jobs_runtime::prelude::*;
use jobs_runtime::store::{
    Author, CheckpointSave, Claim, Claimed, Head, Leaving, NewWorker, Saved, Standing,
};
use jobs_runtime::{
    BuildId, Handlers, JobId, JobRecord, Lease, MinReader, Place, QueueName, Route, State, Version,
    Versioned, WorkerName,
};
use serde::{Deserialize, Serialize};

use crate::support::{Fresh, Running, ended, open, until, worker};

/// The steps that runs took, and the build of each.
#[derive(Debug, Clone, Default)]
struct Steps(Arc<Mutex<Vec<(&'static str, u32)>>>);

impl Steps {
    fn taken(&self) -> Vec<(&'static str, u32)> {
        self.0.lock().unwrap().clone()
    }
}

/// A checkpoint that counts steps.
trait Counts: Versioned {
    fn at(step: u32) -> Self;
    fn step(&self) -> u32;
}

/// Takes so many steps a run, until all are taken.
async fn take_steps<C: Counts>(
    build: &'static str,
    (each, last): (u32, u32),
    mut cx: JobContext<Steps, C>,
) -> Result<Outcome, JobError> {
    let mut at = cx.resume_or(C::at(0));
    for _ in 0..each {
        at = C::at(at.step() + 1);
        cx.state.0.lock().unwrap().push((build, at.step()));
        cx.checkpoint(&at).await?;
        if at.step() >= last {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::Snooze(Duration::ZERO))
}

/// The job of one build, and the checkpoint that it saves there.
macro_rules! build {
    ($name:ident, $field:ident, $each:literal of $last:literal, [$($checkpoint:tt)*], [$($job:tt)*]) => {
        mod $name {
            use super::*;

            #[derive(Debug, Serialize, Deserialize, Checkpoint)]
            #[checkpoint($($checkpoint)*)]
            pub(super) struct At {
                pub(super) $field: u32,
            }

            impl Counts for At {
                fn at($field: u32) -> Self {
                    Self { $field }
                }

                fn step(&self) -> u32 {
                    self.$field
                }
            }

            #[derive(Debug, Serialize, Deserialize, Job)]
            #[job(kind = "test.export", version = "1.0.0", checkpoint = At, $($job)*)]
            pub(super) struct Export {}

            impl Handler<Steps> for Export {
                async fn run(self, cx: JobContext<Steps, At>) -> Result<Outcome, JobError> {
                    take_steps(stringify!($name), ($each, $last), cx).await
                }
            }

            pub(super) fn handlers() -> Handlers<Steps> {
                Registry::new().job::<Export>().build().unwrap()
            }
        }
    };
}

build!(v1_0, step, 2 of 40, [version = "1.0.0"], []);
build!(v1_1, step, 2 of 40, [version = "1.1.0", readable_by = "1.0"], []);
build!(v2_0, done, 30 of 60, [version = "2.0.0", previous = super::v1_1::At], []);
build!(v2_alone, done, 30 of 60, [version = "2.0.0"], []);
build!(v2_anew, done, 2 of 4, [version = "2.0.0"], [on_old_checkpoint = "restart"]);
build!(fails, done, 30 of 60, [version = "2.0.0", previous = super::v1_0::At], []);
build!(panics, done, 30 of 60, [version = "2.0.0", previous = super::v1_1::At], []);

impl From<v1_1::At> for v2_0::At {
    fn from(past: v1_1::At) -> Self {
        Self { done: past.step }
    }
}

impl TryFrom<v1_0::At> for fails::At {
    type Error = String;

    fn try_from(past: v1_0::At) -> Result<Self, String> {
        Err(format!("no step {}", past.step))
    }
}

impl From<v1_1::At> for panics::At {
    fn from(past: v1_1::At) -> Self {
        panic!("step {}", past.step)
    }
}

/// A job of the same kind that saves none.
mod none {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "test.export", version = "1.0.0")]
    struct Export {}

    async fn export(_: Export, cx: JobContext<Steps>) -> Result<(), JobError> {
        cx.state.0.lock().unwrap().push(("none", 0));
        Ok(())
    }

    pub(super) fn handlers() -> Handlers<Steps> {
        Registry::new().handle(export).build().unwrap()
    }
}

fn start(jobs: &Jobs, handlers: Handlers<Steps>, steps: &Steps) -> Running {
    Running::start(worker(jobs, handlers, steps.clone()))
}

/// A waiting job with such a checkpoint.
async fn with_checkpoint(jobs: &Fresh, version: Version, reader: MinReader, text: &str) -> JobId {
    let id = jobs.enqueue(v1_0::Export {}).await.unwrap().id();
    let name = WorkerName::new("planter").unwrap();
    let (build, lease) = (BuildId::default(), Lease::default());
    let new = NewWorker { name, build: build.clone(), manifest: "{}".to_owned(), lease };
    let worker = jobs.store().register(&new).await.unwrap();
    let route = Route::derive("test.export", "1.0.0", None);
    let head = Head { queue: QueueName::default(), route, from: Place::FIRST, limit: 1 };
    let claim = Claim { worker, heads: &[head], limit: 1 };
    let Claimed::Jobs(runs) = jobs.store().claim(claim).await.unwrap() else {
        panic!("the worker has just registered")
    };
    let fence = runs[0].fence;
    let (text, keeps_failures) = (text.to_owned(), false);
    let save = CheckpointSave { fence, version, min_reader: reader, text, keeps_failures };
    let saved = jobs.store().checkpoint(&[save]).await.unwrap();
    assert_eq!(saved, [Saved::Answered(Standing::Held)]);
    let by = Author { worker: None, build };
    let mut heartbeat = jobs.store().heartbeat().await.unwrap();
    assert_eq!(heartbeat.close(worker, &by, &Leaving::default()).await.unwrap(), [id]);
    id
}

/// What a build does with a waiting job that has such a checkpoint.
async fn met(
    jobs: &Fresh,
    handlers: Handlers<Steps>,
    (version, reader): (Version, (u32, u32)),
    text: &str,
) -> (JobRecord, Vec<(&'static str, u32)>) {
    let min_reader = MinReader { major: reader.0, minor: reader.1 };
    let id = with_checkpoint(jobs, version, min_reader, text).await;
    let steps = Steps::default();
    let running = start(jobs, handlers, &steps);
    let is_met = |record: &JobRecord| record.state.is_finished() || record.counters.refusals > 0;
    let record = until(jobs, id, is_met).await;
    running.stop().await;
    jobs.operate().cancel(&[id]).await.unwrap();
    (record, steps.taken())
}

fn assert_refused((record, steps): (JobRecord, Vec<(&'static str, u32)>), text: &str) {
    assert_eq!(steps, [], "{text}");
    assert_eq!(record.refused.unwrap().reason, "checkpoint", "{text}");
    assert_eq!(record.checkpoint.unwrap().text, text);
    let counters = record.counters;
    assert_eq!((counters.failures, counters.crashes), (0, 0), "{text}");
}

const V1: (Version, (u32, u32)) = (Version::new(1, 0, 0), (1, 0));
const V1_1: (Version, (u32, u32)) = (Version::new(1, 1, 0), (1, 1));
const V1_9_VOUCHED: (Version, (u32, u32)) = (Version::new(1, 9, 0), (1, 0));
const V2: (Version, (u32, u32)) = (Version::new(2, 0, 0), (2, 0));
const V3: (Version, (u32, u32)) = (Version::new(3, 0, 0), (3, 0));

#[tokio::test]
async fn a_checkpoint_that_a_build_does_not_read_is_refused_and_kept() {
    for jobs in open().await {
        let newer_minor = r#"{"step":7}"#;
        assert_refused(met(&jobs, v1_0::handlers(), V1_1, newer_minor).await, newer_minor);
        let newer = r#"{"done":7}"#;
        assert_refused(met(&jobs, v1_0::handlers(), V2, newer).await, newer);
        assert_refused(met(&jobs, v2_anew::handlers(), V3, newer).await, newer);
        let older = r#"{"step":7}"#;
        assert_refused(met(&jobs, v2_alone::handlers(), V1, older).await, older);
        assert_refused(met(&jobs, none::handlers(), V1, older).await, older);
        let wrongly_vouched = r#"{"text":"7"}"#;
        let met = met(&jobs, v1_0::handlers(), V1_9_VOUCHED, wrongly_vouched).await;
        assert_refused(met, wrongly_vouched);
    }
}

#[tokio::test]
async fn a_checkpoint_of_an_older_major_is_resumed_through_its_upcast() {
    for jobs in open().await {
        let (record, steps) = met(&jobs, v2_0::handlers(), V1, r#"{"step":57}"#).await;
        assert_eq!(steps, [("v2_0", 58), ("v2_0", 59), ("v2_0", 60)]);
        assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
    }
}

#[tokio::test]
async fn a_job_begins_anew_from_a_checkpoint_that_is_too_old_where_it_says_so() {
    for jobs in open().await {
        let (record, steps) = met(&jobs, v2_anew::handlers(), V1, r#"{"step":57}"#).await;
        assert_eq!(steps, [1, 2, 3, 4].map(|step| ("v2_anew", step)));
        assert_eq!(record.checkpoint.unwrap().text, r#"{"done":4}"#);
    }
}

#[tokio::test]
async fn a_checkpoint_that_does_not_decode_is_dead_with_its_bytes_kept() {
    for jobs in open().await {
        let cases = [
            (v1_0::handlers(), V1, r#"{"step":"x"}"#, "malformed_checkpoint", "invalid type"),
            (v1_0::handlers(), V1, "{", "malformed_checkpoint", "EOF"),
            (fails::handlers(), V1, r#"{"step":7}"#, "upcast_failed", "no step 7"),
            (panics::handlers(), V1, r#"{"step":8}"#, "upcast_failed", "step 8"),
        ];
        for (handlers, version, text, class, says) in cases {
            let (record, steps) = met(&jobs, handlers, version, text).await;
            assert_eq!((record.state, steps), (State::Dead, vec![]), "{text}");
            assert_eq!(record.error_class.as_deref(), Some(class), "{text}");
            let error = record.error.unwrap();
            assert!(error.contains(says), "{error}");
            assert_eq!(record.checkpoint.unwrap().text, text);
        }
    }
}

/// Every step was taken once, and in order.
fn assert_in_order(steps: &Steps, last: u32) {
    let taken = steps.taken();
    let numbers: Vec<u32> = taken.iter().map(|(_, step)| *step).collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "{taken:?}");
}

#[tokio::test]
async fn builds_take_turns_at_a_job_as_far_as_they_read_each_others_checkpoints() {
    let all = open().await;
    join_all(all.iter().map(take_turns)).await;
}

async fn take_turns(jobs: &Fresh) {
    // 1.1 vouches for 1.0, so the two take turns to the end.
    let steps = Steps::default();
    let old = [v1_0::handlers(), v1_1::handlers()].map(|it| start(jobs, it, &steps));
    let id = jobs.enqueue(v1_0::Export {}).await.unwrap().id();
    assert_eq!(ended(jobs, id).await.state, State::Succeeded);
    assert_in_order(&steps, 40);
    for running in old {
        running.stop().await;
    }
    // 2.0 vouches for nobody: from its first checkpoint on it alone goes on, and from there.
    let steps = Steps::default();
    let old = [v1_0::handlers(), v1_1::handlers()].map(|it| start(jobs, it, &steps));
    let id = jobs.enqueue(v1_0::Export {}).await.unwrap().id();
    until(jobs, id, |_| steps.taken().len() > 5).await;
    let new = start(jobs, v2_0::handlers(), &steps);
    // What the new one leaves half done the old ones refuse, until they are gone.
    let is_refused =
        |record: &JobRecord| record.state.is_finished() || record.counters.refusals > 0;
    until(jobs, id, is_refused).await;
    for running in old {
        running.stop().await;
    }
    let record = ended(jobs, id).await;
    assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
    let taken = steps.taken();
    let first = taken.iter().position(|(build, _)| *build == "v2_0");
    // Perhaps the old ones were done before it came.
    assert_in_order(&steps, if first.is_some() { 60 } else { 40 });
    let is_new = |(build, _): &(&str, u32)| *build == "v2_0";
    assert!(taken[first.unwrap_or(taken.len())..].iter().all(is_new), "{taken:?}");
    new.stop().await;
}
