//! Whether something that is tried again and again works, told once for all tries.
//!
//! 1. An outage is told by one line when it begins, by one a minute while it lasts, and by one when it is
//!    over, however many tries fail.
//! 2. It is over when a try has worked and none has failed for [`CALM`].
//!
//! The words are of whoever tries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long no try may have failed before an outage is over. One that works says little: where connections
/// are few, some calls are answered while others are not.
pub(crate) const CALM: Duration = Duration::from_secs(2);
/// How often an outage is told again.
const REMIND: Duration = Duration::from_mins(1);

/// Whether something works, as those see it who try.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Looked at before the lock, since tries may work many times a second.
    is_on: AtomicBool,
    away: Mutex<Option<Away>>,
}

#[derive(Debug, Clone, Copy)]
struct Away {
    since: Duration,
    failed_at: Duration,
    /// When the first try worked after that.
    back_at: Option<Duration>,
    told_at: Duration,
}

/// What is to be told of a try that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It is the first.
    Begins,
    /// Nothing was told for a minute; the outage has lasted for so long.
    Lasts(Duration),
    /// It is one of many.
    Known,
}

impl Outage {
    /// Whether there is one. Cheap.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// A try worked: how long the outage was, if this ends one.
    pub(crate) fn worked(&self, now: Duration) -> Option<Duration> {
        if self.is_on() { self.over(now) } else { None }
    }

    /// A try failed.
    pub(crate) fn failed(&self, now: Duration) -> News {
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
    fn it_is_over_when_tries_work_and_none_fails() {
        let outage = Outage::default();
        assert_eq!(outage.over(at(5)), None, "there was none");
        outage.failed(at(10));
        outage.failed(at(19));
        assert_eq!(outage.over(at(20)), None, "one failed a second ago");
        assert_eq!(outage.over(at(21)), Some(at(10)), "until the first that worked");
        assert_eq!(outage.over(at(22)), None, "it is told once");
        assert_eq!(outage.failed(at(30)), News::Begins);
    }
}
