//! What a worker measures of jobs that are not as they should be.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Author, Claim, Claimed, Head, Leaving, NewWorker};
use jobs_runtime::{
    BuildId, Counters, Ending, JobId, Kind, Ladder, Lease, MinReader, NOT_PROGRESSING, NewJob,
    Place, QueueName, Route, Run, Settlement, State, Version, WorkerName, transition,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::support::{Act, App, Running, act, ended, fresh, until, worker};

async fn go(job: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    if job.how == "away" { Err(JobError::new("away").infrastructure()) } else { Ok(()) }
}

fn measured(rendered: &PrometheusHandle, name: &str) -> String {
    let text = rendered.render();
    let line = text.lines().find(|line| line.starts_with(name));
    line.unwrap_or_else(|| panic!("{name} is not in:\n{text}")).to_owned()
}

/// A job of a newer build that says this one can read it.
fn vouched(payload: &str) -> NewJob {
    let kind = Kind::new("test.act").unwrap();
    let job = NewJob::from_text(kind, Version::new(1, 1, 0), payload.to_owned());
    NewJob { min_reader: MinReader { major: 1, minor: 0 }, ..job }
}

#[tokio::test]
async fn reads_that_only_the_writer_vouches_for_are_measured_and_so_is_a_wrong_word() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let rendered = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let jobs = fresh("memory:", Jobs::builder()).await;
    let handlers = Registry::new().handle(go).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    let plain = jobs.enqueue(act("")).await.unwrap().id();
    ended(&jobs, plain).await;
    let read = jobs.enqueue_new(vouched(r#"{"how":"","since":"1.1"}"#)).await.unwrap().id();
    assert_eq!(ended(&jobs, read).await.state, State::Succeeded);
    let unread = jobs.enqueue_new(vouched(r#"{"what":"is how no more"}"#)).await.unwrap().id();
    until(&jobs, unread, |record| record.counters.refusals > 0).await;
    running.stop().await;
    let tolerant = measured(&rendered, "jobs_tolerant_reads_total{kind=\"test.act\"}");
    assert!(tolerant.ends_with(" 1"), "{tolerant}");
    let wrong = measured(&rendered, "jobs_wrong_vouches_total ");
    assert!(wrong.ends_with(" 1"), "{wrong}");
}

/// Makes a job look as if so many runs of it had been interrupted.
async fn interrupt(jobs: &Jobs, id: JobId, interruptions: u32) {
    let new = NewWorker {
        name: WorkerName::new("gone").unwrap(),
        build: BuildId::default(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    let gone = jobs.store().register(&new).await.unwrap();
    let route = Route::derive("test.act", "1.0.0", None);
    let head = Head { queue: QueueName::default(), route, from: Place::FIRST, limit: 1 };
    let claim = Claim { worker: gone, heads: std::slice::from_ref(&head), limit: 1 };
    let Claimed::Jobs(claimed) = jobs.store().claim(claim).await.unwrap() else {
        panic!("the worker is open");
    };
    assert_eq!(claimed[0].fence.job, id);
    let unstarted = transition(&Run::from(&claimed[0]), &Ending::Unstarted, &Ladder::default(), 0);
    let counters = Counters { interruptions, ..Counters::default() };
    let by = Author { worker: Some(gone), build: BuildId::default() };
    jobs.store().settle(&by, &[Settlement { counters, ..unstarted }]).await.unwrap();
    let mut heartbeat = jobs.store().heartbeat().await.unwrap();
    heartbeat.close(gone, &by, &Leaving::default()).await.unwrap();
}

#[tokio::test]
async fn a_job_that_does_not_get_on_is_measured() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let rendered = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let jobs = fresh("memory:", Jobs::builder()).await;
    let often = jobs.enqueue(act("away")).await.unwrap().id();
    interrupt(&jobs, often, NOT_PROGRESSING - 1).await;
    let seldom = jobs.enqueue(act("away")).await.unwrap().id();
    let handlers = Registry::new().handle(go).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    until(&jobs, seldom, |record| record.counters.interruptions > 0).await;
    let record =
        until(&jobs, often, |record| record.counters.interruptions == NOT_PROGRESSING).await;
    assert!(record.due_at.since(record.enqueued_at) > Duration::from_secs(30), "it is put off");
    running.stop().await;
    assert!(measured(&rendered, "jobs_not_progressing_total").ends_with(" 1"));
}
