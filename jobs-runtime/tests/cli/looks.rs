//! Looking at jobs, workers and queues.

use std::time::Duration;

use jobs_runtime::{Job, JobError, JobId, Jobs, Registry, ResultExt as _, UniqueWhile, Worker};
use serde::{Deserialize, Serialize};

use crate::session::over_both;

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "2.1.0", queue = "billing", max_failures = 1)]
pub(crate) struct Charge {
    pub(crate) order: i64,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "mail.send", version = "1.0.0")]
pub(crate) struct Mail {
    pub(crate) to: String,
}

async fn charge(job: Charge, _: jobs_runtime::JobContext<()>) -> Result<(), JobError> {
    if job.order < 0 { Err(JobError::from(std::io::Error::other("no such order"))) } else { Ok(()) }
}

async fn mail(job: Mail, _: jobs_runtime::JobContext<()>) -> Result<(), JobError> {
    match job.to.strip_prefix("nobody: ") {
        Some(why) => Err(std::io::Error::other(why.to_owned())).permanent(),
        None => Ok(()),
    }
}

pub(crate) fn handlers() -> jobs_runtime::Handlers<()> {
    Registry::new().handle(charge).handle(mail).build().expect("the registry is in order")
}

#[test]
fn a_store_is_looked_at_without_json() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        session.run(&["list"]);
        session.run(&["list", "--json"]);
        session.run(&["workers", "--json"]);
        let dead = jobs.enqueue(Charge { order: -7 }).await.unwrap().id();
        let done = jobs.enqueue(Mail { to: "ann".to_owned() }).await.unwrap().id();
        work(&jobs, &[dead, done]).await;
        let later = Duration::from_hours(24 * 365);
        jobs.enqueue(Mail { to: "bob".to_owned() }).delay(later).await.unwrap();
        session.run(&["list"]);
        session.run(&["list", "--state", "dead", "--columns", "id,class,error,build"]);
        session.run(&["list", "--limit", "1"]);
        session.run(&["list", "--limit", "1", "--oldest"]);
        session.run(&[
            "list",
            "--class",
            "error",
            "--ended-since",
            "1h",
            "--failed-by",
            "shop 1.0",
        ]);
        session.run(&["list", "--ended-until", "1h"]);
        session.run(&["list", "--after", "3", "--kind", "mail.send", "--columns", "id,payload"]);
        session.run(&["show", "1"]);
        session.run(&["show", "4"]);
        session.run(&["workers"]);
        session.run(&["workers", "--all"]);
    });
    insta::assert_snapshot!(text);
}

/// Runs jobs until each of these has ended.
pub(crate) async fn work(jobs: &Jobs, ids: &[JobId]) {
    let until = async {
        for id in ids {
            jobs.wait(*id).await.unwrap();
        }
    };
    Worker::new(jobs, handlers(), ()).name("first").run_until(until).await.unwrap();
}

#[test]
fn queues_states_workers_and_deploys_are_told() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        let done = jobs.enqueue(Mail { to: "ann".to_owned() }).await.unwrap().id();
        work(&jobs, &[done]).await;
        jobs.enqueue_all([Charge { order: 1 }, Charge { order: 2 }]).await.unwrap();
        jobs.enqueue(Mail { to: "bob".to_owned() }).queue("slow").await.unwrap();
        for queue in ["slow", "empty"] {
            session.run(&["pause", queue, "--reason", "the bank is away"]);
        }
        session.run(&["queues"]);
        session.run(&["queues", "--json"]);
        session.run(&["stats"]);
        session.run(&["stats", "--json"]);
        session.run(&["stats", "--by-kind"]);
        session.run(&["stats", "--by-kind", "--json"]);
        session.run(&["deploys"]);
        session.run(&["deploys", "--json"]);
        session.run(&["watch", "--interval", "100ms", "--count", "2"]);
        session.run(&["watch", "--interval", "99ms", "--count", "1"]);
        session.run(&["watch", "--count", "1", "--json"]);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn jobs_are_operated_one_by_one() {
    let text = over_both(&async |session| {
        session.run(&["migrate"]);
        session.run(&["migrate"]);
        session.run(&["enqueue", "mail.send", r#"{"to": "ann"}"#, "--payload-version", "1.0.0"]);
        session.run_with(
            &[
                "enqueue",
                "mail.send",
                "-",
                "--payload-version",
                "1.0",
                "--delay",
                "2d",
                "--queue",
                "slow",
            ],
            "{\"to\": \"bob\",  \"n\": 1.10}",
        );
        let twin = ["enqueue", "a", "1", "--payload-version", "1.0.0", "--unique-key", "k"];
        session.run(&twin);
        session.run(&twin);
        session.run(&["list", "--columns", "id,state,queue,version,key,build,payload"]);
        session.run(&["reschedule", "2", "1", "99", "--in", "3d", "--priority", "7"]);
        session.run(&["list", "--columns", "id,state,priority"]);
        session.run(&["reschedule", "1", "--in", "0s", "--json"]);
        session.run(&["reschedule", "2", "--at", "2020-01-01", "--priority", "-7"]);
        session.run(&["list", "--columns", "id,state,priority"]);
        session.run(&["reschedule", "2", "--in", "2d"]);
        session.run(&["run-now", "2", "1", "99"]);
        session.run(&["show", "2"]);
        session.run(&["reschedule", "2", "--in", "4000d"]);
        session.run(&["reschedule", "2", "--at", "2345-06-07"]);
        session.run(&["enqueue", "a", "1", "--payload-version", "1.0.0", "--delay", "4000d"]);
        session.run(&["cancel", "1"]);
        session.run(&["cancel", "1", "99", "--json"]);
        session.run(&["pause", "slow", "--reason", "the bank is away"]);
        session.run(&["pause", "slow", "--reason", "so am I", "--by", "bob"]);
        session.run(&["pause", "slow", "--reason", "so am I", "--by", "bob", "--json"]);
        session.run(&["resume", "slow"]);
        session.run(&["resume", "slow"]);
        session.run(&["pause", "slow", "--reason", "so am I", "--by", "bob", "--json"]);
        session.run(&["resume", "slow", "--json"]);
        session.run(&["prune", "--succeeded", "1d"]);
        session.run(&["prune", "--cancelled", "0s", "--yes"]);
        session.run(&["list", "--columns", "id,state"]);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn all_that_is_kept_of_a_job_is_shown() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        let done = jobs.enqueue(Mail { to: "ann".to_owned() }).await.unwrap().id();
        let unique = jobs.enqueue(Mail { to: "nobody: gone".to_owned() }).unique_key("k");
        let unique = unique.unique_while(UniqueWhile::Running);
        let unique = unique.expires_in(Duration::from_hours(1)).await.unwrap().id();
        work(&jobs, &[done, unique]).await;
        session.run(&["show", "1"]);
        let told = session.json(&["show", "1", "--json"]);
        assert_eq!((&told["worker"], &told["worker_build"]), (&1.into(), &"shop 1.0".into()));
        let told = session.json(&["show", "2", "--json"]);
        assert!(told["expires_at"].as_str().unwrap() > told["due_at"].as_str().unwrap());
        assert_eq!(told["unique_while"], "running");
        session.run(&["show", "2"]);
        session.run(&["redrive", "2", "--new-key", "--yes"]);
        session.run(&["show", "2"]);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn jobs_are_cancelled_by_what_they_have_in_common() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        let later = Duration::from_hours(24 * 365);
        jobs.enqueue_all([Charge { order: 1 }, Charge { order: 2 }]).await.unwrap();
        jobs.enqueue(Mail { to: "ann".to_owned() }).delay(later).await.unwrap();
        jobs.enqueue(Mail { to: "bob".to_owned() }).await.unwrap();
        session.run(&["cancel"]);
        session.run(&["cancel", "1", "--kind", "mail.send"]);
        session.run(&["cancel", "--kind", "mail.send", "--dry-run"]);
        session.run(&["cancel", "--kind", "mail.send", "--state", "ready", "--dry-run", "--json"]);
        session.run(&["cancel", "--kind", "mail.send"]);
        session.run(&["cancel", "--kind", "mail.send", "--state", "scheduled", "--yes"]);
        session.run(&["cancel", "--queue", "billing", "--batch", "1", "--yes", "--json"]);
        session.run(&["cancel", "--queue", "billing", "--yes"]);
        session.run(&["list", "--columns", "id,state,kind"]);
    });
    insta::assert_snapshot!(text);
}
