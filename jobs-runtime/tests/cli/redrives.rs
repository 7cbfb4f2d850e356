//! Dead letters brought back: what was shown, and nothing else.

use std::process::Stdio;
use std::time::Duration;

use jobs_runtime::store::{Filter, Redrive};
use jobs_runtime::{JobId, Jobs, State};

use crate::looks::{Charge, work};
use crate::session::{over_both, told};

/// Jobs that have died.
async fn dead(jobs: &Jobs, count: i64) -> Vec<JobId> {
    let charges = (1..=count).map(|order| Charge { order: -order });
    let added = jobs.enqueue_all(charges).await.unwrap();
    let ids: Vec<_> = added.into_iter().map(jobs_runtime::Enqueued::id).collect();
    work(jobs, &ids).await;
    ids
}

async fn in_state(jobs: &Jobs, state: State) -> Vec<JobId> {
    let filter = Filter { state: Some(state), ..Filter::default() };
    let jobs = jobs.inspect().jobs(&filter, 1000).await.unwrap();
    jobs.into_iter().map(|job| job.id).collect()
}

#[test]
fn a_redrive_is_shown_then_done() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        dead(&jobs, 3).await;
        session.run(&["redrive"]);
        session.run(&["redrive", "1", "--class", "error"]);
        session.run(&["redrive", "--class", "other", "--dry-run"]);
        session.run(&["redrive", "--class", "error", "--dry-run"]);
        session.run(&["redrive", "--class", "error", "--dry-run", "--json"]);
        session.run(&["redrive", "--class", "error"]);
        session.run(&["redrive", "1", "99", "--yes"]);
        session.run(&["redrive", "--failed-by", "shop 1.0", "--yes", "--json"]);
        session.run(&["redrive", "--all", "--yes"]);
        session.run(&["list", "--columns", "id,state,failures,class"]);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn what_was_shown_is_brought_back_less_what_has_moved_and_no_more() {
    over_both(&async |session| {
        let jobs = session.client().await;
        let shown = dead(&jobs, 4).await;
        let selection = ["redrive", "--kind", "billing.charge", "--class", "error"];
        let told = session.json(&[&selection[..], &["--dry-run", "--json"]].concat());
        let ids: Vec<i64> = shown.iter().map(|id| id.0).collect();
        assert_eq!(told["ids"], serde_json::json!(ids));
        // Meanwhile one is brought back, one is brought back and dies again, and others die.
        jobs.operate().redrive(&shown[..1], Redrive::default()).await.unwrap();
        work(&jobs, &shown[..1]).await;
        let late = dead(&jobs, 2).await;
        jobs.operate().redrive(&shown[1..2], Redrive::default()).await.unwrap();
        let until = told["ended_until"].as_str().expect("an instant");
        let rest = ["--ended-until", until, "--yes"];
        let done = session.json(&[&selection[..], &rest[..], &["--json"]].concat());
        let expected = serde_json::json!({
            "redriven": 2, "moved": 0, "ended_later": 0, "twin_waits": 0, "left": 0,
        });
        assert_eq!(done, expected);
        assert_eq!(in_state(&jobs, State::Ready).await, shown[1..]);
        assert_eq!(in_state(&jobs, State::Dead).await, [&shown[..1], &late[..]].concat());
    });
}

#[test]
fn a_redrive_that_was_ended_goes_on_where_it_stopped() {
    over_both(&async |session| {
        let jobs = session.client().await;
        let shown = dead(&jobs, 30).await;
        let redrive = ["redrive", "--class", "error", "--batch", "10", "--yes", "--rate"];
        let mut command = session.command(&[&redrive[..], &["1"]].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        while in_state(&jobs, State::Ready).await.len() < 10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("ended early with 20 jobs left"), "{said}");
        assert_eq!(in_state(&jobs, State::Ready).await, shown[..10]);
        let done = session.json(&[&redrive[..], &["10000", "--json"]].concat());
        assert_eq!(done["redriven"], 20);
        assert_eq!(in_state(&jobs, State::Ready).await, shown);
    });
}

/// Whether a process catches SIGINT, by proc(5).
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|it| it & 2 > 0)
}

#[test]
fn a_redrive_that_is_ended_within_its_first_batch_ends_behind_it() {
    over_both(&async |session| {
        let jobs = session.client().await;
        let shown = dead(&jobs, 30).await;
        let held = session.hold().await;
        let mut command = session.command(&["redrive", "--all", "--batch", "10", "--yes"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let catches = async {
            while !catches_interrupts(child.id()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), catches).await.expect("it takes Ctrl-C over");
        let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        drop(held);
        let output = child.wait_with_output().unwrap();
        let said = told(&output);
        assert!(said.contains("ended early with 20 jobs left"), "{said}");
        assert_eq!(in_state(&jobs, State::Ready).await, shown[..10]);
    });
}
