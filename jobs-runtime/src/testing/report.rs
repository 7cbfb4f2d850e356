//! What became of the jobs of a simulated rollout.

use std::time::Duration;

use jobs_core::{JobId, State};

/// What became of the jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Repeats the run: `Simulation::seed`.
    pub seed: u64,
    /// Every job, in order of id.
    pub jobs: Vec<JobReport>,
}

/// What became of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobReport {
    /// The job.
    pub id: JobId,
    /// Its kind.
    pub kind: String,
    /// Its version.
    pub version: String,
    /// Its state in the end; `None`: it is gone.
    pub state: Option<State>,
    /// How often a handler started on it.
    pub starts: u32,
    /// How often a run of it was settled as a success.
    pub successes: u32,
    /// How often it was given back unread.
    pub refusals: u32,
    /// How often the infrastructure ended a run of it, crashes included.
    pub interruptions: u32,
    /// How often it failed.
    pub failures: u32,
    /// From its enqueue to its first start.
    pub delay: Option<Duration>,
}

impl Report {
    fn all(&self, is: impl Fn(&JobReport) -> bool) -> Vec<&JobReport> {
        self.jobs.iter().filter(|job| is(job)).collect()
    }

    /// Jobs that the store no longer has.
    pub fn lost(&self) -> Vec<&JobReport> {
        self.all(|job| job.state.is_none())
    }

    /// Jobs that succeeded more than once.
    pub fn doubled(&self) -> Vec<&JobReport> {
        self.all(|job| job.successes > 1)
    }

    /// Jobs that failed or died, which no simulated handler does by itself.
    pub fn failed_by_the_deploy(&self) -> Vec<&JobReport> {
        self.all(|job| job.failures > 0 || job.state == Some(State::Dead))
    }

    /// Jobs that no worker of the last build could read.
    pub fn stranded(&self) -> Vec<&JobReport> {
        self.all(|job| job.state.is_some_and(State::is_waiting))
    }

    /// How often a job was given back unread, over all.
    pub fn refusals(&self) -> u64 {
        self.jobs.iter().map(|job| u64::from(job.refusals)).sum()
    }

    /// The delay that all but one in a hundred of these jobs stayed under; `None` where none started.
    pub fn p99_delay(&self, is_wanted: impl Fn(&JobReport) -> bool) -> Option<Duration> {
        let wanted = self.jobs.iter().filter(|job| is_wanted(job));
        let mut delays: Vec<Duration> = wanted.filter_map(|job| job.delay).collect();
        delays.sort_unstable();
        let last = delays.len().checked_sub(1)?;
        delays.get(last * 99 / 100).copied()
    }

    /// Asserts that each job succeeded once and that nothing but stops and kills ended its runs.
    ///
    /// # Panics
    /// When one did not; the message has the seed.
    pub fn assert_nothing_lost(&self) {
        for job in &self.jobs {
            let is_fine = job.state == Some(State::Succeeded)
                && job.successes == 1
                && job.failures == 0
                && job.starts <= 1 + job.interruptions;
            assert!(is_fine, "with seed {}: {job:?}", self.seed);
        }
    }
}
