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
        let share = |parts: u32| grace * parts / WHOLE;
        let least = LEAST_STEP.min(share(LEAST_SHARE));
        let [asked, aborted, closed, gone] = STEPS.map(|parts| share(parts).max(least));
        let exit = grace.saturating_sub(gone);
        let releasing = exit.saturating_sub(closed);
        let interrupting = releasing.saturating_sub(aborted);
        Self { quiet: interrupting.saturating_sub(asked), interrupting, releasing, exit }
    }

    /// The shortest grace period whose split lets handlers finish for so long.
    pub fn grace_for(quiet: Duration) -> Duration {
        // The grace period of which this much is left beside steps of so many parts.
        let leaving = |left: Duration, steps: u32| {
            let grace = left.as_secs_f64() * f64::from(WHOLE) / f64::from(WHOLE - steps);
            Duration::try_from_secs_f64(grace).unwrap_or(Duration::MAX)
        };
        let short = leaving(quiet, STEPS.map(|parts| parts.max(LEAST_SHARE)).iter().sum());
        if short < LEAST_STEP * (WHOLE / LEAST_SHARE) {
            return short;
        }
        // Each step is its share or the least one, whichever is longer; so a guess of how many are their
        // shares makes the steps too short where it is wrong, and the longest of these is the right one.
        let guesses = (0..=STEPS.len()).map(|shares| {
            let (shares, least) = STEPS.split_at(shares);
            let least = least.iter().map(|_| LEAST_STEP).sum();
            leaving(quiet.saturating_add(least), shares.iter().sum())
        });
        guesses.fold(Duration::ZERO, Duration::max)
    }
}

/// The steps behind the quiet one, the longest first, as parts of a grace period: in which handlers that
/// are asked return, what is aborted is given back, the worker is closed, and the process ends.
const STEPS: [u32; 4] = [35, 15, 5, 5];
/// So many parts are a grace period.
const WHOLE: u32 = 300;
/// What a step takes at least, where the grace period is not short for all of them.
const LEAST_STEP: Duration = Duration::from_millis(500);
/// What a step takes at least of a short one.
const LEAST_SHARE: u32 = WHOLE / 10;

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
