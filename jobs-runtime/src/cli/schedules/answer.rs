//! Schedules as `jobs schedules` shows them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::super::output::Shown;
use super::super::when::second;
use crate::store::{Tick, WorkerRecord};
use crate::{DeclaredBy, ScheduleStatus, Timestamp, WorkerId};

/// What is known of the workers that declare.
pub(super) struct Known {
    builds: BTreeMap<WorkerId, String>,
}

#[derive(Serialize)]
pub(super) struct Answer<'a> {
    name: &'a str,
    when: Option<&'a str>,
    catch_up: Option<String>,
    job: Option<JobAnswer<'a>>,
    next_at: Option<String>,
    latest_at: Option<String>,
    paused: Option<Paused<'a>>,
    declared: Vec<Declared<'a>>,
    problem: Option<&'a str>,
}

#[derive(Serialize)]
struct JobAnswer<'a> {
    queue: &'a str,
    kind: &'a str,
    version: &'a str,
    payload: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Paused<'a> {
    by: &'a str,
    reason: &'a str,
    at: String,
}

#[derive(Serialize)]
struct Declared<'a> {
    /// Absent: a person does.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<&'a str>,
    when: Option<&'a str>,
    since: String,
    counts: bool,
}

#[derive(Serialize)]
pub(super) struct Added<'a> {
    name: &'a str,
    next_at: Option<String>,
    is_paused: bool,
    goes_before_builds: bool,
}

#[derive(Serialize)]
pub(super) struct Ticked {
    at: String,
    job: i64,
}

impl Known {
    pub(super) fn of(workers: &[WorkerRecord]) -> Self {
        let live = workers.iter().filter(|worker| worker.ended_at.is_none());
        Self { builds: live.map(|worker| (worker.id, worker.build.clone())).collect() }
    }

    pub(super) fn has_live(&self) -> bool {
        !self.builds.is_empty()
    }

    fn build(&self, declared: &DeclaredBy) -> Option<&str> {
        self.builds.get(&declared.worker?).map(String::as_str)
    }

    /// Who declares, those first whose declaration counts: `by hand, shop 1.0 (2 workers)`.
    fn told(&self, declared: &[DeclaredBy]) -> String {
        let who = |one: &DeclaredBy| match one.worker {
            None => "by hand".to_owned(),
            Some(_) => self.build(one).unwrap_or("a build that has just gone").to_owned(),
        };
        let counting = declared.iter().find(|one| one.counts).map(who);
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        for one in declared {
            *others.entry(who(one)).or_default() += 1;
        }
        let first = counting.and_then(|who| others.remove_entry(&who));
        let told = first.into_iter().chain(others).map(|(who, count)| match count {
            1 => who,
            workers => format!("{who} ({workers} workers)"),
        });
        let told: Vec<_> = told.collect();
        if told.is_empty() { "nobody any more".to_owned() } else { told.join(", ") }
    }
}

pub(super) fn row(schedule: &ScheduleStatus, known: &Known) -> Vec<Shown> {
    let paused = schedule.paused.as_ref();
    let kind = schedule.job.as_ref().map(|job| job.kind.as_str());
    vec![
        Shown::new(schedule.name.as_str()),
        Shown::maybe(schedule.when.as_deref()),
        Shown::maybe(kind),
        // Within a day it goes on where it stopped, once somebody declares it again.
        Shown::maybe(schedule.next_at.filter(|_| !schedule.declared.is_empty()).map(second)),
        Shown::maybe(schedule.last_at.map(second)),
        Shown::new(known.told(&schedule.declared)),
        Shown::maybe(paused.map(|it| format!("by {} at {}: {}", it.by, second(it.at), it.reason))),
    ]
}

impl<'a> Answer<'a> {
    pub(super) fn of(schedule: &'a ScheduleStatus, known: &'a Known) -> Self {
        let declared = |one: &'a DeclaredBy| Declared {
            worker: one.worker.map(|worker| worker.0),
            build: known.build(one),
            when: one.when.as_deref(),
            since: one.since.to_string(),
            counts: one.counts,
        };
        Self {
            name: schedule.name.as_str(),
            when: schedule.when.as_deref(),
            catch_up: schedule.catch_up.map(|rule| rule.to_string()),
            job: schedule.job.as_ref().map(|job| JobAnswer {
                queue: &job.queue,
                kind: &job.kind,
                version: &job.version,
                payload: serde_json::from_str(&job.payload).ok(),
            }),
            next_at: schedule.next_at.map(|at| at.to_string()),
            latest_at: schedule.last_at.map(|at| at.to_string()),
            paused: schedule.paused.as_ref().map(|pause| Paused {
                by: &pause.by,
                reason: &pause.reason,
                at: pause.at.to_string(),
            }),
            declared: schedule.declared.iter().map(declared).collect(),
            problem: schedule.problem.as_deref(),
        }
    }
}

impl<'a> Added<'a> {
    pub(super) fn of(schedule: &'a ScheduleStatus, next_at: Option<Timestamp>) -> Self {
        Self {
            name: schedule.name.as_str(),
            next_at: next_at.map(|at| at.to_string()),
            is_paused: schedule.paused.is_some(),
            goes_before_builds: schedule.declared.len() > 1,
        }
    }
}

impl Ticked {
    pub(super) fn of(tick: &Tick) -> Self {
        Self { at: tick.at.to_string(), job: tick.job.0 }
    }
}
