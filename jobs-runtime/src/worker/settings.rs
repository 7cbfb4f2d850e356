//! The settings of a worker: as given, and as checked.
//!
//! What is outside its range is refused with the reason, and never adjusted.

use std::ops::RangeInclusive;
use std::time::Duration;

use jobs_core::store::Retention;
use jobs_core::{Lease, QueueName, WorkerName};

use super::budget::{Budget, Stated};
use super::queues::Share;
use crate::error::{Error, ErrorKind};
use crate::registry::Handlers;

const MAX_CONCURRENCY: usize = 100_000;
const POLL_INTERVALS: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_hours(1);
const STRANDED_DEADLINES: RangeInclusive<Duration> =
    Duration::from_mins(1)..=Duration::from_hours(24 * 365);

/// The settings as given, not yet checked.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: Option<String>,
    pub(super) queues: Vec<String>,
    pub(super) weights: Vec<(String, u32)>,
    pub(super) limits: Vec<(String, usize)>,
    pub(super) fleet_limits: Vec<(String, u32)>,
    pub(super) concurrency: usize,
    pub(super) lease: Duration,
    pub(super) poll_interval: Duration,
    pub(super) stated: Stated,
    #[cfg(feature = "http")]
    pub(super) health: Option<String>,
    pub(super) stranded_deadline: Option<Duration>,
    pub(super) retention: Retention,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            name: None,
            queues: Vec::new(),
            weights: Vec::new(),
            limits: Vec::new(),
            fleet_limits: Vec::new(),
            concurrency: 10,
            lease: Lease::default().length(),
            poll_interval: Duration::from_secs(1),
            stated: Stated::default(),
            #[cfg(feature = "http")]
            health: None,
            stranded_deadline: None,
            retention: Retention::default(),
        }
    }
}

/// The settings of a worker, checked.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: WorkerName,
    pub(crate) queues: Vec<QueueName>,
    /// How the slots are shared among the queues; nothing where no queue was given a weight or a limit.
    pub(crate) shares: Option<Vec<Share>>,
    pub(crate) concurrency: usize,
    pub(crate) lease: Lease,
    pub(crate) poll_interval: Duration,
    /// How long a drain may take.
    pub(crate) drain: Duration,
    pub(crate) stranded_deadline: Option<Duration>,
    pub(crate) retention: Retention,
}

impl Wanted {
    pub(super) fn checked<S>(
        self,
        handlers: &Handlers<S>,
        budget: Budget,
    ) -> Result<Settings, Error> {
        let refuse = |what: String| Err(Error::new(ErrorKind::Configuration, what));
        if !(1..=MAX_CONCURRENCY).contains(&self.concurrency) {
            let given = self.concurrency;
            return refuse(format!(
                "a concurrency of {given} is not at least 1 and at most 100,000"
            ));
        }
        if !POLL_INTERVALS.contains(&self.poll_interval) {
            let given = self.poll_interval;
            return refuse(format!("a poll interval of {given:?} is not one of 10 ms to 1 h"));
        }
        if let Some(given) = self.stranded_deadline.filter(|it| !STRANDED_DEADLINES.contains(it)) {
            return refuse(format!(
                "a stranded deadline of {given:?} is not one of 1 min to 365 days"
            ));
        }
        let Some(lease) = Lease::new(self.lease) else {
            return refuse(format!("a lease of {:?} is not one of 1 s to 1 h", self.lease));
        };
        let name = self.name.unwrap_or_else(|| format!("process {}", std::process::id()));
        let wanted = if self.queues.is_empty() {
            handlers.all().iter().map(|handled| handled.policy.queue.to_owned()).collect()
        } else {
            self.queues
        };
        let mut queues = wanted.iter().map(QueueName::new).collect::<Result<Vec<_>, _>>()?;
        queues.sort();
        queues.dedup();
        if queues.is_empty() {
            queues.push(QueueName::default());
        }
        let shares = shares(&queues, &self.weights, &self.limits, &self.fleet_limits)?;
        Ok(Settings {
            name: WorkerName::new(name)?,
            queues,
            shares,
            concurrency: self.concurrency,
            lease,
            poll_interval: self.poll_interval,
            drain: budget.drain(),
            stranded_deadline: self.stranded_deadline,
            retention: self.retention,
        })
    }
}

/// What was said of a queue; of two settings the later counts.
fn last<T: Copy>(settings: &[(String, T)], queue: &QueueName) -> Option<T> {
    let of_queue = settings.iter().rev().find(|(name, _)| name == queue.as_str());
    of_queue.map(|(_, setting)| *setting)
}

/// How the slots are shared among the queues, where anything was said about that.
fn shares(
    queues: &[QueueName],
    weights: &[(String, u32)],
    limits: &[(String, usize)],
    fleet_limits: &[(String, u32)],
) -> Result<Option<Vec<Share>>, Error> {
    let refuse = |what: String| Err(Error::new(ErrorKind::Configuration, what));
    let named = weights.iter().map(|(name, _)| name);
    let named = named.chain(limits.iter().map(|(name, _)| name));
    let mut named = named.chain(fleet_limits.iter().map(|(name, _)| name)).peekable();
    if named.peek().is_none() {
        return Ok(None);
    }
    if let Some(name) = named.find(|name| !queues.iter().any(|queue| queue.as_str() == **name)) {
        return refuse(format!(
            "the worker shares its slots with the queue {name:?}, but does not work it"
        ));
    }
    if let Some((name, weight)) = weights.iter().find(|(_, weight)| !(1..=1_000).contains(weight)) {
        return refuse(format!(
            "the weight {weight} of the queue {name:?} is not one of 1 to 1,000"
        ));
    }
    let zero = limits.iter().find(|(_, most)| *most == 0).map(|(name, _)| name);
    let zero_in_fleet = fleet_limits.iter().find(|(_, most)| *most == 0).map(|(name, _)| name);
    if let Some(name) = zero.or(zero_in_fleet) {
        return refuse(format!("a limit of 0 for the queue {name:?}: pause the queue instead"));
    }
    let share = |queue: &QueueName| Share {
        queue: queue.clone(),
        weight: last(weights, queue).unwrap_or(1),
        most: last(limits, queue),
        most_in_fleet: last(fleet_limits, queue),
    };
    Ok(Some(queues.iter().map(share).collect()))
}
