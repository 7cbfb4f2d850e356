//! The PostgreSQL store lives as the memory store does: random lives, all answers compared.
#![cfg(feature = "postgres")]

mod postgres_support;

use jobs_core::store::conformance::{MemorySubject, model};

use postgres_support::with_store;

const STEPS: usize = 200;

#[test]
fn random_lives_are_those_of_the_memory_store() {
    for seed in model::seeds(8) {
        with_store(async |subject| {
            model::compare(seed, STEPS, &subject, &MemorySubject::new(!seed)).await;
        });
    }
}
