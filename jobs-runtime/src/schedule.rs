//! What is enqueued by the clock: how declarations become the text that a store keeps, and when and
//! what it then enqueues.
//!
//! The rules are pure: [`Timetable`] says when an expression ticks, [`decide`] what follows from what
//! the store says now. `worker/schedule.rs` does it.

mod decide;
mod operate;
mod spec;
mod timetable;

pub(crate) use self::decide::{Decision, decide};
pub use self::operate::{DeclaredBy, SchedulePause, ScheduleStatus, ScheduledJob};
pub(crate) use self::spec::{Pause, Spec, declaration};
use self::timetable::Timetable;

/// The first tick of an expression after an instant; `None` for what never ticks.
#[cfg(feature = "cli")]
pub(crate) fn next_tick(when: &str, now: jobs_core::Timestamp) -> Option<jobs_core::Timestamp> {
    Timetable::parse(when).ok()?.after(now)
}
