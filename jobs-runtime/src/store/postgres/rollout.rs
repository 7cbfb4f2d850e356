//! What a rollout asks of the server: what waits, what is stranded, and which builds there are.

use jobs_core::store::{BuildRecord, STRANDED, Strand, Waiting};
use jobs_core::{BuildId, EventKind, NewEvent, Route, Timestamp, micros};

use super::PostgresStore;
use super::error::Attempt;
use super::event::{Line, record_events};
use super::lane::Wait;
use super::row::Columns;

/// What a stranded job's error says.
const WHY: &str = "no live worker could read it until its deadline";

impl PostgresStore {
    pub(super) async fn end_stranded(&self, strand: &Strand<'_>) -> Attempt<u32> {
        let routes: Vec<&str> = strand.routes.iter().map(Route::as_str).collect();
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let statement = self
            .statements()
            .strand()
            .bind(routes)
            .bind(micros(strand.waited))
            .bind(i64::from(strand.limit))
            .bind(STRANDED)
            .bind(WHY);
        let rows = lane.fetch(statement).await?;
        let mut lines = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut columns = Columns::of(row);
            let (class, text) = (STRANDED.to_owned(), WHY.to_owned());
            let event = NewEvent { kind: EventKind::Stranded, class, text };
            lines.push(Line { fence: columns.fence()?, number: columns.next()?, event });
        }
        record_events(&mut lane, self.statements(), Some(&strand.by), &lines).await?;
        lane.commit().await?;
        Ok(u32::try_from(lines.len()).unwrap_or(u32::MAX))
    }

    pub(super) async fn publish_manifest(&self, build: &BuildId, manifest: &str) -> Attempt<()> {
        let statement = self
            .statements()
            .publish()
            .bind(build.as_str().to_owned())
            .bind(jobs_core::store::fingerprint(manifest))
            .bind(manifest.to_owned());
        self.lanes().one(statement).await.map(drop)
    }

    pub(super) async fn waiting_jobs(&self) -> Attempt<Vec<Waiting>> {
        let rows = self.lanes().look(self.statements().waiting()).await?;
        let mut waiting = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut columns = Columns::of(row);
            waiting.push(Waiting {
                queue: columns.next()?,
                kind: columns.next()?,
                version: columns.next()?,
                min_reader: columns.next()?,
                jobs: columns.next::<i64>()?.unsigned_abs(),
                refused: columns.next::<i64>()?.unsigned_abs(),
                oldest_at: Timestamp::from_micros(columns.next()?),
            });
        }
        waiting.sort_unstable_by(|a, b| a.place().cmp(&b.place()));
        Ok(waiting)
    }

    pub(super) async fn published_builds(&self) -> Attempt<Vec<BuildRecord>> {
        let rows = self.lanes().one(self.statements().builds()).await?;
        let mut builds = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut columns = Columns::of(row);
            builds.push(BuildRecord {
                build: columns.next()?,
                manifest: columns.next()?,
                seen_at: Timestamp::from_micros(columns.next()?),
            });
        }
        Ok(builds)
    }
}
