//! One container of a pod.

use std::time::Duration;

use super::super::finding::{Finding, Severity};
use super::super::program::{is_heard, shell_between, shell_entrypoint, span};
use super::node::{Node, at, integer, items, line, text};

#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'a> {
    node: &'a Node<'a>,
}

/// What a variable tells the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    /// It is set, and its value can't be seen here.
    Elsewhere,
    Span(Duration),
}

/// What runs before the signal.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreStop {
    pub(super) line: usize,
    /// How long; `None` when that can't be seen.
    pub(super) delay: Option<Duration>,
}

impl Told {
    pub(super) fn span(self) -> Option<Duration> {
        match self {
            Self::Span(span) => Some(span),
            Self::Nothing | Self::Elsewhere => None,
        }
    }
}

impl<'a> Container<'a> {
    pub(super) fn of(node: &'a Node<'a>) -> Self {
        Self { node }
    }

    pub(super) fn variable(self, name: &str) -> Told {
        let is_named = |entry: &&Node<'a>| at(entry, &["name"]).and_then(text) == Some(name);
        let Some(entry) = items(self.node, "env").find(is_named) else { return Told::Nothing };
        let value = at(entry, &["value"]);
        let seen = value.and_then(|value| match (text(value), integer(value)) {
            (Some(text), _) => span(text),
            (None, Some(seconds)) => u64::try_from(seconds).ok().map(Duration::from_secs),
            (None, None) => None,
        });
        seen.map_or(Told::Elsewhere, Told::Span)
    }

    pub(super) fn pre_stop(self) -> Option<PreStop> {
        let hook = at(self.node, &["lifecycle", "preStop"])?;
        let seconds = at(hook, &["sleep", "seconds"]).and_then(integer);
        let seconds = seconds.or_else(|| slept(&words(at(hook, &["exec"])?, "command")));
        let delay = seconds.and_then(|it| u64::try_from(it).ok()).map(Duration::from_secs);
        Some(PreStop { line: line(hook), delay })
    }

    /// What is wrong with this container by itself.
    pub(super) fn findings(self, grace: Duration) -> Vec<Finding> {
        let all = [self.shell(), self.signal(), self.liveness(), self.liveness_grace(grace)];
        all.into_iter().flatten().collect()
    }

    fn shell(self) -> Option<Finding> {
        let mut words = words(self.node, "command");
        let command = at(self.node, &["command"])?;
        words.extend(self::words(self.node, "args"));
        let fix = "write `command: [\"/usr/local/bin/worker\"]`, or let the script end in `exec`";
        shell_between(&words).then(|| shell_entrypoint(Some(line(command)), fix))
    }

    fn signal(self) -> Option<Finding> {
        let signal = at(self.node, &["lifecycle", "stopSignal"])?;
        let name = text(signal).filter(|name| !is_heard(name))?;
        let what = format!("the worker drains at SIGTERM and SIGINT, and {name} ends it at once");
        let fix = "write `stopSignal: SIGTERM`, or leave it out";
        Some(Finding::new(Severity::Error, "stop_signal", Some(line(signal)), what, fix))
    }

    /// Readiness turns false at the first instant of a drain, so nothing may be killed for it.
    fn liveness(self) -> Option<Finding> {
        let probe = at(self.node, &["livenessProbe"])?;
        let asked = address(probe)?;
        let is_readiness_path = asked.0.contains("ready");
        let readiness = at(self.node, &["readinessProbe"]).and_then(address);
        if !is_readiness_path && readiness != Some(asked) {
            return None;
        }
        let what = "liveness asks what readiness asks, which turns false when a drain begins: the pod \
                    is killed in the middle of it";
        let fix = "write `path: /livez` for liveness, and `/readyz` for readiness";
        Some(Finding::new(Severity::Error, "liveness_asks_readiness", Some(line(probe)), what, fix))
    }

    fn liveness_grace(self, grace: Duration) -> Option<Finding> {
        let own = at(self.node, &["livenessProbe", "terminationGracePeriodSeconds"])?;
        let seconds = integer(own).and_then(|seconds| u64::try_from(seconds).ok())?;
        let what = format!(
            "a pod that fails its liveness is killed after {seconds} s instead of {} s, shorter than \
             its drain",
            grace.as_secs()
        );
        let fix = "leave it out, so that the pod's own grace period holds";
        let finding = Finding::new(Severity::Warning, "liveness_grace", Some(line(own)), what, fix);
        (seconds < grace.as_secs()).then_some(finding)
    }
}

/// What a probe asks: path and port.
fn address<'a>(probe: &'a Node<'a>) -> Option<(&'a str, Option<String>)> {
    let get = at(probe, &["httpGet"])?;
    let port = at(get, &["port"]).and_then(|port| {
        integer(port).map(|port| port.to_string()).or_else(|| text(port).map(str::to_owned))
    });
    Some((at(get, &["path"]).and_then(text).unwrap_or("/"), port))
}

fn words<'a>(node: &'a Node<'a>, key: &str) -> Vec<&'a str> {
    items(node, key).filter_map(text).collect()
}

/// How many seconds a command sleeps that does nothing else.
fn slept(words: &[&str]) -> Option<i64> {
    let script = words.last()?;
    let command: Vec<&str> = match words {
        ["sleep" | "/bin/sleep" | "/usr/bin/sleep", _] => words.to_vec(),
        ["sh" | "/bin/sh" | "bash" | "/bin/bash", "-c", _] => script.split_whitespace().collect(),
        _ => return None,
    };
    match command[..] {
        [_, seconds] if command[0].ends_with("sleep") => seconds.trim_end_matches('s').parse().ok(),
        _ => None,
    }
}
