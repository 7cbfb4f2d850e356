//! Routes and claims.

use std::collections::BTreeMap;

use super::super::{Claim, Claimed, EXHAUSTED, Head, ReadyRoute};
use super::tables::{Tables, advance, event, fence, place, route, turn};
use crate::clock::Timestamp;
use crate::id::{ClaimNumber, JobId, WorkerId};
use crate::name::QueueName;
use crate::record::{ClaimedJob, EventKind, JobRecord, Place};
use crate::route::Route;
use crate::state::State;

const LAST: ClaimNumber = ClaimNumber(i64::MAX);

impl Tables {
    pub(super) fn routes(&self, queues: &[QueueName]) -> Vec<ReadyRoute> {
        let mut firsts: BTreeMap<(&QueueName, Route), Place> = BTreeMap::new();
        for queue in queues.iter().filter(|queue| !self.paused.contains_key(queue.as_str())) {
            for job in self.ready(queue) {
                let first = firsts.entry((queue, route(job))).or_insert_with(|| place(job));
                *first = place(job).min(*first);
            }
        }
        let listed = |((queue, route), first): ((&QueueName, Route), Place)| ReadyRoute {
            queue: queue.clone(),
            route,
            first,
        };
        firsts.into_iter().map(listed).collect()
    }

    pub(super) fn claim(&mut self, now: Timestamp, claim: &Claim<'_>) -> Claimed {
        if !self.may_claim(claim.worker) {
            return Claimed::WorkerEnded;
        }
        let mut first = BTreeMap::new();
        for head in claim.heads {
            if self.paused.contains_key(head.queue.as_str()) {
                continue;
            }
            self.end_exhausted(now, head);
            first.extend(self.first(head).into_iter().map(|place| (place, &head.queue)));
        }
        let taken = first.into_iter().take(size(claim.limit));
        Claimed::Jobs(
            taken
                .filter_map(|(place, queue)| self.take(now, claim.worker, place.job, queue))
                .collect(),
        )
    }

    pub(super) fn claim_within(&mut self, now: Timestamp, claim: &Claim<'_>, most: u32) -> Claimed {
        let queue = claim.heads.first().map(|head| &head.queue);
        let is_of_queue = |job: &&JobRecord| queue.is_some_and(|name| name.as_str() == job.queue);
        let running = self.in_state(State::Running).filter(is_of_queue).count();
        let room = size(most).saturating_sub(running);
        let limit = claim.limit.min(u32::try_from(room).unwrap_or(u32::MAX));
        self.claim(now, &Claim { limit, ..*claim })
    }

    fn ready(&self, queue: &QueueName) -> impl Iterator<Item = &JobRecord> {
        let queue = queue.as_str();
        self.jobs.values().filter(move |job| job.state == State::Ready && job.queue == queue)
    }

    /// The first places of a head, in order, at most its limit.
    fn first(&self, head: &Head) -> Vec<Place> {
        let on_route = self.ready(&head.queue).filter(|job| route(job) == head.route);
        let mut places: Vec<_> = on_route.map(place).filter(|place| *place >= head.from).collect();
        places.sort_unstable();
        places.truncate(size(head.limit));
        places
    }

    fn take(
        &mut self,
        now: Timestamp,
        worker: WorkerId,
        id: JobId,
        queue: &QueueName,
    ) -> Option<ClaimedJob> {
        let job = self.jobs.get_mut(&id)?;
        turn(job, State::Running);
        job.claim = advance(job.claim);
        job.worker = Some(worker);
        job.claimed_at = Some(now);
        Some(claimed(job, queue))
    }

    /// Ends the jobs of a head whose claim number can't grow: under the same number a stale worker
    /// could pass for the next one.
    fn end_exhausted(&mut self, now: Timestamp, head: &Head) {
        let on_route = self.ready(&head.queue).filter(|job| route(job) == head.route);
        let exhausted: Vec<_> = on_route.filter(|job| job.claim >= LAST).map(fence).collect();
        for fence in exhausted {
            let text = "the claim number is at its maximum and can't grow any more";
            self.end_dead(now, fence.job, EXHAUSTED, text);
        }
    }

    /// Ends a job that waits, with an event.
    pub(super) fn end_dead(&mut self, now: Timestamp, id: JobId, class: &str, text: &str) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        turn(job, State::Dead);
        job.finished_at = Some(now);
        job.error_class = Some(class.to_owned());
        job.error = Some(text.to_owned());
        let fence = fence(job);
        self.record(now, fence, None, event(EventKind::Failed, class, text.to_owned()));
    }
}

fn claimed(job: &JobRecord, queue: &QueueName) -> ClaimedJob {
    ClaimedJob {
        fence: fence(job),
        queue: queue.clone(),
        place: place(job),
        kind: job.kind.clone(),
        version: job.version.clone(),
        min_reader: job.min_reader.clone(),
        payload: job.payload.clone(),
        headers: job.headers.clone(),
        counters: job.counters,
        budget: job.budget,
        checkpoint: job.checkpoint.clone(),
        refused: job.refused.clone(),
        enqueued_at: job.enqueued_at,
        due_at: job.due_at,
        is_expired: job.expires_at.zip(job.claimed_at).is_some_and(|(at, claimed)| at <= claimed),
        key_number: job.key_number,
    }
}

/// A limit as a length.
pub(super) fn size(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
