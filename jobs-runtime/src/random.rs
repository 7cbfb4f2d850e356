//! The operating system's entropy. The only module that reads it.

use jobs_core::{Random, SeededRandom};

/// Numbers from a generator that the operating system's entropy seeded.
#[derive(Debug)]
pub struct OsRandom(SeededRandom);

impl OsRandom {
    /// A generator of its own, seeded now.
    ///
    /// # Panics
    /// When the operating system gives no entropy, without which identities could clash.
    pub fn new() -> Self {
        let seed = getrandom::u64().expect("the operating system gives entropy");
        Self(SeededRandom::new(seed))
    }
}

impl Default for OsRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for OsRandom {
    fn draw(&self) -> u64 {
        self.0.draw()
    }
}
