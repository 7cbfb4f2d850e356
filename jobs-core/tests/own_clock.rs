//! The suite on a store with a clock of its own, which the suite can't move on: no check may rest on
//! a clock that stands still between two calls.
#![cfg(feature = "conformance")]

use futures_executor::block_on;
use jobs_core::store::conformance::{Check, MemorySubject, model};

fn run(check: Check) {
    block_on(check(&MemorySubject::with_own_clock(1)));
}

jobs_core::conformance_tests!(run);

#[test]
fn the_model_is_compared_with_it() {
    for seed in model::seeds(50) {
        let subject = MemorySubject::with_own_clock(seed);
        block_on(model::compare(seed, 200, &subject, &MemorySubject::new(!seed)));
    }
}
