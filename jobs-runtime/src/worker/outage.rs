//! Whether the store answers, as the calls of one worker see it, told once for all calls.
//!
//! Only a store that is away makes an outage. What it refuses is told by the call that it refused, and what it
//! does not take of a single run, while it answers others, by the name of its job. It is over by the answers
//! to those calls that come by themselves, and soon: claims, settlements, promotions and renewals.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jobs_core::{JobId, StoreError, StoreErrorKind};

use crate::log::{Seldom, rounded};
use crate::outage::{News, Outage};

/// Whether the store answers.
#[derive(Debug)]
pub(crate) struct StoreOutage {
    outage: Outage,
    /// When a call was last answered, in microseconds of the leases' clock.
    answered_us: AtomicU64,
    /// Of a run that alone is not taken.
    of_a_run: Seldom,
}

impl Default for StoreOutage {
    fn default() -> Self {
        let (outage, answered_us) = (Outage::default(), AtomicU64::new(0));
        Self { outage, answered_us, of_a_run: Seldom::new() }
    }
}

impl StoreOutage {
    /// Whether `error` is of a store that is away, and told as such: the caller then tells nothing. `call`
    /// says what was wanted.
    pub(crate) fn holds(&self, now: Duration, error: &StoreError, call: &'static str) -> bool {
        if error.kind() != StoreErrorKind::Unavailable {
            return false;
        }
        let error = || jobs_core::chain(error);
        match self.outage.failed(now) {
            News::Begins => {
                tracing::warn!(call, error = error(), "the store does not answer; trying again");
            }
            News::Lasts(away) => {
                let away = rounded(away);
                tracing::warn!(
                    call,
                    ?away,
                    error = error(),
                    "the store still does not answer; trying again"
                );
            }
            News::Known => {
                tracing::debug!(call, error = error(), "another call was not answered");
            }
        }
        true
    }

    /// Whether an outage is told and not over.
    pub(crate) fn is_on(&self) -> bool {
        self.outage.is_on()
    }

    /// Whether any call was answered after that.
    pub(crate) fn has_answered_since(&self, then: Duration) -> bool {
        self.answered_us.load(Ordering::Relaxed) > micros(then)
    }

    /// Tells of a run whose settlement fails while the store answers other calls, once a minute.
    pub(crate) fn tell_of_a_run(&self, now: Duration, job: JobId, kind: &str, error: &StoreError) {
        self.of_a_run.write(now, || {
            tracing::warn!(
                job = job.0,
                kind,
                error = jobs_core::chain(error),
                "the store answers, but does not take the outcome of this run; trying again"
            );
        });
    }

    /// A call was answered.
    pub(crate) fn answered(&self, now: Duration) {
        self.answered_us.fetch_max(micros(now), Ordering::Relaxed);
        if let Some(away) = self.outage.worked(now) {
            tracing::info!(away = ?rounded(away), "the store answers again");
        }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_no_outage() {
        let outage = StoreOutage::default();
        let refused = StoreError::new(StoreErrorKind::ReadOnly, "this is a standby");
        assert!(!outage.holds(Duration::from_secs(1), &refused, "claim"));
        assert_eq!(outage.outage.failed(Duration::from_secs(2)), News::Begins);
    }
}
