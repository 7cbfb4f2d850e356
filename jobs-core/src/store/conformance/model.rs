//! The model test: the same random life on a store and on the memory store, all answers compared.
//!
//! 1. A seed decides all that happens: enqueues, claims, settlements, checkpoints, transactions and
//!    rollbacks, lost answers, deaths of workers, crashes in a row, sweeps between any two steps, duties,
//!    cancels, redrives, pauses, refusals, schedules with one leader or two, and the passing of time.
//! 2. Each answer is compared when it is given, and the whole state at the end.
//!
//! Deliberately absent: instants, which each store takes from its own clock; the order that follows
//! from them is compared. Concurrency is absent too, since the model has none; the checks beside
//! this test have it.
//!
//! Why time moves in steps of 5 s: a store that judges by a clock of its own is ahead of the model,
//! by as long as the calls since the last step took. Every wait and lease here ends at least 1.8 s
//! after a step and before the next one, so both decide alike while those calls take less than that.

mod acts;
mod draws;
mod driver;
mod schedules;
mod side;
mod snapshot;
mod step;

use self::driver::Driver;
use super::{MemorySubject, Subject};

/// Does `steps` random things to a fresh subject and to a fresh memory store.
///
/// # Panics
/// Where the two differ, with the step, both answers, and how to see it again.
pub async fn compare(seed: u64, steps: usize, subject: &dyn Subject, model: &MemorySubject) {
    let mut driver = Driver::new(seed, subject, model);
    driver.begin().await;
    for _ in 0..steps {
        driver.act().await;
    }
    driver.end().await;
}

/// The seeds that a test runs with: `JOBS_SEED` alone where it is set, else as many as `JOBS_SEEDS`
/// says, else `count`.
///
/// # Panics
/// When one of the two is set and is not a number.
pub fn seeds(count: u64) -> Box<dyn Iterator<Item = u64>> {
    match number("JOBS_SEED") {
        Some(seed) => Box::new(std::iter::once(seed)),
        None => Box::new(1..=number("JOBS_SEEDS").unwrap_or(count)),
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}
