//! The job: a log, added up batch by batch. Each batch commits with the place behind it.

use std::path::PathBuf;

use jobs_runtime::UserTransaction;
use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};
use sqlx::{Postgres, Sqlite, Transaction};

use crate::log;
use crate::table::{HasTables, Tables};

/// How many lines are added up at a time.
const BATCH: u64 = 500;

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "log.import", version = "1.0.0", checkpoint = ImportedTo, max_failures = 3)]
pub(crate) struct Import {
    pub(crate) file: PathBuf,
}

/// How far a log is imported.
#[derive(Debug, Default, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
pub(crate) struct ImportedTo {
    pub(crate) byte: u64,
    pub(crate) lines: u64,
}

impl Handler<Tables> for Import {
    async fn run(self, cx: JobContext<Tables, ImportedTo>) -> Result<Outcome, JobError> {
        match cx.state {
            Tables::Sqlite => import::<Sqlite>(&self, &cx).await?,
            Tables::Postgres => import::<Postgres>(&self, &cx).await?,
        }
        Ok(Outcome::Done)
    }
}

async fn import<DB: HasTables>(
    job: &Import,
    cx: &JobContext<Tables, ImportedTo>,
) -> Result<(), JobError>
where
    Transaction<'static, DB>: UserTransaction,
{
    let mut cursor = cx.cursor(ImportedTo::default());
    while let Some(mut batch) = cursor.begin::<DB>().await? {
        let (file, from) = (job.file.clone(), batch.at().byte);
        // A file blocks its thread, and the runtime's are for all jobs.
        let read = tokio::task::spawn_blocking(move || log::read(&file, from, BATCH)).await?;
        let read = read.map_err(|error| JobError::new(format!("{error:#}")))?;
        DB::add(&mut batch.tx, &read.totals).await?;
        let lines = batch.at().lines + read.lines;
        cx.progress(format_args!("{lines} lines"));
        cx.set_result(&lines)?;
        let next = ImportedTo { byte: read.end, lines };
        batch.commit((read.lines > 0).then_some(next)).await?;
    }
    Ok(())
}
