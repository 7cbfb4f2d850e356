//! Writing how far runs have come, for people.

use std::collections::HashSet;

use async_trait::async_trait;
use jobs_core::{Fence, ProgressNote, Timestamp};
use sqlx::SqliteConnection;

use super::checkpoint::rounds;
use super::error::{During, Result};
use super::row::Columns;
use super::writer::Write;
use super::{json, sql};

const DOING: &str = "noting progress";

/// Notes to be written.
pub(super) struct Note {
    notes: Vec<ProgressNote>,
}

impl Note {
    pub(super) fn new(notes: &[ProgressNote]) -> Self {
        Self { notes: notes.to_vec() }
    }
}

#[async_trait]
impl Write for Note {
    type Answer = Vec<bool>;

    async fn run(&mut self, tx: &mut SqliteConnection, _: Timestamp) -> Result<Vec<bool>> {
        let mut written = HashSet::new();
        let notes: Vec<&ProgressNote> = self.notes.iter().collect();
        for round in rounds(&notes, |note| note.fence.job) {
            let row =
                |note: &&ProgressNote| (note.fence.job.0, note.fence.claim.0, note.text.clone());
            let rows: Vec<_> = round.iter().map(row).collect();
            let query = sqlx::query(sql::NOTE_PROGRESS).bind(json::rows(&rows));
            for row in query.fetch_all(&mut *tx).await.during(DOING)? {
                written.insert(Columns::new(&row).fence().during(DOING)?);
            }
        }
        let is_written = |fence: &Fence| written.contains(fence);
        Ok(self.notes.iter().map(|note| is_written(&note.fence)).collect())
    }

    fn wakes(&self, _: &Vec<bool>) -> bool {
        false
    }
}
