//! Middleware that misbehaves, and clients that ask for what is not there.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{ErrorKind, JobId, State};

use crate::support::{Act, App, Running, act, ended, open, until, worker};

async fn run(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}

#[tokio::test]
async fn a_middleware_that_panics_is_a_failure_of_the_run() {
    for jobs in open().await {
        let before = Registry::new().handle(run).around(|_, _, _| async { panic!("before") });
        let after = Registry::new().handle(run).around(|_, _, next| async move {
            drop(next.run().await);
            panic!("after")
        });
        let at_once = Registry::new().handle(run).around(|_, run, next| {
            assert!(run.failures() > 0, "at once");
            next.run()
        });
        for (registry, text, runs) in
            [(before, "before", 0), (after, "after", 1), (at_once, "at once", 0)]
        {
            let app = App::default();
            let running = Running::start(worker(&jobs, registry.build().unwrap(), app.clone()));
            let id = jobs.enqueue(act("")).await.unwrap().id();
            let record = ended(&jobs, id).await;
            assert_eq!((record.state, app.count()), (State::Dead, runs), "{text}");
            assert_eq!(record.error_class.as_deref(), Some("panic"));
            assert!(record.error.unwrap().contains(text));
            running.stop().await;
        }
    }
}

#[tokio::test]
async fn a_middleware_that_never_runs_the_rest_decides_the_outcome() {
    for jobs in open().await {
        let handlers = Registry::new().handle(run).around(|_: App, run, _| async move {
            match run.headers().get("then").map(String::as_str) {
                Some("fail") => Err(JobError::new("not today").class("skipped")),
                Some("snooze") => Ok(Outcome::Snooze(Duration::from_hours(1))),
                _ => Ok(Outcome::Done),
            }
        });
        let app = App::default();
        let running = Running::start(worker(&jobs, handlers.build().unwrap(), app.clone()));
        let done = jobs.enqueue(act("")).await.unwrap().id();
        assert_eq!(ended(&jobs, done).await.state, State::Succeeded);
        let failed = jobs.enqueue(act("")).header("then", "fail").await.unwrap().id();
        assert_eq!(ended(&jobs, failed).await.error_class.as_deref(), Some("skipped"));
        let snoozed = jobs.enqueue(act("")).header("then", "snooze").await.unwrap().id();
        let snoozed = until(&jobs, snoozed, |record| record.counters.snoozes == 1).await;
        assert_eq!(snoozed.state, State::Scheduled);
        running.stop().await;
        assert_eq!(app.count(), 0, "no handler ran");
    }
}

#[tokio::test]
async fn a_middleware_that_hangs_is_bounded_by_the_drain() {
    for jobs in open().await {
        let handlers = Registry::new().handle(run).around(|app: App, _, next| async move {
            app.ran();
            let _kept = next;
            std::future::pending().await
        });
        let app = App::default();
        let worker = worker(&jobs, handlers.build().unwrap(), app.clone());
        let running = Running::start(worker.grace_period(Duration::from_secs(1)));
        let id = jobs.enqueue(act("")).await.unwrap().id();
        until(&jobs, id, |_| app.count() == 1).await;
        let report = running.stop().await;
        assert_eq!((report.interrupted, report.abandoned), (1, 0));
        assert_eq!(jobs.job(id).await.unwrap().unwrap().state, State::Ready);
    }
}

#[tokio::test]
async fn a_job_that_is_not_there_is_none_and_no_wait() {
    for jobs in open().await {
        for id in [JobId(0), JobId(1), JobId(-1), JobId(i64::MAX), JobId(i64::MIN)] {
            assert!(jobs.job(id).await.unwrap().is_none());
            let error = jobs.wait(id).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.to_string().contains(&id.to_string()) && !error.is_transient());
        }
    }
}
