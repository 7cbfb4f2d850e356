//! What a container or a unit starts, and what it tells the worker.

use std::time::Duration;

use super::finding::{Finding, Severity};
use crate::span;

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "ksh"];

/// A shell that stays between the supervisor and the program.
pub(super) fn shell_between(words: &[&str]) -> bool {
    let [program, rest @ ..] = words else { return false };
    let name = program.rsplit('/').next().unwrap_or(program);
    if !SHELLS.contains(&name) {
        return false;
    }
    // `sh -c SCRIPT`, also `sh -ec SCRIPT`; a script in a file can't be seen from here.
    let is_flag = |word: &&&str| word.starts_with('-') && word.ends_with('c');
    match rest.iter().find(is_flag).and_then(|_| rest.last()) {
        Some(script) => shell_stays(script),
        None => false,
    }
}

/// Whether a shell that runs this script stays while the last command runs.
pub(super) fn shell_stays(script: &str) -> bool {
    let mut commands = script.split(['\n', ';', '&']).map(str::trim).filter(|it| !it.is_empty());
    !commands.next_back().is_some_and(|last| last.starts_with("exec "))
}

/// The finding about such a shell.
pub(super) fn shell_entrypoint(line: Option<usize>, fix: &str) -> Finding {
    let what = "a shell is process 1 and does not pass SIGTERM on: the worker never hears of the stop, \
                and everything it runs is killed when the grace period ends";
    Finding::new(Severity::Error, "shell_entrypoint", line, what, fix)
}

/// Reads what a variable of the worker's holds, as the worker does; a file may have quotes around it.
pub(super) fn span(text: &str) -> Option<Duration> {
    span::of_variable(text.trim().trim_matches('"'))
}

/// Whether a signal is one that the worker drains at.
pub(super) fn is_heard(signal: &str) -> bool {
    let name = signal.trim().trim_start_matches("SIG");
    matches!(name, "TERM" | "INT" | "15" | "2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_stays_unless_its_last_command_is_an_exec() {
        let stays: &[&[&str]] = &[
            &["sh", "-c", "./worker"],
            &["/bin/bash", "-ec", "setup && ./worker"],
            &["sh", "-c", "exec setup; ./worker"],
        ];
        let leaves: &[&[&str]] = &[
            &["./worker"],
            &["sh", "-c", "exec ./worker"],
            &["/bin/sh", "-ec", "setup && exec ./worker --fast"],
            &["tini", "--", "./worker"],
            &["sh", "start.sh"],
            &[],
        ];
        assert!(stays.iter().all(|words| shell_between(words)));
        assert!(!leaves.iter().any(|words| shell_between(words)));
    }
}
