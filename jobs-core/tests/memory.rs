//! The memory store under the suite of all stores.
#![cfg(feature = "conformance")]

use futures_executor::block_on;
use jobs_core::store::conformance::{Check, MemorySubject};

fn run(check: Check) {
    block_on(check(&MemorySubject::new(1)));
}

jobs_core::conformance_tests!(run);
