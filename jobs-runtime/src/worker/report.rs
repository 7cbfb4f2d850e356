//! What a worker says when it has ended.

use std::fmt;
use std::time::Duration;

use jobs_core::store::Drained;

use crate::log::rounded;

/// What a worker did from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Runs whose outcome was settled: successes, failures, snoozes.
    pub settled: u64,
    /// Runs that were given back as interrupted.
    pub interrupted: u64,
    /// Claims that were given back unrun: refused, or too late.
    pub released: u64,
    /// Handlers that had not ended when the worker left; what they still write is refused.
    pub abandoned: usize,
    /// From the request to stop to the end.
    pub took: Duration,
    /// The part of it after the request to stop, as the store keeps it with the worker.
    pub in_drain: Drained,
}

/// In one line, for people: `4 settled, 1 interrupted, 2 released; the drain took 3.2s`.
impl fmt::Display for DrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settled, interrupted, released, abandoned, took, in_drain: _ } = self;
        write!(f, "{settled} settled, {interrupted} interrupted, {released} released")?;
        if *abandoned > 0 {
            write!(f, ", {abandoned} abandoned")?;
        }
        write!(f, "; the drain took {:?}", rounded(*took))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line() {
        let mut report = DrainReport {
            settled: 4,
            interrupted: 1,
            released: 2,
            abandoned: 0,
            took: Duration::from_millis(3_214),
            in_drain: Drained::default(),
        };
        let told = "4 settled, 1 interrupted, 2 released; the drain took 3.2s";
        assert_eq!(report.to_string(), told);
        report.abandoned = 3;
        let told = "4 settled, 1 interrupted, 2 released, 3 abandoned; the drain took 3.2s";
        assert_eq!(report.to_string(), told);
    }
}
