//! What the suite does to a store behind its back.

use std::time::Duration;

use super::super::Phase;
use super::super::conformance::{RawRow, Tampering};
use super::MemoryStore;
use crate::clock::{Timestamp, micros};
use crate::envelope::UniqueWhile;
use crate::id::{ClaimNumber, JobId};
use crate::record::{Budget, COUNTER_MAX, Counters, Event, EventKind, JobRecord, Priority};
use crate::state::State;

impl MemoryStore {
    pub(crate) async fn plant(&self, row: &RawRow) -> JobId {
        self.waking(|tables, at| {
            let id = tables.next_job();
            let record = JobRecord {
                id,
                state: State::Ready,
                queue: row.queue.clone(),
                kind: row.kind.clone(),
                version: row.version.clone(),
                min_reader: row.min_reader.clone(),
                payload: row.payload.clone(),
                headers: None,
                unique_key: None,
                priority: Priority::default(),
                claim: ClaimNumber(0),
                worker: None,
                counters: Counters::default(),
                budget: Budget::default(),
                checkpoint: None,
                refused: None,
                error_class: None,
                error: None,
                build: None,
                enqueued_at: at.now,
                due_at: at.now,
                claimed_at: None,
                finished_at: None,
                unique_while: UniqueWhile::default(),
                expires_at: None,
                key_number: 0,
                progress: None,
                result: None,
            };
            tables.jobs.insert(id, record);
            id
        })
        .await
    }

    /// Moves all stored instants back, as for a store whose clock nobody can move on.
    pub(crate) async fn move_back(&self, span: Duration) {
        let back = |at: &mut Timestamp| {
            *at = Timestamp::from_micros(at.as_micros().saturating_sub(micros(span)));
        };
        self.call(|tables, _| {
            for job in tables.jobs.values_mut() {
                back(&mut job.enqueued_at);
                back(&mut job.due_at);
                job.claimed_at.iter_mut().for_each(back);
                job.finished_at.iter_mut().for_each(back);
                job.expires_at.iter_mut().for_each(back);
            }
            for worker in tables.workers.values_mut() {
                worker.renewed = worker.renewed.saturating_sub(span);
                worker.gone_at = worker.gone_at.map(|at| at.saturating_sub(span));
                back(&mut worker.record.started_at);
                worker.record.ended_at.iter_mut().for_each(back);
            }
            tables.events.values_mut().flatten().for_each(|event| back(&mut event.at));
            for schedule in tables.schedules.values_mut() {
                schedule.next_at.iter_mut().for_each(back);
                schedule.last_at.iter_mut().for_each(back);
                schedule.declared.values_mut().for_each(|(since, _)| back(since));
                schedule.ticks.iter_mut().for_each(|tick| back(&mut tick.at));
            }
            tables.builds.values_mut().for_each(back);
            tables.paused.values_mut().for_each(|paused| back(&mut paused.at));
        })
        .await;
    }

    pub(crate) async fn outgrow(&self) {
        self.call(|tables, _| tables.is_outgrown = true).await;
    }

    pub(crate) async fn tamper(&self, job: JobId, tampering: &Tampering) {
        self.call(|tables, at| {
            let job = tables.jobs.get_mut(&job).expect("only a stored job is tampered with");
            match tampering {
                Tampering::FillCounters => {
                    job.claim = ClaimNumber(i64::MAX);
                    if let Some(checkpoint) = &mut job.checkpoint {
                        checkpoint.number = i64::MAX;
                    }
                    tables.events.entry(job.id).or_default().push_back(Event {
                        number: i64::MAX,
                        at: at.now,
                        claim: job.claim,
                        kind: EventKind::Failed,
                        class: "full".to_owned(),
                        text: String::new(),
                        worker: None,
                        build: None,
                    });
                    job.counters = Counters {
                        failures: COUNTER_MAX,
                        interruptions: COUNTER_MAX,
                        crashes: COUNTER_MAX,
                        refusals: COUNTER_MAX,
                        snoozes: COUNTER_MAX,
                    };
                }
                Tampering::RunUnheld => {
                    job.state = State::Running;
                    job.worker = None;
                }
                // Here what a build does not know can't be kept, so it is made what that build reads.
                Tampering::UnknownNames => {
                    tables.events.remove(&job.id);
                    for worker in tables.workers.values_mut() {
                        worker.record.phase = Phase::Working;
                    }
                }
            }
        })
        .await;
    }
}
