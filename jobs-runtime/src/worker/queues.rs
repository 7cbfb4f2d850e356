//! How a worker shares its slots among its queues.
//!
//! 1. A queue with work gets at least the share that its weight says, and one that has less to do lends
//!    its slots out.
//! 2. No queue lends its last slot: however slow the runs of another one are, its next job starts when
//!    it comes. So it takes a worker with more slots than queues.
//! 3. A queue never runs more than its own most, here or in the fleet.
//!
//! Without weights and limits none of this is asked: jobs of all queues then start in order of their
//! places, and a backlog that is older goes first.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jobs_core::QueueName;

/// What a worker was told of a queue.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    pub(crate) queue: QueueName,
    /// Its part of the slots, beside the others' weights.
    pub(crate) weight: u32,
    /// At most so many of it run in this worker.
    pub(crate) most: Option<usize>,
    /// At most so many of it run in all workers.
    pub(crate) most_in_fleet: Option<u32>,
}

/// What may be claimed from a queue now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) queue: QueueName,
    pub(crate) limit: u32,
    pub(crate) most_in_fleet: Option<u32>,
}

/// How many handlers of each queue have not ended.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<QueueName, usize>>);

impl Running {
    pub(crate) fn begin(&self, queue: &QueueName) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *running.entry(queue.clone()).or_default() += 1;
    }

    pub(crate) fn end(&self, queue: &QueueName) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(queue) {
            *count = count.saturating_sub(1);
        }
    }

    fn of(&self, shares: &[Share]) -> Vec<usize> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shares.iter().map(|share| running.get(&share.queue).copied().unwrap_or_default()).collect()
    }
}

/// What to claim, in this order, until something is there: first for the queues that run less than
/// their share, the one with the smallest part of it before the others, then what may be lent.
pub(crate) fn offers(shares: &[Share], running: &Running, slots: usize, free: usize) -> Vec<Offer> {
    let running = running.of(shares);
    let weights: usize = shares.iter().map(|share| size(share.weight)).sum();
    let idle = running.iter().filter(|count| **count == 0).count();
    let may_reserve = slots > shares.len();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    // Compared as fractions of the weights, without dividing.
    order.sort_by(|a, b| {
        let part = |one: &usize, other: &usize| running[*one] * size(shares[*other].weight);
        part(a, b).cmp(&part(b, a))
    });
    let offer = |at: usize, limit: usize| {
        let Share { queue, most, most_in_fleet, .. } = &shares[at];
        let idle_others = idle - usize::from(running[at] == 0);
        let kept_back = if may_reserve { idle_others } else { 0 };
        let room = most.map_or(free, |most| most.saturating_sub(running[at]));
        let limit = limit.min(free.saturating_sub(kept_back)).min(room);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let offer = Offer { queue: queue.clone(), limit, most_in_fleet: *most_in_fleet };
        (limit > 0).then_some(offer)
    };
    let share = |at: usize| (slots * size(shares[at].weight) / weights.max(1)).max(1);
    let owed = order.iter().filter_map(|at| offer(*at, share(*at).saturating_sub(running[*at])));
    let lent = order.iter().filter_map(|at| offer(*at, free));
    let mut offers: Vec<Offer> = owed.collect();
    offers.extend(lent);
    offers
}

fn size(weight: u32) -> usize {
    usize::try_from(weight).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
