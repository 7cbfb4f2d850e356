//! Schedules by hand.

use std::time::Duration;

use jobs_runtime::{Job, JobContext, JobError, Jobs, Registry, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::session::over_both;

#[derive(Debug, Default, Serialize, Deserialize, Job)]
#[job(kind = "report.make", version = "1.0.0", schedule = "0 3 1 1 * Europe/Berlin")]
struct Report {
    #[serde(default)]
    week: Option<u32>,
}

async fn report(_: Report, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

/// Has a worker lead until every schedule is as somebody declares it.
async fn lead(jobs: &Jobs) {
    let (stop, stopped) = oneshot::channel::<()>();
    let handlers = Registry::new().handle(report).build().expect("the registry is in order");
    let worker = Worker::new(jobs, handlers, ());
    let working = worker.run_until(async { drop(stopped.await) });
    let watching = async {
        while jobs.schedules().await.unwrap().iter().any(|one| one.next_at.is_none()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(stop);
    };
    let (report, ()) = tokio::join!(working, watching);
    report.expect("the worker drains");
}

#[test]
fn schedules_are_declared_paused_and_taken_back_by_hand() {
    let weekly = "0 6 * * mon Europe/Berlin";
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        session.run(&["schedules"]);
        session.run(&["schedules", "--json"]);
        let version = ["--payload-version", "1.0.0"];
        let add = |name: &'static str, when: &'static str, payload: &'static str| {
            [&["schedules", "add", name, when, "report.make", payload], &version[..]].concat()
        };
        session.run(&add("weekly", weekly, r#"{"week":  18446744073709551615}"#));
        session
            .run(&[&add("hourly", "every 1h", "{}")[..], &["--catch-up", "3", "--json"]].concat());
        lead(&jobs).await;
        session.run(&["schedules"]);
        session.run(&["schedules", "--json"]);
        session.run(&["schedules", "ticks", "weekly"]);
        session.run(&["schedules", "ticks", "weekly", "--json"]);
        let pause = ["schedules", "pause", "weekly", "--reason", "the bank is away"];
        session.run(&pause);
        session.run(&pause);
        session.run(&add("weekly", weekly, "{}"));
        session.run(&["schedules"]);
        session.run(&["schedules", "resume", "weekly"]);
        session.run(&["schedules", "resume", "weekly"]);
        session.run(&["schedules", "remove", "weekly"]);
        session.run(&["schedules", "remove", "weekly", "--yes"]);
        session.run(&["schedules", "remove", "nightly", "--yes"]);
        session.run(&["schedules", "pause", "nightly", "--reason", "none"]);
        session.run(&["schedules"]);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn what_builds_declare_can_be_replaced_and_paused_but_not_removed() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        let handlers = Registry::new().handle(report).build().expect("the registry is in order");
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(&jobs, handlers, ()).name("first");
        let working = worker.run_until(async { drop(stopped.await) });
        let session = async {
            let is_led =
                async || jobs.schedules().await.unwrap().iter().any(|one| one.next_at.is_some());
            while !is_led().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            session.run(&["schedules"]);
            session.run(&["schedules", "remove", "report.make", "--yes"]);
            session.run(&["schedules", "pause", "report.make", "--reason", "the bank is away"]);
            session.run(&["schedules"]);
            session.run(&["schedules", "--json"]);
            session.run(&["schedules", "resume", "report.make"]);
            let add = ["schedules", "add", "report.make", "0 4 1 1 *", "report.make", "{}"];
            session.run(&[&add[..], &["--payload-version", "1.0.0"]].concat());
            let declared = &session.json(&["schedules", "--json"])[0]["declared"];
            let declared = declared.as_array().unwrap().iter();
            let counts: Vec<_> = declared.map(|one| one["counts"].as_bool()).collect();
            assert_eq!(counts, [Some(true), Some(false)], "a person's declaration counts");
            session.run(&["schedules", "remove", "report.make", "--yes"]);
            drop(stop);
        };
        let (report, ()) = tokio::join!(working, session);
        report.expect("the worker drains");
    });
    insta::assert_snapshot!(text);
}
