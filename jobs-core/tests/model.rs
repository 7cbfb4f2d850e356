//! The model test, tried on the model itself: it agrees with itself, and a store with a planted
//! fault is told apart.
#![cfg(feature = "conformance")]

use futures_executor::block_on;
use jobs_core::store::conformance::{MemorySubject, model};

#[test]
fn the_memory_store_is_a_model_of_itself() {
    for seed in model::seeds(200) {
        block_on(model::compare(seed, 200, &MemorySubject::new(seed), &MemorySubject::new(!seed)));
    }
}
