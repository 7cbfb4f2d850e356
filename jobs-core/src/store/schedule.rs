//! Schedules as a store keeps them: who declares what, and when each ticks next.

use std::fmt;

use async_trait::async_trait;

use super::{Enqueued, Result};
use crate::clock::Timestamp;
use crate::envelope::NewJob;
use crate::id::{JobId, WorkerId};
use crate::name::ScheduleName;

/// How many ticks a store remembers of one schedule; the oldest give way.
pub const MAX_TICKS: u32 = 100;

/// What a store promises of schedules.
///
/// 1. **One run a tick, ever.** A tick is written in the transaction that enqueues its job, and no
///    schedule has a tick at or before its latest one. So it doesn't matter how many workers believe
///    that they lead, or how well their clocks agree.
/// 2. **Nothing is lost in a rollout.** Every live worker's declarations stand side by side; which of
///    them counts is decided by whoever leads, the same for all.
/// 3. **No decoding.** What is declared is a text that the store doesn't read.
#[async_trait]
pub trait Schedules: Send + Sync + fmt::Debug {
    /// Writes what a worker, or a person with `None`, declares; each in the place of what the same one
    /// declared under the name before.
    ///
    /// A text keeps the age of its first declaration, whoever repeats it: a worker of an older build
    /// that starts again does not make its text the newest.
    async fn declare(&self, by: Option<WorkerId>, declarations: &[Declaration]) -> Result<()>;

    /// Takes back what a person declared; answers whether there was anything.
    async fn undeclare(&self, name: &ScheduleName) -> Result<bool>;

    /// All schedules in order of name, and the instant that the store takes for now.
    async fn schedules(&self) -> Result<ScheduleView>;

    /// Moves a schedule on where it still is as the caller saw it, and enqueues the jobs of its ticks,
    /// in one transaction. Of equal steps one is taken.
    ///
    /// Ticks at or before the latest one are left out, with their jobs.
    async fn advance(&self, step: &Step) -> Result<Advanced>;

    /// The latest ticks of a schedule, newest first, at most [`MAX_TICKS`].
    async fn ticks(&self, name: &ScheduleName) -> Result<Vec<Tick>>;
}

/// A schedule as someone declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// Its name: declarations of one name are of one schedule.
    pub name: ScheduleName,
    /// When it ticks and what it enqueues, as text.
    pub text: String,
}

/// Who declares a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The worker; `None` for a person.
    pub by: Option<WorkerId>,
    /// When the text was first declared.
    pub since: Timestamp,
    /// The text.
    pub text: String,
}

/// A schedule as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRecord {
    /// Its name.
    pub name: ScheduleName,
    /// The text that counts; `None` before anyone has led.
    pub text: Option<String>,
    /// When it ticks next; `None` while it doesn't.
    pub next_at: Option<Timestamp>,
    /// Its latest tick.
    pub last_at: Option<Timestamp>,
    /// The declarations of open workers and of people, in order of worker, people first.
    pub declared: Vec<Declared>,
}

/// All schedules at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleView {
    /// Now, by the clock that the store judges due times by.
    pub now: Timestamp,
    /// The schedules, in order of name.
    pub schedules: Vec<ScheduleRecord>,
}

/// A move of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The schedule.
    pub name: ScheduleName,
    /// The text that counted when the caller looked.
    pub seen_text: Option<String>,
    /// When it was to tick next when the caller looked.
    pub seen_next_at: Option<Timestamp>,
    /// The text that counts from now on.
    pub text: Option<String>,
    /// When it ticks next.
    pub next_at: Option<Timestamp>,
    /// The ticks that have come, oldest first, each with its job.
    pub ticks: Vec<(Timestamp, NewJob)>,
}

/// The answer to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advanced {
    /// It was taken; what became of each tick's job, `None` where the tick had come before.
    Moved(Vec<Option<Enqueued>>),
    /// Someone else moved the schedule first. Nothing was written.
    Outrun,
}

/// A tick that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tick {
    /// When it was to come.
    pub at: Timestamp,
    /// The job that it enqueued, or that stood for it.
    pub job: JobId,
}
