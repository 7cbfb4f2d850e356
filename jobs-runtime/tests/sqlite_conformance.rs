//! The SQLite store under the suite of all stores.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use jobs_core::store::conformance::Check;
use sqlite_scene::{Scene, runtime};

fn run(check: Check) {
    runtime().block_on(async { check(&Scene::fresh().await).await });
}

jobs_core::conformance_tests!(run);
