//! The PostgreSQL store keeps the contract: the suite that every store passes.
#![cfg(feature = "postgres")]

mod postgres_support;

use jobs_core::store::conformance::Check;

use postgres_support::with_store;

fn run(check: Check) {
    with_store(async |subject| check(&subject).await);
}

jobs_core::conformance_tests!(run);
