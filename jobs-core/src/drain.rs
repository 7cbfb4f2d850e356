//! The drain as a value: from the request to stop until the worker has left.
//!
//! 1. Phases only move forward, and each has a bound; their sum fits the grace period.
//! 2. `Done` by itself needs both: nothing is held, and the claim loop has said that it closed.
//! 3. There is no clock and no future inside: [`Drain::step`] is called with what happened and when,
//!    and answers what to do.
//!
//! Correctness never rests on it: a worker that is killed at any instant loses nothing.

use std::time::Duration;

use crate::store::Phase;

/// When each phase ends, counted from the request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Until here handlers may finish.
    pub quiet: Duration,
    /// Until here handlers that were asked to return may do so.
    pub interrupting: Duration,
    /// Until here what was aborted is given back.
    pub releasing: Duration,
    /// Here the process is gone: before the supervisor kills it.
    pub exit: Duration,
}

impl Split {
    /// Splits a grace period: of 30 s, to 24 s, 27.5 s, 29 s and 29.5 s, and longer ones in proportion.
    ///
    /// Of shorter ones each step behind the quiet one keeps at least half a second, or a tenth of a
    /// grace period below 5 s: writing to a disk and ending a process take as long on a busy machine
    /// whatever the grace period is.
    pub fn of(grace: Duration) -> Self {
        let least = LEAST_STEP.min(grace / 10);
        let step = |of_300: u32| (grace * of_300 / 300).max(least);
        let exit = grace.saturating_sub(step(5));
        let releasing = exit.saturating_sub(step(5));
        let interrupting = releasing.saturating_sub(step(15));
        Self { quiet: interrupting.saturating_sub(step(35)), interrupting, releasing, exit }
    }

    /// The shortest grace period whose split lets handlers finish for so long.
    pub fn grace_for(quiet: Duration) -> Duration {
        // Below 5 s each step is a share. Above, each is its share or the least step, whichever is
        // longer, so that the longest of these is long enough for all.
        let held_by = |span: Duration, of_300: f64| {
            let grace = Duration::try_from_secs_f64(span.as_secs_f64() * 300.0 / of_300);
            grace.unwrap_or(Duration::MAX)
        };
        let short = held_by(quiet, 175.0);
        if short < LEAST_STEP * 10 {
            return short;
        }
        let with_steps = |steps: u32| quiet.saturating_add(LEAST_STEP * steps);
        held_by(with_steps(3), 265.0).max(held_by(with_steps(2), 250.0)).max(held_by(quiet, 240.0))
    }
}

/// What a step of a drain takes at least, where the grace period is not short for all of them.
const LEAST_STEP: Duration = Duration::from_millis(500);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Someone asks the worker to stop; a second time moves on one phase.
    Stop,
    /// The claim loop has ended, and nothing it claimed is unaccounted for.
    IntakeClosed,
    /// This many runs are held: running, or ended and not settled.
    Held(usize),
    /// Time has passed.
    Tick,
}

/// What to do, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Tell the store and the log of a phase.
    Enter(Phase),
    /// Claim nothing more.
    CloseIntake,
    /// Ask every handler to return.
    AskHandlers,
    /// Abort every handler.
    AbortHandlers,
    /// Close the worker in the store, which gives back what it still holds.
    CloseWorker,
    /// Leave at once.
    Exit,
    /// Come back with a tick at this time at the latest.
    WakeAt(Duration),
}

/// The state of a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    phase: Phase,
    split: Split,
    stopped_at: Duration,
    held: usize,
    is_intake_closed: bool,
}

impl Drain {
    /// A worker that works.
    pub const fn new(split: Split) -> Self {
        Self {
            phase: Phase::Working,
            split,
            stopped_at: Duration::ZERO,
            held: 0,
            is_intake_closed: false,
        }
    }

    /// The phase it is in.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Takes in what happened at `now` and answers what to do.
    pub fn step(&mut self, now: Duration, event: Event) -> Vec<Action> {
        match event {
            Event::Stop if self.phase == Phase::Working => {
                self.stopped_at = now;
                return self.enter(Phase::Quiet);
            }
            Event::Stop => return self.next(),
            Event::IntakeClosed => self.is_intake_closed = true,
            Event::Held(held) => self.held = held,
            Event::Tick => {}
        }
        if self.phase == Phase::Working {
            return Vec::new();
        }
        if self.phase != Phase::Done && self.is_intake_closed && self.held == 0 {
            return self.enter(Phase::Done);
        }
        if now >= self.phase_ends_at() { self.next() } else { Vec::new() }
    }

    /// Moves on one phase.
    fn next(&mut self) -> Vec<Action> {
        match self.phase {
            Phase::Working => self.enter(Phase::Quiet),
            Phase::Quiet => self.enter(Phase::Interrupting),
            Phase::Interrupting => self.enter(Phase::Releasing),
            Phase::Releasing => self.enter(Phase::Done),
            Phase::Done => vec![Action::Exit],
        }
    }

    fn enter(&mut self, phase: Phase) -> Vec<Action> {
        self.phase = phase;
        let act = match phase {
            Phase::Working => None,
            Phase::Quiet => Some(Action::CloseIntake),
            Phase::Interrupting => Some(Action::AskHandlers),
            Phase::Releasing => Some(Action::AbortHandlers),
            Phase::Done => Some(Action::CloseWorker),
        };
        let mut actions = vec![Action::Enter(phase)];
        actions.extend(act);
        actions.push(Action::WakeAt(self.phase_ends_at()));
        actions
    }

    fn phase_ends_at(&self) -> Duration {
        let span = match self.phase {
            Phase::Working => Duration::ZERO,
            Phase::Quiet => self.split.quiet,
            Phase::Interrupting => self.split.interrupting,
            Phase::Releasing => self.split.releasing,
            Phase::Done => self.split.exit,
        };
        self.stopped_at + span
    }
}

#[cfg(test)]
mod tests;
