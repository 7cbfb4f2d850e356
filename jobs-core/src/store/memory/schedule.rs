//! Schedules: declarations, and ticks that come once.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::super::{
    Advanced, Declaration, Declared, MAX_TICKS, Result, ScheduleRecord, ScheduleView, Schedules,
    Step, Tick,
};
use super::MemoryStore;
use super::claim::size;
use super::tables::Tables;
use crate::clock::Timestamp;
use crate::id::WorkerId;
use crate::name::ScheduleName;

/// A schedule and all that is declared of it, by ended workers too.
#[derive(Debug, Clone, Default)]
pub(super) struct Schedule {
    pub(super) text: Option<String>,
    pub(super) next_at: Option<Timestamp>,
    pub(super) last_at: Option<Timestamp>,
    pub(super) declared: BTreeMap<Option<WorkerId>, (Timestamp, String)>,
    /// Oldest first.
    pub(super) ticks: Vec<Tick>,
}

#[async_trait]
impl Schedules for MemoryStore {
    async fn declare(&self, by: Option<WorkerId>, declarations: &[Declaration]) -> Result<()> {
        let declare = |tables: &mut Tables, at: super::Moment| {
            for declaration in declarations {
                tables.declare(at.now, by, declaration);
            }
        };
        self.call(declare).await;
        Ok(())
    }

    async fn undeclare(&self, name: &ScheduleName) -> Result<bool> {
        let undeclare = |tables: &mut Tables, _| {
            let schedule = tables.schedules.get_mut(name);
            schedule.is_some_and(|schedule| schedule.declared.remove(&None).is_some())
        };
        Ok(self.call(undeclare).await)
    }

    async fn schedules(&self) -> Result<ScheduleView> {
        Ok(self.call(|tables, at| tables.schedule_view(at.now)).await)
    }

    async fn advance(&self, step: &Step) -> Result<Advanced> {
        let wakes = |advanced: &Advanced| match advanced {
            Advanced::Moved(jobs) => !jobs.is_empty(),
            Advanced::Outrun => false,
        };
        Ok(self.waking_if(|tables, at| tables.advance(at.now, step), wakes).await)
    }

    async fn ticks(&self, name: &ScheduleName) -> Result<Vec<Tick>> {
        let ticks = |tables: &mut Tables, _| {
            let schedule = tables.schedules.get(name);
            schedule.map_or_else(Vec::new, |found| found.ticks.iter().rev().copied().collect())
        };
        Ok(self.call(ticks).await)
    }
}

impl Tables {
    fn declare(&mut self, now: Timestamp, by: Option<WorkerId>, declaration: &Declaration) {
        let Declaration { name, text } = declaration;
        let schedule = self.schedules.entry(name.clone()).or_default();
        let of_text = schedule.declared.values().filter(|(_, declared)| declared == text);
        let since = of_text.map(|(since, _)| *since).min().unwrap_or(now);
        schedule.declared.insert(by, (since, text.clone()));
    }

    fn schedule_view(&self, now: Timestamp) -> ScheduleView {
        let declared = |(by, (since, text)): (&Option<WorkerId>, &(Timestamp, String))| {
            let is_live = by.is_none_or(|worker| self.is_open(worker));
            is_live.then(|| Declared { by: *by, since: *since, text: text.clone() })
        };
        let record = |(name, schedule): (&ScheduleName, &Schedule)| ScheduleRecord {
            name: name.clone(),
            text: schedule.text.clone(),
            next_at: schedule.next_at,
            last_at: schedule.last_at,
            declared: schedule.declared.iter().filter_map(declared).collect(),
        };
        ScheduleView { now, schedules: self.schedules.iter().map(record).collect() }
    }

    fn advance(&mut self, now: Timestamp, step: &Step) -> Advanced {
        let Some(schedule) = self.schedules.get_mut(&step.name) else {
            return Advanced::Outrun;
        };
        if (&schedule.text, schedule.next_at) != (&step.seen_text, step.seen_next_at) {
            return Advanced::Outrun;
        }
        schedule.text.clone_from(&step.text);
        schedule.next_at = step.next_at;
        let mut last_at = schedule.last_at;
        let mut ticks = Vec::new();
        let mut answers = Vec::new();
        for (at, job) in &step.ticks {
            let is_new = last_at.is_none_or(|last| *at > last);
            let answer = is_new.then(|| self.enqueue(now, std::slice::from_ref(job))[0]);
            if let Some(enqueued) = answer {
                ticks.push(Tick { at: *at, job: enqueued.id() });
                last_at = Some(*at);
            }
            answers.push(answer);
        }
        if let Some(schedule) = self.schedules.get_mut(&step.name) {
            schedule.last_at = last_at;
            schedule.ticks.extend(ticks);
            let most = size(MAX_TICKS);
            schedule.ticks.drain(..schedule.ticks.len().saturating_sub(most));
        }
        Advanced::Moved(answers)
    }
}
