//! What a rollout asks: what waits, what is stranded, and who is there.

use std::collections::BTreeMap;

use super::super::{BuildRecord, STRANDED, Strand, Waiting};
use super::claim::size;
use super::tables::{Tables, event, fence, route, turn};
use crate::clock::Timestamp;
use crate::id::JobId;
use crate::record::{EventKind, JobRecord};
use crate::state::State;

impl Tables {
    pub(super) fn strand(&mut self, now: Timestamp, strand: &Strand<'_>) -> u32 {
        let is_due = |job: &&JobRecord| match job.state {
            State::Ready => true,
            State::Scheduled => job.refused.is_some(),
            State::Running | State::Succeeded | State::Dead | State::Cancelled => false,
        };
        let has_waited = |job: &&JobRecord| {
            let since = if job.refused.is_some() { job.enqueued_at } else { job.due_at };
            since.after(strand.waited) <= now
        };
        let jobs = self.jobs.values().filter(is_due).filter(has_waited);
        let stranded = jobs.filter(|job| strand.routes.contains(&route(job)));
        let ids: Vec<JobId> = stranded.map(|job| job.id).take(size(strand.limit)).collect();
        for id in &ids {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            let text = "no live worker could read it until its deadline".to_owned();
            turn(job, State::Dead);
            job.finished_at = Some(now);
            job.error_class = Some(STRANDED.to_owned());
            job.error = Some(text.clone());
            let fence = fence(job);
            let told = event(EventKind::Stranded, STRANDED, text);
            self.record(now, fence, Some(&strand.by), told);
        }
        u32::try_from(ids.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn publish(&mut self, now: Timestamp, build: &str, manifest: &str) {
        self.builds.insert((build.to_owned(), manifest.to_owned()), now);
    }

    pub(super) fn builds(&self) -> Vec<BuildRecord> {
        let record = |((build, manifest), seen_at): (&(String, String), &Timestamp)| {
            let (build, manifest) = (build.clone(), manifest.clone());
            BuildRecord { build, manifest, seen_at: *seen_at }
        };
        let mut builds: Vec<_> = self.builds.iter().map(record).collect();
        builds.sort_by_key(|build| std::cmp::Reverse(build.seen_at));
        builds
    }

    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let mut groups: BTreeMap<_, Waiting> = BTreeMap::new();
        for job in self.jobs.values().filter(|job| job.state.is_waiting()) {
            let key = (&job.queue, &job.kind, &job.version, &job.min_reader);
            let group = groups.entry(key).or_insert_with(|| Waiting {
                queue: job.queue.clone(),
                kind: job.kind.clone(),
                version: job.version.clone(),
                min_reader: job.min_reader.clone(),
                jobs: 0,
                refused: 0,
                oldest_at: job.enqueued_at,
            });
            group.jobs += 1;
            group.refused += u64::from(job.refused.is_some());
            group.oldest_at = group.oldest_at.min(job.enqueued_at);
        }
        groups.into_values().collect()
    }
}
