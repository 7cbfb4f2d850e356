//! A Dockerfile: what process 1 is, and which signal it gets.

use super::Examined;
use super::finding::{Finding, Severity};
use super::program::{is_heard, shell_between, shell_entrypoint, shell_stays};

/// An instruction with its line.
struct Instruction {
    line: usize,
    name: String,
    value: String,
}

/// Reads the last stage, which is what runs.
pub(super) fn examine(text: &str) -> Examined {
    let all = instructions(text);
    let stage = all.iter().rposition(|it| it.name == "FROM").unwrap_or_default();
    let last = |name: &str| all[stage..].iter().rfind(|it| it.name == name);
    let mut findings = Vec::new();
    // With an entrypoint the command is its arguments; without one it is what runs.
    match last("ENTRYPOINT").or_else(|| last("CMD")) {
        Some(starts) => findings.extend(start(starts)),
        None => findings.push(Finding::new(
            Severity::Info,
            "no_entrypoint",
            None,
            "no ENTRYPOINT and no CMD: the base image says what runs",
            "write `ENTRYPOINT [\"/usr/local/bin/worker\"]`",
        )),
    }
    if let Some(stop) = last("STOPSIGNAL").filter(|it| !is_heard(&it.value)) {
        findings.push(Finding::new(
            Severity::Error,
            "stop_signal",
            Some(stop.line),
            format!("the worker drains at SIGTERM and SIGINT, and {} ends it at once", stop.value),
            "write `STOPSIGNAL SIGTERM`, or leave it out",
        ));
    }
    Examined { findings, granted: Vec::new() }
}

fn start(starts: &Instruction) -> Option<Finding> {
    let Instruction { line, name, value } = starts;
    let words: Result<Vec<String>, _> = serde_json::from_str(value);
    let stays = match &words {
        Ok(words) => shell_between(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        // Docker runs this form by `/bin/sh -c`.
        Err(_) => shell_stays(value),
    };
    let first = value.split_whitespace().next().unwrap_or("/usr/local/bin/worker");
    let program = if words.is_ok() { "/usr/local/bin/worker" } else { first };
    let fix = format!("write `{name} [\"{program}\"]`, or let the script end in `exec`");
    stays.then(|| shell_entrypoint(Some(*line), &fix))
}

fn instructions(text: &str) -> Vec<Instruction> {
    let mut found: Vec<Instruction> = Vec::new();
    let mut goes_on = false;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (part, continues) = match text.strip_suffix('\\') {
            Some(part) => (part.trim(), true),
            None => (text, false),
        };
        if let Some(last) = found.last_mut().filter(|_| goes_on) {
            last.value.push(' ');
            last.value.push_str(part);
        } else {
            let (name, value) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
            let (name, value) = (name.to_uppercase(), value.trim().to_owned());
            found.push(Instruction { line, name, value });
        }
        goes_on = continues;
    }
    found
}
