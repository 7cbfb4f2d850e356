//! How long a job waits after a failure or an interruption.

use std::time::Duration;

use crate::random::jittered;

/// The longest wait that anybody may ask for: ten years. What is longer is a slip in a unit, and would
/// park its job for ever without a word.
pub const MAX_WAIT: Duration = Duration::from_hours(24 * 3_650);

const DAY: Duration = Duration::from_hours(24);

/// The waits between the failures of a job. It belongs to the build that ran the handler and is
/// not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ladder {
    /// Each wait is twice the one before, up to a cap.
    Exponential {
        /// The wait after the first failure.
        first: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// The same wait after every failure.
    Fixed(Duration),
    /// One wait per failure; the last one repeats. An empty list waits for nothing.
    Steps(Vec<Duration>),
}

impl Default for Ladder {
    /// 2 s doubling up to a day: the 19 waits between 20 failures span about four and a half days.
    fn default() -> Self {
        Self::Exponential { first: Duration::from_secs(2), cap: DAY }
    }
}

impl Ladder {
    /// Waits that double from the first one up to a cap.
    pub const fn exponential(first: Duration, cap: Duration) -> Self {
        Self::Exponential { first, cap }
    }

    /// The same wait after every failure.
    pub const fn fixed(wait: Duration) -> Self {
        Self::Fixed(wait)
    }

    /// A wait for each failure; the last one repeats.
    pub fn steps(waits: impl IntoIterator<Item = Duration>) -> Self {
        Self::Steps(waits.into_iter().collect())
    }

    /// The wait after the given number of failures (from 1), at most [`MAX_WAIT`], moved by up to a
    /// tenth either way.
    pub fn wait(&self, failures: u32, draw: u64) -> Duration {
        let exact = match self {
            Self::Exponential { first, cap } => doubling(*first, failures, *cap),
            Self::Fixed(wait) => *wait,
            Self::Steps(steps) => {
                let at = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
                steps.get(at).or(steps.last()).copied().unwrap_or_default()
            }
        };
        jittered(exact.min(MAX_WAIT), draw)
    }
}

/// `first`, doubled once for every count above 1, at most `cap`.
pub(crate) fn doubling(first: Duration, count: u32, cap: Duration) -> Duration {
    let factor = 1_u32.checked_shl(count.saturating_sub(1)).filter(|factor| *factor != 0);
    factor.and_then(|factor| first.checked_mul(factor)).map_or(cap, |wait| wait.min(cap))
}
