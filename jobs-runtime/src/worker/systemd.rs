//! systemd as the supervisor: what it grants, and what it is told.
//!
//! Everywhere else this does nothing: no service manager, no socket, no word.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jobs_core::store::Phase;
use sd_notify::NotifyState;

use crate::span;

/// How long the service manager may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long systemd waits between its SIGTERM and its SIGKILL; `None` when it has not started this
/// process, sets no limit, or can't be asked.
pub(super) async fn stop_timeout() -> Option<Duration> {
    // Set for every process of a unit; without it nobody is asked.
    std::env::var_os("INVOCATION_ID")?;
    let ask = || {
        let cgroups = std::fs::read_to_string("/proc/self/cgroup")?;
        let Some(unit) = unit(&cgroups) else { return Ok(None) };
        asked(Path::new("systemctl"), unit).map(|answer| Some((unit.name.to_owned(), answer)))
    };
    let answer = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(ask)).await;
    let (unit, answer) = match answer {
        Ok(Ok(Ok(answer))) => answer?,
        Ok(Ok(Err(error))) => {
            tracing::warn!(%error, "systemd can't be asked for its stop time-out");
            return None;
        }
        Ok(Err(_)) | Err(_) => {
            tracing::warn!("systemd does not say its stop time-out within {PATIENCE:?}");
            return None;
        }
    };
    let span = span::of_systemd(&answer);
    if span.is_none() {
        tracing::warn!(unit, answer, "systemd's stop time-out is no limit, or none that is known");
    }
    span
}

/// A service, and whose manager runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit<'a> {
    name: &'a str,
    is_of_user: bool,
}

/// The service of a process, by its control groups.
fn unit(cgroups: &str) -> Option<Unit<'_>> {
    let systemd = |line: &&str| line.starts_with("0::") || line.contains(":name=systemd:");
    cgroups.lines().filter(systemd).find_map(|line| {
        let path = line.rsplit(':').next()?;
        let mut parts = path.split('/').filter(|part| part.ends_with(".service"));
        let first = parts.next()?;
        let name = parts.next_back().unwrap_or(first);
        // A user's services run below the service of the user's manager.
        let is_of_user = first.starts_with("user@") && name != first;
        Some(Unit { name, is_of_user })
    })
}

/// The answer of `systemctl` about a unit.
fn asked(systemctl: &Path, unit: Unit<'_>) -> io::Result<String> {
    let mut ask = Command::new(systemctl);
    if unit.is_of_user {
        ask.arg("--user");
    }
    ask.args(["show", "--value", "--property=TimeoutStopUSec", "--", unit.name]);
    let answer = ask.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    if !answer.status.success() {
        return Err(io::Error::other(format!("systemctl ended with {}", answer.status)));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}

/// Tells the service manager how the process is; only of a process that is the worker's own.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    watchdog: Option<Duration>,
    told_us: AtomicU64,
    is_on: bool,
    /// Whether the service manager could not be told the last time.
    is_deaf: AtomicBool,
}

impl Notifier {
    /// One that tells, for a worker that is the process.
    pub(super) fn of_process() -> Self {
        let watchdog = sd_notify::watchdog_enabled();
        Self { watchdog, is_on: true, ..Self::default() }
    }

    /// The worker has registered.
    pub(super) fn ready(&self) {
        self.tell(&[NotifyState::Ready, NotifyState::Status("working")]);
    }

    /// A drain has come to a phase, with so many runs held.
    pub(super) fn entered(&self, phase: Phase, held: usize) {
        let status = format!("draining, {phase}: {held} runs held", phase = phase.as_str());
        match phase {
            Phase::Working => {}
            Phase::Quiet => self.tell(&[NotifyState::Stopping, NotifyState::Status(&status)]),
            Phase::Interrupting | Phase::Releasing | Phase::Done => {
                self.tell(&[NotifyState::Status(&status)]);
            }
        }
    }

    /// The heartbeat's thread lives: twice in the time after which systemd takes it for hung.
    pub(super) fn lives(&self, now: Duration) {
        let Some(watchdog) = self.watchdog else { return };
        let told = Duration::from_micros(self.told_us.load(Ordering::Relaxed));
        if told.is_zero() || now.saturating_sub(told) >= watchdog / 2 {
            let now_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
            self.told_us.store(now_us, Ordering::Relaxed);
            self.tell(&[NotifyState::Watchdog]);
        }
    }

    /// How often [`lives`](Self::lives) is to be called at least.
    pub(super) fn interval(&self) -> Duration {
        self.watchdog.map_or(Duration::MAX, |watchdog| watchdog / 4)
    }

    fn tell(&self, states: &[NotifyState<'_>]) {
        if !self.is_on {
            return;
        }
        match sd_notify::notify(states) {
            Ok(()) => self.is_deaf.store(false, Ordering::Relaxed),
            // Once, and not at every beat.
            Err(error) => {
                if !self.is_deaf.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "can't tell the service manager");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
