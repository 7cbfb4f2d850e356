//! Who has a duty.

use async_trait::async_trait;
use jobs_core::store::Duty;
use jobs_core::{Timestamp, WorkerId};
use sqlx::SqliteConnection;

use super::error::{During, Result};
use super::sql;
use super::writer::Write;

/// A duty to be taken or given back.
pub(super) struct ChangeDuty {
    statement: &'static str,
    duty: Duty,
    worker: WorkerId,
}

impl ChangeDuty {
    pub(super) const fn take(duty: Duty, worker: WorkerId) -> Self {
        Self { statement: sql::TAKE_DUTY, duty, worker }
    }

    pub(super) const fn give_back(duty: Duty, worker: WorkerId) -> Self {
        Self { statement: sql::GIVE_BACK_DUTY, duty, worker }
    }
}

#[async_trait]
impl Write for ChangeDuty {
    /// Whether the worker has it now, of one that takes it.
    type Answer = bool;

    async fn run(&mut self, tx: &mut SqliteConnection, _: Timestamp) -> Result<bool> {
        let change = sqlx::query(self.statement).bind(self.duty.as_str()).bind(self.worker.0);
        let has = change.fetch_optional(tx).await.during("changing who has a duty")?;
        Ok(has.is_some())
    }

    fn wakes(&self, _: &bool) -> bool {
        false
    }
}
