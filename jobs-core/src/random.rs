//! Chance, passed in. Nothing in this crate reads the operating system's entropy.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A source of drawn numbers.
pub trait Random: Send + Sync + fmt::Debug + 'static {
    /// A number, each one equally likely.
    fn draw(&self) -> u64;
}

/// Reproducible numbers from a seed (`SplitMix64`, Steele, Lea and Flood 2014).
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The sequence of a seed; equal seeds give equal sequences.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for SeededRandom {
    fn draw(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// A number below `bound`; 0 when the bound is 0.
pub fn below(draw: u64, bound: u64) -> u64 {
    u64::try_from((u128::from(draw) * u128::from(bound)) >> 64).unwrap_or(0)
}

/// A span moved by up to a tenth either way, so that what was delayed together comes back apart.
pub fn jittered(span: Duration, draw: u64) -> Duration {
    let whole = u64::try_from(span.as_micros()).unwrap_or(u64::MAX / 2);
    let tenth = whole / 10;
    Duration::from_micros((whole - tenth).saturating_add(below(draw, tenth.saturating_mul(2) + 1)))
}
