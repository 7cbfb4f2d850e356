//! Is it safe to deploy, and what is stuck?

use jobs_runtime::manifest::Manifest;
use jobs_runtime::store::NewWorker;
use jobs_runtime::{BuildId, Job, JobContext, JobError, Lease, Registry, Schedule, WorkerName};
use serde::{Deserialize, Serialize};

use crate::looks::{Charge, Mail};
use crate::session::over_both;

/// The charge of the next build, whose author forgot the past.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "3.0.0", queue = "billing")]
struct NextCharge {
    order: i64,
    cents: u64,
}

async fn next_charge(_: NextCharge, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

fn next() -> Manifest {
    let handlers = Registry::new().handle(next_charge).retired("mail.send").build();
    Manifest::of(&handlers.expect("the registry is in order"))
}

/// A worker of a build that only publishes what it handles.
async fn register(jobs: &jobs_runtime::Jobs, manifest: &Manifest) {
    let new = NewWorker {
        name: WorkerName::new("first").unwrap(),
        build: BuildId::new("shop 1.0").unwrap(),
        manifest: manifest.to_json(),
        lease: Lease::default(),
    };
    jobs.store().register(&new).await.unwrap();
}

#[test]
fn a_deploy_is_checked_against_live_builds_and_stored_rows() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, manifest: &Manifest| {
        let path = folder.path().join(name);
        std::fs::write(&path, manifest.to_json()).unwrap();
        path.display().to_string()
    };
    let now = Manifest::of(&crate::looks::handlers());
    let (old, new) = (file("old.json", &now), file("new.json", &next()));
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        register(&jobs, &now).await;
        for order in 0..3 {
            jobs.enqueue(Charge { order }).await.unwrap();
        }
        jobs.enqueue(Mail { to: "ann".to_owned() }).await.unwrap();
        let nightly = Schedule::new("0 3 * * *", &Charge { order: 0 }).named("nightly");
        jobs.declare(&nightly).await.unwrap();
        session.run(&["manifest", "diff", &old, &old]);
        session.run(&["manifest", "diff", &old, &new]);
        session.run(&["manifest", "check", &old]);
        session.run(&["manifest", "check", &new]);
        session.run(&["manifest", "check", &new, "--json"]);
        session.run(&["manifest", "print"]);
        session.run(&["manifest", "diff", "no-such-file", &new]);
        // What a rollback would meet: jobs of a build that no worker has any more.
        for order in 0..2 {
            jobs.enqueue(NextCharge { order, cents: 700 }).await.unwrap();
        }
        session.run(&["manifest", "check", &old]);
    });
    insta::assert_snapshot!(text.replace(&folder.path().display().to_string(), "<folder>"));
}

#[test]
fn what_no_live_worker_reads_is_counted() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        session.run(&["stranded"]);
        register(&jobs, &Manifest::of(&crate::looks::handlers())).await;
        jobs.enqueue(Charge { order: 7 }).await.unwrap();
        for order in 0..2 {
            jobs.enqueue(NextCharge { order, cents: 700 }).await.unwrap();
        }
        session.run(&["stranded"]);
        session.run(&["stranded", "--json"]);
    });
    insta::assert_snapshot!(text);
}
