//! The PostgreSQL store lives as the memory store does: random lives, all answers compared.
#![cfg(feature = "postgres")]

mod postgres_support;

use jobs_core::store::conformance::{MemorySubject, model};

use postgres_support::with_store;

/// Short lives, so that the calls of one take well under the second by which its waits end apart from a
/// step of time.
const STEPS: usize = 80;

#[test]
fn random_lives_are_those_of_the_memory_store() {
    for seed in model::seeds(20) {
        with_store(async |subject| {
            model::compare(seed, STEPS, &subject, &MemorySubject::new(!seed)).await;
        });
    }
}
