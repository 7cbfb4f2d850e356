//! Whether the store answers, as the calls of one worker see it, told once for all calls.
//!
//! Only a store that is away makes an outage. What it refuses is told by the call that it refused. It is over
//! by the answers to those calls that come by themselves, and soon: claims, settlements, promotions and
//! renewals.

use std::time::Duration;

use jobs_core::{StoreError, StoreErrorKind};

use crate::log::rounded;
use crate::outage::{News, Outage};

/// Whether the store answers.
#[derive(Debug, Default)]
pub(crate) struct StoreOutage(Outage);

impl StoreOutage {
    /// Whether `error` is of a store that is away, and told as such: the caller then tells nothing. `call`
    /// says what was wanted.
    pub(crate) fn holds(&self, now: Duration, error: &StoreError, call: &'static str) -> bool {
        if error.kind() != StoreErrorKind::Unavailable {
            return false;
        }
        let error = || jobs_core::chain(error);
        match self.0.failed(now) {
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

    /// A call was answered.
    pub(crate) fn answered(&self, now: Duration) {
        if let Some(away) = self.0.worked(now) {
            tracing::info!(away = ?rounded(away), "the store answers again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_no_outage() {
        let outage = StoreOutage::default();
        let refused = StoreError::new(StoreErrorKind::ReadOnly, "this is a standby");
        assert!(!outage.holds(Duration::from_secs(1), &refused, "claim"));
        assert_eq!(outage.0.failed(Duration::from_secs(2)), News::Begins);
    }
}
