//! `jobs doctor`: would this deployment let a worker drain?
//!
//! 1. A file is read as what it is: Kubernetes manifests, a systemd unit, a Dockerfile. One that is
//!    none of them is a wrong command.
//! 2. A finding names the line, what will happen, and what to write instead.
//! 3. What a file does not say is judged by the supervisor's default and the worker's.
//!
//! Absent on purpose: what can't be seen in the file. Whether the program itself sets a grace period,
//! and what an image starts, is said as a condition.

mod dockerfile;
mod finding;
mod kubernetes;
mod measured;
mod program;
mod systemd;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use self::finding::{Finding, Severity};
use super::Context;
use super::exit::{Exit, Failure, Result};
use super::output::{json_lines, print};

/// What a worker takes as its grace period when nobody says: Kubernetes' own default.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// Names the grace period to the worker.
const GRACE_VARIABLE: &str = "JOBS_GRACE_PERIOD";
/// Names the delay before the signal to the worker.
const PRE_STOP_VARIABLE: &str = "JOBS_PRE_STOP_DELAY";

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  jobs doctor deploy/worker.yaml deploy/worker.service Dockerfile\n  \
    jobs doctor deploy/worker.yaml --url postgres://user@host/database\n\n\
    Exit status 1 when a finding is an error."
)]
pub struct Options {
    /// Kubernetes manifests, systemd units, Dockerfiles.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What a file says about the end of a worker, for what was measured to be held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Granted {
    grace: Duration,
    line: Option<usize>,
}

/// What was found in a file.
#[derive(Debug, Default)]
struct Examined {
    findings: Vec<Finding>,
    granted: Vec<Granted>,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        if self.files.is_empty() && cx.globals.url.is_none() {
            return Err(Failure::wrong(
                "what is to be examined? Name a Kubernetes manifest, a systemd unit or a Dockerfile, \
                 or a database with `--url`",
            ));
        }
        let mut findings = Vec::new();
        let mut granted = Vec::new();
        for path in &self.files {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::wrong(format!("{} can't be read: {error}", path.display()))
            })?;
            let name = path.display().to_string();
            let examined = examine(path, &text)?;
            findings.extend(examined.findings.into_iter().map(|finding| finding.in_file(&name)));
            granted.extend(examined.granted.into_iter().map(|granted| (name.clone(), granted)));
        }
        if cx.globals.url.is_some() {
            findings.extend(measured::examine(&cx.open().await?, &granted).await?);
        }
        tell(cx, &findings)?;
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        if findings.iter().any(is_error) { Err(Failure::silent(Exit::Finding)) } else { Ok(()) }
    }
}

fn examine(path: &Path, text: &str) -> Result<Examined> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let name = name.unwrap_or_default();
    let has_end = |ends: &[&str]| {
        path.extension().is_some_and(|end| ends.iter().any(|known| end.eq_ignore_ascii_case(known)))
    };
    let is_unit = |line: &str| line.trim() == "[Service]";
    if has_end(&["yaml", "yml", "json"]) {
        kubernetes::examine(text)
            .map_err(|what| Failure::wrong(format!("{}: {what}", path.display())))
    } else if has_end(&["service"]) || text.lines().any(is_unit) {
        Ok(systemd::examine(text))
    } else if name.contains("dockerfile") || name.contains("containerfile") {
        Ok(dockerfile::examine(text))
    } else {
        Err(Failure::wrong(format!(
            "{} is no Kubernetes manifest (*.yaml), no systemd unit (*.service) and no Dockerfile",
            path.display()
        )))
    }
}

fn tell(cx: &Context, findings: &[Finding]) -> Result<()> {
    if cx.output.is_json {
        return json_lines(findings);
    }
    for finding in findings {
        print(&finding.told())?;
    }
    if findings.is_empty() { print("nothing to mend\n") } else { Ok(()) }
}
