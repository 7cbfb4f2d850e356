//! Schedules in the model test: who declares what, and steps of leaders that see it or have seen it.
//!
//! Ticks are instants of the test's own, long past, so that both stores keep the same (one that time
//! moves on in by moving what is stored back, so much earlier) and what they enqueue is due at once.

use super::super::super::{Advanced, Declaration, Declared, ScheduleRecord, Step as Move, Tick};
use super::driver::Driver;
use super::side::{NEVER, Side};
use super::step::{Answer, Step};
use crate::clock::Timestamp;
use crate::envelope::{NewJob, OnConflict};
use crate::id::WorkerId;
use crate::name::ScheduleName;
use crate::transition::Due;

const NAMES: [&str; 2] = ["hourly", "nightly"];
const TEXTS: [&str; 3] = ["one", "two", "three"];
const FIRST_US: i64 = 1_600_000_000_000_000;

/// What is done about schedules.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Declare(Option<WorkerId>, Declaration),
    Undeclare(ScheduleName),
    Look,
    Move(Move),
    Ticks(ScheduleName),
}

impl Driver<'_> {
    pub(super) async fn schedule(&mut self) {
        let name = name(self.pick(&NAMES).unwrap_or_default());
        match self.below(10) {
            0..3 => {
                let live: Vec<_> = self.live.iter().map(|worker| worker.id).collect();
                let known = if self.one_in(8) { self.gone.clone() } else { live };
                let by = self.pick(&known).filter(|_| !self.one_in(3));
                let text = self.pick(&TEXTS).unwrap_or_default().to_owned();
                let declaration = Declaration { name, text };
                self.both(Step::Schedules(Act::Declare(by, declaration))).await;
            }
            3 => drop(self.both(Step::Schedules(Act::Undeclare(name))).await),
            4 => drop(self.both(Step::Schedules(Act::Ticks(name))).await),
            5.. => self.lead().await,
        }
    }

    /// A leader looks, and moves a schedule on as it sees it; one that saw it earlier is outrun,
    /// unless nothing has changed since.
    async fn lead(&mut self) {
        let late = self.pick(&self.seen).filter(|_| self.one_in(4));
        let looked = self.both(Step::Schedules(Act::Look)).await;
        let Answer::Schedules(records) = looked else { return };
        self.seen.clone_from(&records);
        let Some(record) = late.or_else(|| self.pick(&records)) else { return };
        let stops = self.one_in(6);
        let declared = record.declared.last().map(|declared| declared.text.clone());
        let ticks = if stops { Vec::new() } else { self.ticks_behind(&record) };
        let next_at = ticks.last().map_or(at(0), |(last, _)| *last);
        let step = Move {
            name: record.name,
            seen_text: record.text,
            seen_next_at: record.next_at,
            text: declared.filter(|_| !stops),
            next_at: Some(next_at).filter(|_| !stops),
            ticks,
        };
        self.both(Step::Schedules(Act::Move(step.clone()))).await;
        if self.one_in(4) {
            // The answer was lost, or two lead.
            self.both(Step::Schedules(Act::Move(step))).await;
        }
    }

    /// A few ticks in order, some of them at or before the latest one.
    fn ticks_behind(&self, record: &ScheduleRecord) -> Vec<(Timestamp, NewJob)> {
        let latest = record.last_at.map_or(0, |last| (last.as_micros() - FIRST_US) / 1_000_000);
        let mut number = (latest - 1).max(0);
        let mut ticks = Vec::new();
        for _ in 0..self.below(4) {
            number += i64::from(self.one_in(2)) + 1;
            let job = NewJob {
                due: Due::At(at(number)),
                on_conflict: OnConflict::default(),
                expires_in: None,
                ..self.new_job()
            };
            ticks.push((at(number), job));
        }
        ticks
    }
}

impl Side<'_> {
    pub(super) async fn schedule(&mut self, act: &Act) -> Answer {
        let store = self.subject.store();
        match act {
            Act::Declare(by, declaration) => {
                let by = by.map(|worker| self.own_worker(worker));
                store.declare(by, std::slice::from_ref(declaration)).await.unwrap();
                Answer::Nothing
            }
            Act::Undeclare(name) => Answer::Undeclared(store.undeclare(name).await.unwrap()),
            Act::Look => Answer::Schedules(self.schedules().await),
            Act::Move(step) => match store.advance(&self.own_move(step)).await.unwrap() {
                Advanced::Outrun => Answer::Advanced(Advanced::Outrun),
                Advanced::Moved(jobs) => {
                    let numbered = |job: Option<_>| job.map(|job| self.numbered(job));
                    let moved = jobs.into_iter().map(numbered).collect();
                    Answer::Advanced(Advanced::Moved(moved))
                }
            },
            Act::Ticks(name) => Answer::Ticks(self.ticks(name).await),
        }
    }

    fn own_move(&self, step: &Move) -> Move {
        let own = |at: Timestamp| self.own_instant(at);
        let tick = |(at, job): &(Timestamp, NewJob)| {
            (own(*at), NewJob { due: Due::At(own(*at)), ..job.clone() })
        };
        Move {
            seen_next_at: step.seen_next_at.map(own),
            next_at: step.next_at.map(own),
            ticks: step.ticks.iter().map(tick).collect(),
            ..step.clone()
        }
    }

    /// All schedules, with the ages of their declarations as ranks.
    pub(super) async fn schedules(&self) -> Vec<ScheduleRecord> {
        let view = self.subject.store().schedules().await.unwrap();
        let shared = |record: ScheduleRecord| {
            let mut ages: Vec<_> = record.declared.iter().map(|one| one.since).collect();
            ages.sort_unstable();
            ages.dedup();
            let rank = |since| ages.iter().position(|age| *age == since).unwrap_or_default();
            let declared = record.declared.iter().map(|one| Declared {
                by: one.by.map(|worker| self.shared_worker(worker)),
                since: NEVER.after(std::time::Duration::from_secs(rank(one.since) as u64)),
                text: one.text.clone(),
            });
            let (next_at, last_at) = (record.next_at, record.last_at);
            ScheduleRecord {
                declared: declared.collect(),
                next_at: next_at.map(|at| self.shared_instant(at)),
                last_at: last_at.map(|at| self.shared_instant(at)),
                ..record
            }
        };
        view.schedules.into_iter().map(shared).collect()
    }

    pub(super) async fn ticks(&self, name: &ScheduleName) -> Vec<Tick> {
        let ticks = self.subject.store().ticks(name).await.unwrap();
        let shared =
            |tick: Tick| Tick { at: self.shared_instant(tick.at), job: self.shared_job(tick.job) };
        ticks.into_iter().map(shared).collect()
    }
}

fn at(number: i64) -> Timestamp {
    Timestamp::from_micros(FIRST_US + number * 1_000_000)
}

fn name(text: &str) -> ScheduleName {
    ScheduleName::new(text).expect("a name of the test's own")
}
