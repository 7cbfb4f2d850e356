//! What a person is shown before jobs are brought back.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Timestamp;
use crate::cli::exit::Result;
use crate::cli::output::{self, Output, json, print};
use crate::cli::when::second;
use crate::store::Brief;

/// The jobs that were found, by what they have in common.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    found: &'a [Brief],
    groups: Vec<Group<'a>>,
}

/// Jobs of a kind, a class and a queue.
#[derive(Debug, Clone, Copy)]
struct Group<'a> {
    kind: &'a str,
    class: Option<&'a str>,
    queue: &'a str,
    jobs: u64,
    first_ended_at: Option<Timestamp>,
    last_ended_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct Answer<'a> {
    jobs: usize,
    /// What a later command narrows to, to bring back these and no others.
    ended_until: Option<String>,
    groups: Vec<GroupAnswer<'a>>,
    ids: Vec<i64>,
}

#[derive(Serialize)]
struct GroupAnswer<'a> {
    kind: &'a str,
    class: Option<&'a str>,
    queue: &'a str,
    jobs: u64,
    first_ended_at: Option<String>,
    last_ended_at: Option<String>,
}

impl<'a> Shown<'a> {
    pub(super) fn of(found: &'a [Brief]) -> Self {
        let mut groups: BTreeMap<(&str, Option<&str>, &str), Group<'a>> = BTreeMap::new();
        for job in found {
            let (kind, class, queue) = (&*job.kind, job.class.as_deref(), &*job.queue);
            let ended_at = job.finished_at;
            let group = groups.entry((kind, class, queue)).or_insert(Group {
                kind,
                class,
                queue,
                jobs: 0,
                first_ended_at: ended_at,
                last_ended_at: ended_at,
            });
            group.jobs += 1;
            group.first_ended_at = group.first_ended_at.min(ended_at);
            group.last_ended_at = group.last_ended_at.max(ended_at);
        }
        Self { found, groups: groups.into_values().collect() }
    }

    /// The instant that all of them ended before; `None` when there are none.
    pub(super) fn ended_before(&self) -> Option<Timestamp> {
        let ended = |job: &Brief| job.finished_at.unwrap_or(Timestamp::from_micros(0));
        let last = self.found.iter().map(ended).max()?;
        Some(Timestamp::from_micros(last.as_micros().saturating_add(1)))
    }

    /// Shows them. With JSON only a dry run answers by it, since a run answers by what it did.
    pub(super) fn tell(&self, output: Output, is_dry: bool) -> Result<()> {
        let ended_until = self.ended_before().map(|at| at.to_string());
        match (output.is_json, is_dry) {
            (true, true) => {
                return json(&Answer {
                    jobs: self.found.len(),
                    ended_until,
                    groups: self.groups.iter().map(Group::answer).collect(),
                    ids: self.found.iter().map(|job| job.id.0).collect(),
                });
            }
            (true, false) => return Ok(()),
            (false, true | false) => {}
        }
        let header = ["KIND", "CLASS", "QUEUE", "JOBS", "FIRST ENDED", "LAST ENDED"];
        output.table(&header, self.groups.iter().map(Group::row).collect())?;
        print(&format!("{} in all\n", super::count(self.found.len())))?;
        if let Some(until) = ended_until.filter(|_| is_dry) {
            output::say(&format!(
                "jobs: nothing was changed; the same command with `--ended-until {until}` instead of \
                 `--dry-run` brings back these and no others"
            ));
        }
        Ok(())
    }
}

impl<'a> Group<'a> {
    fn answer(&self) -> GroupAnswer<'a> {
        let Self { kind, class, queue, jobs, .. } = *self;
        let first_ended_at = self.first_ended_at.map(|at| at.to_string());
        let last_ended_at = self.last_ended_at.map(|at| at.to_string());
        GroupAnswer { kind, class, queue, jobs, first_ended_at, last_ended_at }
    }

    fn row(&self) -> Vec<output::Shown> {
        vec![
            output::Shown::new(self.kind),
            output::Shown::maybe(self.class),
            output::Shown::new(self.queue),
            output::Shown::new(self.jobs.to_string()),
            output::Shown::maybe(self.first_ended_at.map(second)),
            output::Shown::maybe(self.last_ended_at.map(second)),
        ]
    }
}
