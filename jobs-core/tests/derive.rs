//! The derives inside the package whose types they name: here it is known by its own name alone.
#![cfg(feature = "derive")]

use jobs_core::{Checkpoint, Job, Payload, Versioned};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct ExportAt;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "reports.export", version = "1.2.0", checkpoint = ExportAt)]
struct ExportRows;

#[test]
fn the_derives_work_in_the_tests_of_their_own_core() {
    assert_eq!(ExportRows::KIND, "reports.export");
    assert_eq!(ExportRows::lines().len(), 1);
    assert_eq!(ExportAt::VERSION.major, 1);
}
