//! What can be wrong with a registry.

use std::collections::HashSet;
use std::fmt;

use jobs_core::{BuildId, Kind, OnStop, QueueName, Schedule};

use super::handlers::{Handled, Known};
use crate::schedule::declaration;

/// Checks one kind by itself.
pub(super) fn check<S>(handled: &Handled<S>, problems: &mut Vec<String>) {
    let name = handled.type_name;
    for kind in std::iter::once(&*handled.kind).chain(handled.aliases.iter().copied()) {
        if let Err(error) = Kind::new(kind) {
            problems.push(format!("{name}: {error}"));
        }
    }
    if let Err(error) = QueueName::new(handled.policy.queue) {
        problems.push(format!("{name}: {error}"));
    }
    if handled.policy.on_stop == OnStop::Undo && !handled.erased.can_undo() {
        problems.push(format!(
            "{name}: `on_stop = \"undo\"` needs `impl Handler` with `on_interrupt`; a function has none"
        ));
    }
    if handled.lines.is_empty() || !handled.lines.is_sorted_by(|a, b| a.major < b.major) {
        problems.push(format!("{name}: its lines are not one per major, oldest first"));
    }
}

pub(super) fn check_schedules(schedules: &[Schedule], problems: &mut Vec<String>) {
    let mut names = HashSet::new();
    for schedule in schedules {
        problems.extend(declaration(schedule, &BuildId::default()).err());
        if !names.insert(schedule.name()) {
            let name = schedule.name();
            problems.push(format!(
                "two schedules are named {name:?}; give one another name with `named`"
            ));
        }
    }
}

/// What is wrong with a kind that is `known` already.
pub(super) fn clash<S>(
    kind: &str,
    known: Known,
    handled: &Handled<S>,
    all: &[Handled<S>],
) -> String {
    let Known::Handled(at) = known else {
        return format!("kind `{kind}` is both retired and handled by {}", handled.type_name);
    };
    let (first, second) = (all[at].type_name, handled.type_name);
    if first == second {
        return format!("kind `{kind}` is registered twice for {first}; remove one of the two");
    }
    format!(
        "kind `{kind}` is claimed by two types, {first} and {second}; give one of them another \
         kind, or register only one"
    )
}

/// Every mistake of a [`Registry`](super::Registry).
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryError {
    pub(super) problems: Vec<String>,
}

impl RegistryError {
    /// The mistakes, in order of registration.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the registry has mistakes: {}", self.problems.join("; "))
    }
}

/// For people too: `main` prints an error that it returns by this.
impl fmt::Debug for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RegistryError {}
