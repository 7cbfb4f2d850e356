//! Jobs as JSON. Payloads are repeated to the digit: they are never parsed into numbers.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Counters, Event, JobRecord, StoredCheckpoint, Timestamp, UniqueWhile};

/// A job with all that is kept of it.
#[derive(Serialize)]
pub(super) struct JobAnswer<'a> {
    id: i64,
    state: &'static str,
    queue: &'a str,
    kind: &'a str,
    version: &'a str,
    min_reader: Option<&'a str>,
    payload: Stored<'a>,
    headers: Option<Stored<'a>>,
    unique_key: Option<&'a str>,
    /// For how long the key binds; null without one.
    unique_while: Option<&'static str>,
    /// How often a person gave it a new idempotency key.
    key_number: u32,
    priority: i16,
    claim: i64,
    /// The worker that runs it, or ran it to its success.
    worker: Option<i64>,
    /// That worker's build, where `show` asks for it and the store remembers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_build: Option<&'a str>,
    #[serde(flatten)]
    counters: CountersAnswer,
    max_failures: u32,
    max_interruptions: Option<u32>,
    checkpoint: Option<CheckpointAnswer<'a>>,
    progress: Option<&'a str>,
    result: Option<Stored<'a>>,
    refused: Option<RefusedAnswer<'a>>,
    error_class: Option<&'a str>,
    error: Option<&'a str>,
    build: Option<&'a str>,
    enqueued_at: String,
    due_at: String,
    /// No run starts after it.
    expires_at: Option<String>,
    claimed_at: Option<String>,
    finished_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<EventAnswer<'a>>>,
}

/// A stored JSON text: as it is, or as a text where it is not JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Stored<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

#[derive(Serialize)]
struct CountersAnswer {
    failures: u32,
    interruptions: u32,
    crashes: u32,
    refusals: u32,
    snoozes: u32,
}

#[derive(Serialize)]
struct CheckpointAnswer<'a> {
    version: &'a str,
    min_reader: Option<&'a str>,
    number: i64,
    text: Stored<'a>,
}

#[derive(Serialize)]
struct RefusedAnswer<'a> {
    reason: &'a str,
    build: &'a str,
}

#[derive(Serialize)]
struct EventAnswer<'a> {
    number: i64,
    at: String,
    claim: i64,
    kind: &'static str,
    class: &'a str,
    text: &'a str,
    worker: Option<i64>,
    build: Option<&'a str>,
}

impl<'a> Stored<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        serde_json::from_str(text).map_or(Self::Text(text), Self::Json)
    }
}

impl<'a> JobAnswer<'a> {
    pub(super) fn of(job: &'a JobRecord) -> Self {
        let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let refused = job.refused.as_ref();
        Self {
            id: job.id.0,
            state: job.state.as_str(),
            queue: &job.queue,
            kind: &job.kind,
            version: &job.version,
            min_reader: job.min_reader.as_deref(),
            payload: Stored::of(&job.payload),
            headers: job.headers.as_deref().map(Stored::of),
            unique_key: job.unique_key.as_deref(),
            unique_while: job.unique_key.as_ref().map(|_| job.unique_while).map(binds),
            key_number: job.key_number,
            priority: job.priority.value(),
            claim: job.claim.0,
            worker: job.worker.map(|worker| worker.0),
            worker_build: None,
            counters: counters(job.counters),
            max_failures: job.budget.max_failures,
            max_interruptions: job.budget.max_interruptions,
            checkpoint: job.checkpoint.as_ref().map(checkpoint),
            progress: job.progress.as_deref(),
            result: job.result.as_deref().map(Stored::of),
            refused: refused.map(|by| RefusedAnswer { reason: &by.reason, build: &by.build }),
            error_class: job.error_class.as_deref(),
            error: job.error.as_deref(),
            build: job.build.as_deref(),
            enqueued_at: job.enqueued_at.to_string(),
            due_at: job.due_at.to_string(),
            expires_at: instant(job.expires_at),
            claimed_at: instant(job.claimed_at),
            finished_at: instant(job.finished_at),
            history: None,
        }
    }

    pub(super) fn with_history(self, events: &'a [Event]) -> Self {
        Self { history: Some(events.iter().map(event).collect()), ..self }
    }

    pub(super) fn run_by(self, build: Option<&'a str>) -> Self {
        Self { worker_build: build, ..self }
    }
}

const fn binds(unique_while: UniqueWhile) -> &'static str {
    match unique_while {
        UniqueWhile::Waiting => "waiting",
        UniqueWhile::Running => "running",
        UniqueWhile::Kept => "kept",
    }
}

const fn counters(counters: Counters) -> CountersAnswer {
    let Counters { failures, interruptions, crashes, refusals, snoozes } = counters;
    CountersAnswer { failures, interruptions, crashes, refusals, snoozes }
}

fn checkpoint(saved: &StoredCheckpoint) -> CheckpointAnswer<'_> {
    CheckpointAnswer {
        version: &saved.version,
        min_reader: saved.min_reader.as_deref(),
        number: saved.number,
        text: Stored::of(&saved.text),
    }
}

fn event(event: &Event) -> EventAnswer<'_> {
    EventAnswer {
        number: event.number,
        at: event.at.to_string(),
        claim: event.claim.0,
        kind: event.kind.as_str(),
        class: &event.class,
        text: &event.text,
        worker: event.worker.map(|worker| worker.0),
        build: event.build.as_deref(),
    }
}
