//! Schedules as people see and change them: declared and taken back by hand, paused and resumed.
//!
//! What a person declares is read before it is written, so of two people who change one schedule in
//! the same instant the later one counts.

use jobs_core::store::{Declaration, Declared, ScheduleRecord, Tick};
use jobs_core::{CatchUp, Schedule, ScheduleName, Timestamp, WorkerId};

use super::decide::counting;
use super::{Pause, Spec, declaration};
use crate::client::Jobs;
use crate::error::{Error, ErrorKind};

/// A schedule as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleStatus {
    /// Its name.
    pub name: ScheduleName,
    /// When it ticks, as it was declared; `None` where nobody declares it or this build can't read it.
    pub when: Option<String>,
    /// What is done about missed ticks.
    pub catch_up: Option<CatchUp>,
    /// What each tick enqueues.
    pub job: Option<ScheduledJob>,
    /// When it ticks next; `None` while it doesn't, and before a worker has seen the declaration.
    pub next_at: Option<Timestamp>,
    /// Its latest tick.
    pub last_at: Option<Timestamp>,
    /// Who paused it; it ticks no more until it is resumed.
    pub paused: Option<SchedulePause>,
    /// Who declares it: a person first, then the live workers that do.
    pub declared: Vec<DeclaredBy>,
    /// Why this build can't read what counts.
    pub problem: Option<String>,
}

/// The job of each tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledJob {
    /// Its queue.
    pub queue: String,
    /// Its kind.
    pub kind: String,
    /// The version of its payload.
    pub version: String,
    /// The payload.
    pub payload: String,
}

/// Who paused a schedule, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulePause {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, by the clock of the client that did.
    pub at: Timestamp,
}

/// A declaration of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredBy {
    /// The worker that declares; `None` for a person.
    pub worker: Option<WorkerId>,
    /// When the text was first declared.
    pub since: Timestamp,
    /// When it would tick by this declaration; `None` where this build can't read it.
    pub when: Option<String>,
    /// Whether this is the declaration that counts, or will when the pause ends.
    pub counts: bool,
}

impl Jobs {
    /// Declares a schedule in the store: it goes before what builds declare under its name, and ticks
    /// while any worker lives, until it is taken back. One that is paused stays paused.
    ///
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) that names the schedule when it never ticks or its
    /// job can't be stored; a [`Store`](ErrorKind::Store) error.
    pub async fn declare(&self, schedule: &Schedule) -> Result<(), Error> {
        if let Ok(job) = schedule.job() {
            job.check_text(self.max_payload_bytes())?;
        }
        let declaration = declaration(schedule, self.build());
        let declaration = declaration.map_err(|why| Error::new(ErrorKind::Configuration, why))?;
        match self.pause_of(&declaration.name).await? {
            Some(pause) => {
                let pause = Pause { instead: Some(declaration.text), ..pause };
                self.declare_text(declaration.name, pause.text()).await
            }
            None => self.declare_text(declaration.name, declaration.text).await,
        }
    }

    /// Takes a schedule back that was [declared](Self::declare) in the store; answers whether there was
    /// one. What builds declare under its name counts again. A pause stays.
    ///
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) for what is no name; a [`Store`](ErrorKind::Store)
    /// error.
    pub async fn undeclare(&self, name: &str) -> Result<bool, Error> {
        let name = ScheduleName::new(name)?;
        match self.pause_of(&name).await? {
            Some(Pause { instead: None, .. }) => Ok(false),
            Some(pause) => {
                self.declare_text(name, Pause { instead: None, ..pause }.text()).await?;
                Ok(true)
            }
            None => Ok(self.store().undeclare(&name).await?),
        }
    }

    /// Stops the ticks of a schedule, whoever declares it and through every rollout, until it is
    /// resumed; answers whether there is such a schedule. Pausing again keeps the first reason.
    ///
    /// Ticks of before that no worker has seen yet are left out too. A job that a tick has enqueued
    /// already stays.
    ///
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) for what is no name; a [`Store`](ErrorKind::Store)
    /// error.
    pub async fn pause_schedule(&self, name: &str, by: &str, reason: &str) -> Result<bool, Error> {
        let name = ScheduleName::new(name)?;
        let Some(record) = self.record_of(&name).await? else { return Ok(false) };
        let by_hand = record.declared.iter().find(|declared| declared.by.is_none());
        if by_hand.is_some_and(|declared| Pause::read(&declared.text).is_some()) {
            return Ok(true);
        }
        let pause = Pause {
            by: by.to_owned(),
            reason: reason.to_owned(),
            at_us: self.clock().now().as_micros(),
            instead: by_hand.map(|declared| declared.text.clone()),
        };
        self.declare_text(name, pause.text()).await?;
        Ok(true)
    }

    /// Lets a paused schedule tick again, first at its next instant from now on: ticks of the pause are
    /// not made up for. Answers whether it was paused.
    ///
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) for what is no name; a [`Store`](ErrorKind::Store)
    /// error.
    pub async fn resume_schedule(&self, name: &str) -> Result<bool, Error> {
        let name = ScheduleName::new(name)?;
        match self.pause_of(&name).await? {
            None => return Ok(false),
            Some(Pause { instead: Some(text), .. }) => self.declare_text(name, text).await?,
            Some(Pause { instead: None, .. }) => drop(self.store().undeclare(&name).await?),
        }
        Ok(true)
    }

    /// The schedules that somebody declares or that have a tick to come, in order of name.
    ///
    /// # Errors
    /// A [`Store`](ErrorKind::Store) error.
    pub async fn schedules(&self) -> Result<Vec<ScheduleStatus>, Error> {
        let known = self.store().schedules().await?.schedules;
        let is_shown =
            |record: &&ScheduleRecord| !record.declared.is_empty() || record.next_at.is_some();
        Ok(known.iter().filter(is_shown).map(ScheduleStatus::of).collect())
    }

    /// The latest ticks of a schedule, newest first, and the jobs that they enqueued.
    ///
    /// # Errors
    /// [`Configuration`](ErrorKind::Configuration) for what is no name; a [`Store`](ErrorKind::Store)
    /// error.
    pub async fn ticks(&self, schedule: &str) -> Result<Vec<Tick>, Error> {
        Ok(self.store().ticks(&ScheduleName::new(schedule)?).await?)
    }

    async fn declare_text(&self, name: ScheduleName, text: String) -> Result<(), Error> {
        Ok(self.store().declare(None, &[Declaration { name, text }]).await?)
    }

    async fn record_of(&self, name: &ScheduleName) -> Result<Option<ScheduleRecord>, Error> {
        let known = self.store().schedules().await?.schedules;
        Ok(known.into_iter().find(|record| record.name == *name))
    }

    async fn pause_of(&self, name: &ScheduleName) -> Result<Option<Pause>, Error> {
        let record = self.record_of(name).await?;
        let declared = record.iter().flat_map(|record| &record.declared);
        let by_hand = declared.into_iter().find(|declared| declared.by.is_none());
        Ok(by_hand.and_then(|declared| Pause::read(&declared.text)))
    }
}

impl ScheduleStatus {
    fn of(record: &ScheduleRecord) -> Self {
        let mut paused = None;
        let behind = |declared: &Declared| match Pause::read(&declared.text) {
            None => Some(declared.clone()),
            Some(pause) => {
                let Pause { by, reason, at_us, instead } = pause;
                paused = Some(SchedulePause { by, reason, at: Timestamp::from_micros(at_us) });
                instead.map(|text| Declared { text, ..declared.clone() })
            }
        };
        let declared: Vec<Declared> = record.declared.iter().filter_map(behind).collect();
        let counting = counting(&declared);
        let (spec, problem) = match counting.map(|declared| Spec::read(&declared.text)) {
            None => (None, None),
            Some(Ok((spec, _))) => (Some(spec), None),
            Some(Err(why)) => (None, Some(why)),
        };
        let by = |one: &Declared| DeclaredBy {
            worker: one.by,
            since: one.since,
            when: Spec::read(&one.text).ok().map(|(spec, _)| spec.when),
            counts: counting.is_some_and(|counting| counting.by == one.by),
        };
        Self {
            name: record.name.clone(),
            when: spec.as_ref().map(|spec| spec.when.clone()),
            catch_up: spec.as_ref().map(|spec| spec.catch_up),
            declared: declared.iter().map(by).collect(),
            job: spec.map(|spec| spec.job.into()),
            // A worker that has not seen the pause yet leaves it standing.
            next_at: record.next_at.filter(|_| paused.is_none()),
            last_at: record.last_at,
            paused,
            problem,
        }
    }
}

impl From<super::spec::Job> for ScheduledJob {
    fn from(job: super::spec::Job) -> Self {
        let super::spec::Job { queue, kind, version, payload, .. } = job;
        Self { queue, kind, version, payload }
    }
}
