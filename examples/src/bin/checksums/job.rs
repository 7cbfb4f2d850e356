//! The job: one file's digest, written in the transaction of its own success.

use std::io;

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use crate::files::{StoredPath, digest};
use crate::table::Table;

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "files.checksum", version = "1.0.0", max_failures = 3)]
pub(crate) struct Checksum {
    pub(crate) path: StoredPath,
}

impl Handler<Table> for Checksum {
    async fn run(self, cx: JobContext<Table>) -> Result<Outcome, JobError> {
        let path = self.path.to_path();
        let read = tokio::task::spawn_blocking(move || digest(&path)).await?;
        let (digest, stamp) = match read {
            Ok(read) => read,
            Err(error) => return Err(classed(&self.path, &error)),
        };
        let mut tx = cx.jobs().begin::<sqlx::Sqlite>().await?;
        Table::keep(&mut tx, &self.path, &digest, &stamp).await?;
        cx.done_in(&mut tx).await?;
        tx.commit().await?;
        Ok(Outcome::Done)
    }
}

/// What is gone or forbidden is not tried again; a passing fault is.
fn classed(path: &StoredPath, error: &io::Error) -> JobError {
    let failure = JobError::new(format!("{}: {error}", path.to_path().display()));
    match error.kind() {
        io::ErrorKind::NotFound => failure.class("vanished").permanent(),
        io::ErrorKind::PermissionDenied => failure.class("unreadable").permanent(),
        _ => failure.class("read_error"),
    }
}
