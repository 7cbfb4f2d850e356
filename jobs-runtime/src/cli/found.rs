//! The jobs that a command is about to change, as a person is shown them before.
//!
//! 1. They are listed once, page by page; of each no more is kept than its number, so that a million
//!    costs a few megabytes.
//! 2. At most [`MOST`] of one command: who means more says so again.

use std::collections::BTreeMap;

use serde::Serialize;

use super::exit::Result;
use super::output::{Output, Shown, json, print, say};
use super::when::second;
use crate::store::{Brief, Filter};
use crate::{JobId, Jobs, Timestamp};

/// How many jobs are listed at once.
const PAGE: u32 = 10_000;
/// At most so many jobs are one command's.
const MOST: usize = 1_000_000;

/// What is told of jobs beside their kind and queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The class of their error, and when they ended.
    Class,
    /// Their state, and when they are due.
    State,
}

/// The jobs that were found, and what they have in common.
#[derive(Debug)]
pub(super) struct Found {
    by: By,
    pub(super) ids: Vec<JobId>,
    groups: BTreeMap<Key, Group>,
    last_ended_at: Option<Timestamp>,
    has_more: bool,
}

type Key = (String, Option<String>, String);

#[derive(Debug, Clone, Copy)]
struct Group {
    jobs: u64,
    first_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct Answer<'a> {
    jobs: usize,
    #[serde(flatten)]
    bound: Option<Bound>,
    groups: Vec<GroupAnswer<'a>>,
    ids: Vec<i64>,
    /// Whether there are more, for the next command.
    has_more: bool,
}

/// What a later command narrows to, to mean these and no others; of jobs that have ended alone.
#[derive(Serialize)]
struct Bound {
    /// Null where nothing was found.
    ended_until: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum GroupAnswer<'a> {
    Class {
        kind: &'a str,
        class: Option<&'a str>,
        queue: &'a str,
        jobs: u64,
        first_ended_at: Option<String>,
        last_ended_at: Option<String>,
    },
    State {
        kind: &'a str,
        state: Option<&'a str>,
        queue: &'a str,
        jobs: u64,
        first_due_at: Option<String>,
        last_due_at: Option<String>,
    },
}

impl Found {
    pub(super) fn none(by: By) -> Self {
        let (ids, groups) = (Vec::new(), BTreeMap::new());
        Self { by, ids, groups, last_ended_at: None, has_more: false }
    }

    /// Adds all jobs that match, in order of their numbers.
    pub(super) async fn add_all(&mut self, jobs: &Jobs, mut filter: Filter) -> Result<()> {
        loop {
            let page = jobs.inspect().briefs(&filter, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            filter.after = Some(last.id);
            for job in &page {
                if self.ids.len() == MOST {
                    self.has_more = true;
                    return Ok(());
                }
                self.add(job);
            }
        }
    }

    pub(super) fn add(&mut self, job: &Brief) {
        let (told, at) = match self.by {
            By::Class => (job.class.clone(), job.finished_at),
            By::State => (Some(job.state.as_str().to_owned()), Some(job.due_at)),
        };
        let key = (job.kind.clone(), told, job.queue.clone());
        let group = self.groups.entry(key).or_insert(Group { jobs: 0, first_at: at, last_at: at });
        group.jobs += 1;
        group.first_at = group.first_at.min(at);
        group.last_at = group.last_at.max(at);
        self.last_ended_at = self.last_ended_at.max(job.finished_at);
        self.ids.push(job.id);
    }

    /// The instant that all of them ended before; `None` when there are none.
    pub(super) fn ended_before(&self) -> Option<Timestamp> {
        let last = self.last_ended_at.unwrap_or(Timestamp::from_micros(0));
        let behind = Timestamp::from_micros(last.as_micros().saturating_add(1));
        (!self.ids.is_empty()).then_some(behind)
    }

    /// Shows them. With JSON only a dry run answers by it, since a run answers by what it did.
    pub(super) fn tell(&self, output: Output, is_dry: bool) -> Result<()> {
        if output.is_json {
            return if is_dry { json(&self.answer()) } else { Ok(()) };
        }
        let header = match self.by {
            By::Class => ["KIND", "CLASS", "QUEUE", "JOBS", "FIRST ENDED", "LAST ENDED"],
            By::State => ["KIND", "STATE", "QUEUE", "JOBS", "FIRST DUE", "LAST DUE"],
        };
        output.table(&header, self.groups.iter().map(row).collect())?;
        print(&format!("{} in all\n", count(self.ids.len())))?;
        if self.has_more {
            say(&format!("jobs: there are more; {MOST} are as many as one command takes"));
        }
        Ok(())
    }

    fn answer(&self) -> Answer<'_> {
        let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let groups = self.groups.iter().map(|((kind, told, queue), group)| {
            let (told, jobs) = (told.as_deref(), group.jobs);
            let (first, last) = (instant(group.first_at), instant(group.last_at));
            match self.by {
                By::Class => GroupAnswer::Class {
                    kind,
                    class: told,
                    queue,
                    jobs,
                    first_ended_at: first,
                    last_ended_at: last,
                },
                By::State => GroupAnswer::State {
                    kind,
                    state: told,
                    queue,
                    jobs,
                    first_due_at: first,
                    last_due_at: last,
                },
            }
        });
        let bound = || Bound { ended_until: instant(self.ended_before()) };
        Answer {
            jobs: self.ids.len(),
            bound: (self.by == By::Class).then(bound),
            groups: groups.collect(),
            ids: self.ids.iter().map(|id| id.0).collect(),
            has_more: self.has_more,
        }
    }
}

fn row((key, group): (&Key, &Group)) -> Vec<Shown> {
    vec![
        Shown::new(key.0.as_str()),
        Shown::maybe(key.1.as_deref()),
        Shown::new(key.2.as_str()),
        Shown::new(group.jobs.to_string()),
        Shown::maybe(group.first_at.map(second)),
        Shown::maybe(group.last_at.map(second)),
    ]
}

/// So many jobs, in words.
pub(super) fn count(jobs: usize) -> String {
    if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") }
}
