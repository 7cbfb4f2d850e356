//! A schedule as the text that a store keeps: when, what, and what about missed ticks.
//!
//! 1. The text holds all that a leader needs: a worker enqueues the jobs of builds that it is not of.
//! 2. It is read as it was written: fields that a later build adds are left alone.
//! 3. A pause is a declaration too, a person's: `{"paused": …}`. So it goes before all that builds
//!    declare, and what a person had declared before stands in it until the pause ends.

use std::time::Duration;

use jobs_core::store::Declaration;
use jobs_core::{
    Budget, BuildId, CatchUp, Due, Headers, Kind, MAX_CATCH_UP, MinReader, NewJob, OnConflict,
    Priority, QueueName, Schedule, ScheduleName, Timestamp, UniqueKey, UniqueWhile, Version, chain,
    encode_headers, micros,
};
use serde::{Deserialize, Serialize};

use super::Timetable;
use crate::enqueue::NO_TIME;

/// The header that names a job's schedule.
const SCHEDULE: &str = "jobs-schedule";
/// The header with the instant that the job's tick was to come at.
const TICK: &str = "jobs-tick";

/// What is declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) when: String,
    #[serde(default)]
    pub(crate) catch_up: CatchUp,
    pub(crate) job: Job,
}

/// What is declared of a schedule that a person has paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) by: String,
    pub(crate) reason: String,
    pub(crate) at_us: i64,
    /// What a person had declared under the name, and does again when the pause ends.
    #[serde(default)]
    pub(crate) instead: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct PauseText {
    paused: Pause,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) queue: String,
    pub(crate) kind: String,
    pub(crate) version: String,
    min_reader: String,
    pub(crate) payload: String,
    #[serde(default)]
    priority: i16,
    max_failures: u32,
    #[serde(default)]
    max_interruptions: Option<u32>,
    #[serde(default)]
    unique_key: Option<String>,
    #[serde(default)]
    unique_while: Option<String>,
    #[serde(default)]
    expires_in_ms: Option<u64>,
    #[serde(default)]
    build: Option<String>,
}

/// Checks a schedule and writes it as what is declared.
///
/// # Errors
/// What is wrong with it, naming it.
pub(crate) fn declaration(schedule: &Schedule, build: &BuildId) -> Result<Declaration, String> {
    let refused = |why: String| format!("the schedule {:?}: {why}", schedule.name());
    let name = ScheduleName::new(schedule.name()).map_err(|error| error.to_string())?;
    Timetable::parse(schedule.when()).map_err(|error| refused(error.to_string()))?;
    if let CatchUp::All(most) = schedule.catches_up()
        && !(1..=MAX_CATCH_UP).contains(&most)
    {
        let range =
            format!("it makes up for {most} ticks, which is not one of 1 to {MAX_CATCH_UP}");
        return Err(refused(range));
    }
    let job = schedule.job().map_err(|error| refused(chain(error)))?;
    let expires_in_ms = job.expires_in.map(|wait| micros(wait).unsigned_abs() / 1_000);
    if expires_in_ms == Some(0) {
        return Err(refused(NO_TIME.to_owned()));
    }
    let job = Job {
        queue: job.queue.to_string(),
        kind: job.kind.to_string(),
        version: job.version.to_string(),
        min_reader: job.min_reader.to_string(),
        payload: job.payload.clone(),
        priority: job.priority.value(),
        max_failures: job.budget.max_failures,
        max_interruptions: job.budget.max_interruptions,
        unique_key: job.unique_key.as_ref().map(ToString::to_string),
        unique_while: job.unique_while.as_str().map(ToOwned::to_owned),
        expires_in_ms,
        build: Some(build.to_string()),
    };
    let spec = Spec { when: schedule.when().to_owned(), catch_up: schedule.catches_up(), job };
    let text = serde_json::to_string(&spec).expect("texts and numbers are plain JSON");
    Ok(Declaration { name, text })
}

/// When a declared schedule ticks, and the job of a tick.
///
/// # Errors
/// What is wrong with its text.
#[cfg(feature = "cli")]
pub(crate) fn read(text: &str) -> Result<(String, NewJob), String> {
    let (spec, _) = Spec::read(text)?;
    let job = spec.job_at(Timestamp::from_micros(0), "")?;
    Ok((spec.when, job))
}

impl Pause {
    /// Reads the declaration of a pause; `None` for every other text.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(|text: PauseText| text.paused)
    }

    /// The pause as it is declared.
    pub(crate) fn text(self) -> String {
        serde_json::to_string(&PauseText { paused: self })
            .expect("texts and numbers are plain JSON")
    }
}

impl Spec {
    /// Reads what was declared.
    ///
    /// # Errors
    /// What is wrong with it: it is of a later build, or of nobody's.
    pub(crate) fn read(text: &str) -> Result<(Self, Timetable), String> {
        let spec: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let timetable = Timetable::parse(&spec.when).map_err(|error| error.to_string())?;
        // Whatever is wrong with the job is told now, and not when a tick has come.
        spec.job_at(Timestamp::from_micros(0), "")?;
        Ok((spec, timetable))
    }

    /// The job of a tick.
    pub(super) fn job_at(&self, tick: Timestamp, schedule: &str) -> Result<NewJob, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let job = &self.job;
        let headers = Headers::from([
            (SCHEDULE.to_owned(), schedule.to_owned()),
            (TICK.to_owned(), tick.to_string()),
        ]);
        let unique_key = job.unique_key.as_ref().map(UniqueKey::new).transpose();
        Ok(NewJob {
            queue: QueueName::new(&job.queue).map_err(|error| text(&error))?,
            kind: Kind::new(&job.kind).map_err(|error| text(&error))?,
            version: Version::parse(&job.version).map_err(|error| text(&error))?,
            min_reader: MinReader::parse(&job.min_reader).map_err(|error| text(&error))?,
            payload: job.payload.clone(),
            headers: encode_headers(&headers).map_err(|error| text(&error))?,
            priority: Priority::clamped(i64::from(job.priority)),
            due: Due::At(tick),
            unique_key: unique_key.map_err(|error| text(&error))?,
            unique_while: UniqueWhile::from_name(job.unique_while.as_deref()),
            on_conflict: OnConflict::default(),
            expires_in: job.expires_in_ms.map(Duration::from_millis),
            budget: Budget {
                max_failures: job.max_failures.max(1),
                max_interruptions: job.max_interruptions,
            },
            build: job
                .build
                .as_ref()
                .map(BuildId::new)
                .transpose()
                .map_err(|error| text(&error))?,
        })
    }
}
