//! Whether the store answers, as the calls of one worker see it.
//!
//! 1. An outage is told by one line when it begins, by one a minute while it lasts, and by one when it is
//!    over, however many calls fail.
//! 2. It is over when a call is answered and none has failed for [`CALM`]. Of those that come by themselves, and
//!    soon: claims, settlements, promotions and renewals.
//!
//! Only a store that is away makes an outage. What it refuses is told by the call that it refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jobs_core::{StoreError, StoreErrorKind};

use crate::log::rounded;

/// How long no call may have failed before the store counts as back. One answer alone says little: where
/// connections are few, some calls are answered while others are not.
const CALM: Duration = Duration::from_secs(2);
/// How often an outage is told again.
const REMIND: Duration = Duration::from_mins(1);

/// Whether the store answers, as the calls of one worker see it.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Looked at before the lock, since calls are answered many times a second.
    is_on: AtomicBool,
    away: Mutex<Option<Away>>,
}

#[derive(Debug, Clone, Copy)]
struct Away {
    since: Duration,
    failed_at: Duration,
    /// When the first call was answered after that.
    back_at: Option<Duration>,
    told_at: Duration,
}

/// What is to be told of a call that was not answered.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// It is the first.
    Begins,
    /// Nothing was told for a minute; the store has been away for so long.
    Lasts(Duration),
    /// It is one of many.
    Known,
}

impl Outage {
    /// Whether `error` is of a store that is away, and told as such: the caller then tells nothing. `call`
    /// says what was wanted.
    pub(crate) fn holds(&self, now: Duration, error: &StoreError, call: &'static str) -> bool {
        if error.kind() != StoreErrorKind::Unavailable {
            return false;
        }
        let error = || jobs_core::chain(error);
        match self.failed(now) {
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
        if self.is_on.load(Ordering::Relaxed)
            && let Some(away) = self.over(now)
        {
            tracing::info!(away = ?rounded(away), "the store answers again");
        }
    }

    fn failed(&self, now: Duration) -> News {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = away.as_mut() else {
            *away = Some(Away { since: now, failed_at: now, back_at: None, told_at: now });
            self.is_on.store(true, Ordering::Relaxed);
            return News::Begins;
        };
        known.failed_at = known.failed_at.max(now);
        known.back_at = None;
        if now.saturating_sub(known.told_at) < REMIND {
            return News::Known;
        }
        known.told_at = now;
        News::Lasts(now.saturating_sub(known.since))
    }

    /// How long the store was away, if that has ended.
    fn over(&self, now: Duration) -> Option<Duration> {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let back_at = *away.as_mut()?.back_at.get_or_insert(now);
        let ended = away.take_if(|away| now.saturating_sub(away.failed_at) >= CALM)?;
        self.is_on.store(false, Ordering::Relaxed);
        Some(back_at.saturating_sub(ended.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_outage_begins_once_and_is_told_again_by_the_minute() {
        let outage = Outage::default();
        let told: Vec<News> = (10..140).map(|second| outage.failed(at(second))).collect();
        assert_eq!(told[0], News::Begins);
        assert_eq!(told[60], News::Lasts(at(60)));
        assert_eq!(told[120], News::Lasts(at(120)));
        assert_eq!(told.iter().filter(|news| **news == News::Known).count(), 127);
    }

    #[test]
    fn it_is_over_when_calls_are_answered_and_none_fails() {
        let outage = Outage::default();
        assert_eq!(outage.over(at(5)), None, "there was none");
        outage.failed(at(10));
        outage.failed(at(19));
        assert_eq!(outage.over(at(20)), None, "one failed a second ago");
        assert_eq!(outage.over(at(21)), Some(at(10)), "until the first answer");
        assert_eq!(outage.over(at(22)), None, "it is told once");
        assert_eq!(outage.failed(at(30)), News::Begins);
    }

    #[test]
    fn a_refusal_is_no_outage() {
        let outage = Outage::default();
        let refused = StoreError::new(StoreErrorKind::ReadOnly, "this is a standby");
        assert!(!outage.holds(at(1), &refused, "claim"));
        assert_eq!(outage.failed(at(2)), News::Begins);
    }
}
