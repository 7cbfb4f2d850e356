//! `jobs doctor` over good and bad files, and over what a database has measured.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use jobs_runtime::{Handlers, Job, JobContext, JobError, JobId, Jobs, Registry, Worker};
use serde::{Deserialize, Serialize};

use crate::session::{fed, jobs, over_both, told};

/// What the doctor says of files, and its exit status.
fn examined(files: &[&str]) -> String {
    let mut text = String::new();
    for file in files {
        let mut command = jobs();
        command
            .arg("doctor")
            .arg(file)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/files"));
        let _ = writeln!(text, "$ jobs doctor {file}\n{}", told(&fed(command, "")));
    }
    text
}

#[test]
fn what_would_cut_a_drain_off_is_found() {
    let files = ["bad.yaml", "bad.service", "endless.service", "Dockerfile.bad"];
    insta::assert_snapshot!(examined(&files));
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    for file in ["good.yaml", "good.service", "Dockerfile.good"] {
        assert_eq!(examined(&[file]), format!("$ jobs doctor {file}\nnothing to mend\n\n"));
    }
}

#[test]
fn what_is_delivered_with_the_workspace_is_in_order() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy");
    let mut command = jobs();
    command.arg("doctor").current_dir(deploy);
    command.args(["kubernetes.yaml", "jobs-worker.service", "Dockerfile"]);
    assert_eq!(told(&fed(command, "")), "nothing to mend\n");
}

/// As it stands it can be built here; a name of one's own is an argument of the build.
#[test]
fn the_delivered_dockerfile_builds_a_binary_of_this_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("deploy/Dockerfile")).unwrap();
    let worker = text.lines().find_map(|line| line.strip_prefix("ARG WORKER=")).unwrap();
    assert!(text.contains("\nRUN cargo build --release --locked --bin \"$WORKER\"\n"), "{text}");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(root);
    let told: serde_json::Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    let packages = told["packages"].as_array().unwrap();
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    let is_it = |target: &serde_json::Value| {
        target["name"] == worker && target["kind"].as_array().is_some_and(|it| it[0] == "bin")
    };
    assert!(targets.into_iter().any(is_it), "no binary is named {worker}");
}

#[test]
fn what_can_not_be_examined_is_a_wrong_command() {
    insta::assert_snapshot!(examined(&["none.yaml", "../main.rs", "../../../Cargo.toml"]));
    let mut command = jobs();
    command.arg("doctor");
    let output = fed(command, "");
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "report.build", version = "1.0.0")]
struct Report;

async fn report(_: Report, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

/// Runs so many jobs, and then does something while the worker is still there.
async fn run<T>(jobs: &Jobs, count: usize, then: impl AsyncFnOnce(&[JobId]) -> T) -> T {
    let handlers: Handlers<()> = Registry::new().handle(report).build().unwrap();
    let added = jobs.enqueue_all((0..count).map(|_| Report)).await.unwrap();
    let ids: Vec<JobId> = added.into_iter().map(jobs_runtime::Enqueued::id).collect();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(jobs, handlers, ()).grace_period(Duration::from_secs(90));
    let working = worker.run_until(async { drop(stopped.await) });
    let watching = async {
        for id in &ids {
            jobs.wait(*id).await.unwrap();
        }
        let answer = then(&ids).await;
        drop(stop);
        answer
    };
    let (report, answer) = tokio::join!(working, watching);
    report.unwrap();
    answer
}

fn told_of<'a>(findings: &'a serde_json::Value, field: &str) -> &'a str {
    findings[0][field].as_str().unwrap()
}

#[test]
fn a_database_tells_whether_a_grace_period_holds_its_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/files");
    over_both(&async |session| {
        let jobs = session.client().await;
        let ids = run(&jobs, 25, async |ids| ids.to_vec()).await;
        let file = folder.join("good.yaml").display().to_string();
        let findings = session.json(&["doctor", &file, "--json"]);
        let findings = findings.as_array().unwrap();
        assert_eq!(findings.len(), 3, "one for each pod: {findings:?}");
        for finding in findings {
            assert_eq!(
                (&finding["severity"], &finding["code"]),
                (&"info".into(), &"grace_holds_runs".into())
            );
            let what = finding["what"].as_str().unwrap();
            assert!(what.starts_with("the longest of 25 runs of report.build took "), "{what}");
        }
        session.stretch_runs(&[ids[7]], Duration::from_secs(40)).await;
        let findings = session.json(&["doctor", "--json"]);
        assert_eq!(findings[0]["code"], "grace_shorter_than_runs");
        assert_eq!(
            told_of(&findings, "what"),
            "the longest of 25 runs of report.build took 40s; a drain of 30s, the default, lets them \
             finish for 24s"
        );
        assert_eq!(told_of(&findings, "fix").split(',').next(), Some("grant at least 51 s"));
    });
}

#[test]
fn the_doctor_goes_by_many_runs_and_by_the_drain_that_live_workers_state() {
    over_both(&async |session| {
        let jobs = session.client().await;
        let findings = run(&jobs, 100, async |ids| {
            session.stretch_runs(&[ids[3]], Duration::from_secs(70)).await;
            session.stretch_runs(&[ids[4]], Duration::from_secs(40)).await;
            session.json(&["doctor", "--json"])
        });
        let findings = findings.await;
        assert_eq!(findings[0]["code"], "grace_holds_runs");
        assert_eq!(
            told_of(&findings, "what"),
            "99 of 100 runs of report.build took at most 40s (100 runs); a drain of 1m 30s, as live \
             workers state it, lets them finish for 1m 12s"
        );
    });
}

#[test]
fn a_success_that_could_not_be_stored_at_once_tells_the_doctor_nothing_of_its_handler() {
    over_both(&async |session| {
        let jobs = session.client().await;
        let ids = run(&jobs, 25, async |ids| ids.to_vec()).await;
        session.stretch_runs(&[ids[0]], Duration::from_hours(1)).await;
        session.note_late(&[ids[0]]).await;
        session.stretch_runs(&[ids[1]], Duration::from_secs(12)).await;
        let findings = session.json(&["doctor", "--json"]);
        assert!(
            told_of(&findings, "what")
                .starts_with("the longest of 24 runs of report.build took 12s;"),
            "{findings}"
        );
        assert_eq!(findings.as_array().map(Vec::len), Some(1), "it is certain: {findings}");
    });
}

#[test]
fn the_doctor_says_when_more_successes_were_stored_late_than_it_looks_for() {
    over_both(&async |session| {
        let jobs = session.client().await;
        let ids = run(&jobs, 530, async |ids| ids.to_vec()).await;
        session.stretch_runs(&ids, Duration::from_secs(12)).await;
        let (most, more) = (&ids[..500], &ids[500..505]);
        session.stretch_runs(most, Duration::from_hours(2)).await;
        session.note_late(most).await;
        session.stretch_runs(more, Duration::from_hours(1)).await;
        session.note_late(more).await;
        let findings = session.json(&["doctor", "--json"]);
        let what = told_of(&findings, "what");
        assert!(what.starts_with("the longest of 30 runs of report.build took 1h;"), "{what}");
        assert_eq!(
            findings[1]["what"],
            "500 histories were read to find successes that could not be stored at once, and no more: \
             what is told of report.build may go by such a one, and then it was the store that took so \
             long"
        );
        assert_eq!(
            (&findings[1]["code"], &findings[1]["severity"]),
            (&"histories_unread".into(), &"info".into())
        );
    });
}
