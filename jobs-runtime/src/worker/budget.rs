//! How long a drain may take: what the supervisor grants, less what it spends before it asks.
//!
//! 1. The grace period comes from the first of: the builder, [`GRACE_VARIABLE`], systemd's own
//!    answer, and [`DEFAULT`].
//! 2. A grace period that was given and can't be used is refused with its reason, never adjusted.
//! 3. Kinds whose time-out the budget can't hold are named at the start, with both numbers.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use jobs_core::drain::Split;

use super::systemd;
use crate::error::{Error, ErrorKind};
use crate::log::rounded;
use crate::registry::Handlers;
use crate::span;

/// Kubernetes' own default: a supervisor that says nothing is most likely that one.
const DEFAULT: Duration = Duration::from_secs(30);
const GRACE_PERIODS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);
/// Names the grace period: a number of seconds, or one with `ms`, `s`, `min`, `h` or `d` behind it.
const GRACE_VARIABLE: &str = "JOBS_GRACE_PERIOD";
/// Names the delay before the signal, in the same form.
const PRE_STOP_VARIABLE: &str = "JOBS_PRE_STOP_DELAY";

/// What the application says of its supervisor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stated {
    pub(super) grace: Option<Duration>,
    pub(super) pre_stop: Option<Duration>,
}

/// Who said how long the grace period is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Builder,
    Variable,
    Systemd,
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Builder => "the worker's builder",
            Self::Variable => GRACE_VARIABLE,
            Self::Systemd => "systemd",
            Self::Default => "the default",
        })
    }
}

/// The time for a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    grace: Duration,
    pre_stop: Duration,
    source: Source,
}

impl Budget {
    /// Asks whoever knows.
    pub(super) async fn ask(stated: Stated) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var_os(name).map(readable);
        let is_open = stated.grace.is_none() && variable(GRACE_VARIABLE).is_none();
        let by_systemd = if is_open { systemd::stop_timeout().await } else { None };
        Self::of(stated, variable, by_systemd)
    }

    fn of(
        stated: Stated,
        variable: impl Fn(&str) -> Option<String>,
        by_systemd: Option<Duration>,
    ) -> Result<Self, Error> {
        let named = |name: &str| variable(name).map(|text| named_span(name, &text)).transpose();
        let (grace, source) = match (stated.grace, named(GRACE_VARIABLE)?, by_systemd) {
            (Some(grace), _, _) => (grace, Source::Builder),
            (None, Some(grace), _) => (grace, Source::Variable),
            (None, None, Some(grace)) => (grace, Source::Systemd),
            (None, None, None) => (DEFAULT, Source::Default),
        };
        let pre_stop = match stated.pre_stop {
            Some(delay) => delay,
            None => named(PRE_STOP_VARIABLE)?.unwrap_or_default(),
        };
        if !GRACE_PERIODS.contains(&grace) {
            return Err(refused(format!(
                "a grace period of {grace:?}, from {source}, is not one of 1 s to 24 h"
            )));
        }
        if grace.saturating_sub(pre_stop) < *GRACE_PERIODS.start() {
            return Err(refused(format!(
                "a pre-stop delay of {pre_stop:?} leaves less than 1 s of a grace period of \
                 {grace:?}, from {source}"
            )));
        }
        Ok(Self { grace, pre_stop, source })
    }

    /// What is left of the grace period when the signal comes.
    pub(super) fn drain(self) -> Duration {
        self.grace.saturating_sub(self.pre_stop)
    }

    /// Tells the split, and which kinds it can't hold.
    pub(super) fn tell<S>(self, handlers: &Handlers<S>) {
        let Split { quiet, interrupting, releasing, exit } = Split::of(self.drain());
        tracing::info!(
            grace_period = ?self.grace,
            pre_stop_delay = ?self.pre_stop,
            from = %self.source,
            finish_until = ?rounded(quiet),
            return_until = ?rounded(interrupting),
            release_until = ?rounded(releasing),
            exit_at = ?rounded(exit),
            "the budget of a drain"
        );
        for handled in handlers.all() {
            let Some(timeout) = handled.policy.timeout else { continue };
            if !handled.checkpoint_lines.is_empty() {
                continue;
            }
            if let Some(needed) = self.needed(timeout) {
                tracing::warn!(
                    kind = %handled.kind,
                    ?timeout,
                    finish_until = ?rounded(quiet),
                    grace_period = ?self.grace,
                    needed = ?needed,
                    "a run of this kind may take longer than a drain waits for it: a deploy then \
                     starts it again from nothing; lengthen the grace period or save checkpoints"
                );
            }
        }
    }

    /// The grace period that would hold a time-out, in whole seconds, where this one does not.
    fn needed(self, timeout: Duration) -> Option<Duration> {
        let needed = || Split::grace_for(timeout).saturating_add(self.pre_stop);
        let is_longer = timeout > Split::of(self.drain()).quiet;
        is_longer.then(|| Duration::from_secs(needed().as_secs().saturating_add(1)))
    }
}

fn refused(what: String) -> Error {
    Error::new(ErrorKind::Configuration, what)
}

/// The text of a variable. What is no text is not passed over: it becomes one that is no span either.
fn readable(text: OsString) -> String {
    text.into_string().unwrap_or_else(|text| text.to_string_lossy().into_owned())
}

/// A span from a variable.
fn named_span(name: &str, text: &str) -> Result<Duration, Error> {
    span::of_variable(text).ok_or_else(|| {
        refused(format!(
            "{name} is {text:?}, not a number of seconds such as `30`, `45s` or `2min`"
        ))
    })
}

#[cfg(test)]
mod tests;
