//! A systemd unit: how long it waits, whom it signals, and what it starts.

use std::time::Duration;

use super::finding::{Finding, Severity};
use super::program::{is_heard, shell_between, shell_entrypoint};
use super::{Examined, GRACE_VARIABLE, Granted, program};
use crate::span;

/// systemd's own stop time-out (`DefaultTimeoutStopSec`), unless the machine has another.
const DEFAULT_STOP: Duration = Duration::from_secs(90);

/// A setting of the section `[Service]` with its line.
#[derive(Debug, Clone, Copy)]
struct Setting<'a> {
    line: usize,
    name: &'a str,
    value: &'a str,
}

/// Reads a unit.
pub(super) fn examine(text: &str) -> Examined {
    let settings = settings(text);
    let last = |name: &str| settings.iter().rfind(|setting| setting.name == name).copied();
    let mut findings = Vec::new();
    let stop = last("TimeoutStopSec").or_else(|| last("TimeoutSec"));
    let grace = stop.map_or(Some(DEFAULT_STOP), |stop| time(stop.value));
    findings.extend(stop.and_then(no_time));
    findings.extend(stated(&settings, grace));
    findings.extend(last("KillSignal").filter(|it| !is_heard(it.value)).map(signal));
    findings.extend(last("KillMode").and_then(kill_mode));
    for start in settings.iter().filter(|setting| setting.name == "ExecStart") {
        // The characters before the program change how it is started, not what.
        let command = start.value.trim_start_matches(['@', '-', ':', '+', '!']);
        if shell_between(&words(command).iter().map(String::as_str).collect::<Vec<_>>()) {
            let fix = "write `ExecStart=/usr/local/bin/worker`, or let the script end in `exec`";
            findings.push(shell_entrypoint(Some(start.line), fix));
        }
    }
    findings.extend(last("ExecStop").map(exec_stop));
    findings.extend(restart(last("Restart")));
    findings.extend(prevented(&settings));
    let granted = grace.map(|grace| Granted { grace, line: stop.map(|stop| stop.line) });
    Examined { findings, granted: granted.into_iter().collect() }
}

fn no_time(stop: Setting<'_>) -> Option<Finding> {
    let is_none = time(stop.value).is_some_and(|time| time < Duration::from_secs(1));
    let is_endless =
        stop.value == "infinity" || span::of_systemd(stop.value).is_some_and(|span| span.is_zero());
    let what = match (is_endless, is_none) {
        (true, _) => "systemd never kills the unit, so a handler that hangs holds every stop up",
        (false, true) => "the worker is killed before it can drain",
        (false, false) => return None,
    };
    let severity = if is_endless { Severity::Warning } else { Severity::Error };
    let fix = "write how long a drain may take, such as `TimeoutStopSec=30`";
    Some(Finding::new(severity, "stop_timeout", Some(stop.line), what, fix))
}

/// The worker asks systemd for its stop time-out, unless a variable says otherwise.
fn stated(settings: &[Setting<'_>], grace: Option<Duration>) -> Option<Finding> {
    let environment = settings.iter().filter(|setting| setting.name == "Environment");
    let (line, value) = environment
        .flat_map(|setting| words(setting.value).into_iter().map(|word| (setting.line, word)))
        .find_map(|(line, word)| {
            let value = word.strip_prefix(GRACE_VARIABLE)?.strip_prefix('=')?;
            Some((line, program::span(value)?))
        })?;
    let grace = grace.filter(|grace| *grace < value)?;
    Some(Finding::new(
        Severity::Error,
        "grace_shorter_than_stated",
        Some(line),
        format!("the worker is told {value:?}, and systemd kills it after {grace:?}"),
        format!("leave {GRACE_VARIABLE} out: the worker asks systemd"),
    ))
}

fn signal(setting: Setting<'_>) -> Finding {
    let what = format!("the worker drains at SIGTERM and SIGINT, and {} ends it", setting.value);
    let fix = "write `KillSignal=SIGTERM`, or leave it out";
    Finding::new(Severity::Error, "stop_signal", Some(setting.line), what, fix)
}

fn kill_mode(setting: Setting<'_>) -> Option<Finding> {
    let (severity, what) = match setting.value {
        "none" => (Severity::Error, "systemd signals nobody, and the worker is never told to stop"),
        "process" => (Severity::Warning, "processes that handlers have started outlive the worker"),
        _ => return None,
    };
    let fix = "write `KillMode=mixed`: SIGTERM to the worker alone, SIGKILL to whatever is left";
    Some(Finding::new(severity, "kill_mode", Some(setting.line), what, fix))
}

fn exec_stop(setting: Setting<'_>) -> Finding {
    let what = "the command runs before the signal, and its time is taken from the drain's";
    let fix = "leave ExecStop out: systemd's SIGTERM is what starts the drain";
    Finding::new(Severity::Warning, "exec_stop", Some(setting.line), what, fix)
}

fn restart(setting: Option<Setting<'_>>) -> Option<Finding> {
    if setting.is_some_and(|setting| !matches!(setting.value, "no" | "on-success")) {
        return None;
    }
    let line = setting.map(|setting| setting.line);
    let what = "a worker that fails or is killed stays away";
    let fix = "write `Restart=on-failure`, or `always`";
    Some(Finding::new(Severity::Warning, "no_restart", line, what, fix))
}

/// The worker ends with this status when a handler outlived its drain.
fn prevented(settings: &[Setting<'_>]) -> Option<Finding> {
    let status = crate::EXIT_UNFINISHED.to_string();
    let is_named = |setting: &&Setting<'_>| {
        let mut named = setting.value.split_whitespace();
        setting.name == "RestartPreventExitStatus"
            && named.any(|it| it == status || it == "TEMPFAIL")
    };
    let found = settings.iter().find(is_named)?;
    let what = format!("a worker that ended with {status}, unfinished, stays away");
    let fix = "leave that status out of RestartPreventExitStatus";
    Some(Finding::new(Severity::Warning, "no_restart", Some(found.line), what, fix))
}

fn settings(text: &str) -> Vec<Setting<'_>> {
    let mut found = Vec::new();
    let mut is_service = false;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.starts_with('[') {
            is_service = text == "[Service]";
        } else if let Some((name, value)) = text.split_once('=')
            && is_service
            && !text.starts_with(['#', ';'])
        {
            found.push(Setting { line, name: name.trim(), value: value.trim() });
        }
    }
    found
}

/// The words of a setting; quotes hold blanks together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (Some(_) | None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A stop time-out of systemd's; `None` when it never ends.
fn time(text: &str) -> Option<Duration> {
    // Of a stop, nothing is no limit.
    span::of_systemd(text).filter(|span| !span.is_zero())
}
