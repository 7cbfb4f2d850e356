//! Renewing a lease, on a connection of its own.

use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::{Author, Heartbeat, Held, Leaving, Phase, Renewed};
use jobs_core::{JobId, StoreErrorKind, WorkerId};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row as _, Sqlite, SqliteConnection};

use super::SqliteStore;
use super::connect::Connect;
use super::error::{During, Result, is_busy};
use super::lease::Close;
use super::row::Columns;
use super::signs::{Observer, Signs};
use super::turn::{LONGEST_WAIT, Turn};
use super::{migrate, sql};

/// What a worker's heartbeat speaks through. A renewal is one statement and so one transaction; a
/// dropped one happens or does not.
#[derive(Debug)]
pub(super) struct Beat {
    store: SqliteStore,
    connect: Connect,
    connection: Option<SqliteConnection>,
    turn: Turn,
    observer: Observer,
}

impl Beat {
    pub(super) async fn open(store: &SqliteStore, connect: Connect, turn: Turn) -> Result<Self> {
        let connection = Some(connect.writing(&turn).await?);
        let observer = store.observer();
        Ok(Self { store: store.clone(), connect, connection, turn, observer })
    }
}

#[async_trait]
impl Heartbeat for Beat {
    async fn renew(&mut self, worker: WorkerId, phase: Phase, within: Duration) -> Result<Renewed> {
        const DOING: &str = "renewing a lease";
        let rows = self.ask(DOING, within, |now| {
            sqlx::query(sql::RENEW).bind(worker.0).bind(phase.as_str()).bind(now)
        });
        let rows = match rows.await {
            // Only what observers can see counts as renewed: see `lease`.
            Err(error) if error.kind() == StoreErrorKind::Busy => {
                let is_marked = self.observer.files.mark(worker);
                return if is_marked { Ok(Renewed::Undecided) } else { Err(error) };
            }
            rows => rows?,
        };
        let Some(row) = rows.first() else {
            self.check_schema(within).await?;
            return Ok(Renewed::Ended);
        };
        let mut columns = Columns::new(row);
        let renewals = columns.number().during(DOING)?;
        let signs = Signs { renewals, marks: self.observer.files.marks(worker) };
        self.observer.renewals.note(worker, signs, self.observer.clock.elapsed());
        migrate::usable_after(columns.number().during(DOING)?)?;
        Ok(Renewed::Renewed)
    }

    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>> {
        const DOING: &str = "reading the runs of a worker";
        let rows = self.ask(DOING, LONGEST_WAIT, |_| sqlx::query(sql::HELD).bind(worker.0)).await?;
        let held = |row: &SqliteRow| {
            let mut columns = Columns::new(row);
            Ok(Held { fence: columns.fence()?, is_cancel_requested: columns.flag()? })
        };
        rows.iter().map(held).collect::<Result<_, _>>().during(DOING)
    }

    /// Through the writer, which has a thread of its own.
    async fn close(
        &mut self,
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
    ) -> Result<Vec<JobId>> {
        let draw = self.store.random().draw();
        let close = Close::new(worker, by, leaving, draw, self.observer.clone());
        self.store.writer().write(close).await
    }
}

impl Beat {
    /// Whether this build may still use the schema, for who has no lease to renew.
    async fn check_schema(&mut self, within: Duration) -> Result<()> {
        const DOING: &str = "reading the schema's version";
        let rows = self.ask(DOING, within, |_| sqlx::query(sql::META)).await?;
        let min_reader = |row: &SqliteRow| row.try_get("min_reader").during(DOING);
        rows.iter().try_for_each(|row| migrate::usable_after(min_reader(row)?))
    }

    /// Runs one statement to its end, so that its transaction has ended before the answer. A
    /// connection that failed, or whose call was dropped, is not used again.
    async fn ask(
        &mut self,
        doing: &str,
        within: Duration,
        statement: impl Fn(i64) -> Query<'static, Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>> {
        self.store.inner.file.check()?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect.writing(&self.turn).await?,
        };
        let mut patience = self.turn.patience(doing, within);
        loop {
            let now = self.observer.clock.now().as_micros();
            match statement(now).fetch_all(&mut connection).await {
                Err(error) if is_busy(&error) => patience.wait().await?,
                rows => {
                    let rows = rows.during(doing)?;
                    self.connection = Some(connection);
                    return Ok(rows);
                }
            }
        }
    }
}
