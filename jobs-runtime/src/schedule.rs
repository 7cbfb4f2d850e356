//! What is enqueued by the clock: how declarations become the text that a store keeps, and when and
//! what it then enqueues.
//!
//! The rules are pure: [`Timetable`] says when an expression ticks, [`decide`] what follows from what
//! the store says now. `worker/schedule.rs` does it.

mod decide;
mod spec;
mod timetable;

pub(crate) use self::decide::{Decision, decide};
pub(crate) use self::spec::{Spec, declaration};
use self::timetable::Timetable;
