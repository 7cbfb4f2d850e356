//! Connections, and the one way a statement gets to the server.
//!
//! 1. A call that is dropped half-way closes its connection: the server then undoes what was not
//!    committed, and nobody is handed a connection inside a transaction. (A cancelled `begin` of
//!    sqlx 0.9.0 hands one back: launchbadge/sqlx#4393.)
//! 2. Every statement runs under READ COMMITTED, a statement time-out and a lock time-out,
//!    whatever the database's defaults are.
//! 3. Plans don't depend on statistics: sequential scans, hashes and merges are out of the
//!    planner's choice, so a plan that was cached while a table was empty stays right.
//! 4. A statement whose answer does not come ends too: a server that vanished without closing its
//!    connections would else be awaited for ever. What became of the statement is then unknown.
//!
//! On connections of our own the settings come with the connection, and one statement is one round
//! trip. On borrowed ones, and behind a pooler, each statement is wrapped in a transaction that
//! brings its settings along.
//!
//! Not sqlx's pool for our own: it asks a connection whether it lives at each return (a round trip
//! a statement), and hands cancelled connections on.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jobs_core::StoreErrorKind;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgRow, Postgres};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Executor, raw_sql};
use tokio::runtime;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::{Attempt, Trouble, is_answer};
use super::options::{Path, PostgresOptions};
use super::sql::Statement;

/// How long a statement of the hot path waits for a lock before it steps aside.
const BRIEF: Duration = Duration::from_millis(250);

/// How long a transaction waits for a row that another holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// A moment: the caller has another way.
    Brief,
    /// For as long as the options say: the row decides.
    Patient,
}

/// The connections of a store.
pub(super) struct Lanes {
    source: Source,
    path: Path,
    /// After how long without an answer a statement is given up: the server's own time-out, and as
    /// much for the way as connecting may take.
    longest: Duration,
    begin_brief: String,
    begin_patient: String,
}

enum Source {
    Own {
        options: Box<PgConnectOptions>,
        connect_timeout: Duration,
        connections: usize,
        permits: Semaphore,
        idle: Idle,
    },
    Borrowed(PgPool),
}

/// Connections that wait, each with the runtime that drives it: it is of no use to another, which
/// may outlive that one.
type Idle = Mutex<Vec<(runtime::Id, PgConnection)>>;

/// A connection in use. It goes back only when its work has ended in good order.
pub(super) struct Lane<'a> {
    lanes: &'a Lanes,
    /// How long an answer may take; `None`: as long as it takes.
    longest: Option<Duration>,
    connection: Option<Connection>,
    _permit: Option<SemaphorePermit<'a>>,
}

enum Connection {
    Own(runtime::Id, PgConnection),
    Borrowed(PoolConnection<Postgres>),
}

impl Lanes {
    /// Connections of our own.
    pub(super) fn own(connect: &PgConnectOptions, options: &PostgresOptions) -> Self {
        let connections = usize::try_from(options.connections).unwrap_or(usize::MAX);
        Self::new(
            options,
            Source::Own {
                options: Box::new(session(connect, options)),
                connect_timeout: options.connect_timeout,
                connections,
                permits: Semaphore::new(connections.min(Semaphore::MAX_PERMITS)),
                idle: Mutex::default(),
            },
        )
    }

    /// Connections of the application's pool, each for one call.
    pub(super) fn borrowed(pool: PgPool, options: &PostgresOptions) -> Self {
        Self::new(options, Source::Borrowed(pool))
    }

    fn new(options: &PostgresOptions, source: Source) -> Self {
        let begin = |wait| {
            let mut sql = "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned();
            for (name, value) in settings(options, wait) {
                if name != "default_transaction_isolation" {
                    sql.extend(["; SET LOCAL ", name, " = '", value.as_str(), "'"]);
                }
            }
            sql
        };
        let (begin_brief, begin_patient) = (begin(BRIEF), begin(options.patience));
        let longest = options.statement_timeout.saturating_add(options.connect_timeout);
        Self { source, path: options.path, longest, begin_brief, begin_patient }
    }

    /// One statement in a transaction of its own.
    pub(super) async fn one(&self, statement: Statement) -> Attempt<Vec<PgRow>> {
        if !self.settings_come_with_connection() {
            let mut lane = self.begin(Wait::Brief).await?;
            let rows = lane.fetch(statement).await?;
            lane.commit().await?;
            return Ok(rows);
        }
        let mut lane = self.lane().await?;
        let rows = lane.fetch(statement).await;
        let is_usable = rows.as_ref().map_or_else(
            |trouble| matches!(trouble, Trouble::Sql(error) if is_answer(error)),
            |_| true,
        );
        if is_usable {
            lane.give_back();
        } else {
            self.forget_idle();
        }
        rows
    }

    /// A transaction of several statements. Dropped before its commit, it is undone.
    pub(super) async fn begin(&self, wait: Wait) -> Attempt<Lane<'_>> {
        let begin = match wait {
            Wait::Brief => &self.begin_brief,
            Wait::Patient => &self.begin_patient,
        };
        let mut lane = self.lane().await?;
        if let Err(trouble) = lane.run_all(begin).await {
            drop(lane);
            self.forget_idle();
            return Err(trouble);
        }
        Ok(lane)
    }

    /// A statement that is prepared and kept only where the next one reaches the same session.
    pub(super) fn prepared(&self, statement: Statement) -> Statement {
        match self.path {
            Path::Direct => statement,
            Path::Pooler => statement.persistent(false),
        }
    }

    fn settings_come_with_connection(&self) -> bool {
        matches!((&self.source, self.path), (Source::Own { .. }, Path::Direct))
    }

    async fn lane(&self) -> Attempt<Lane<'_>> {
        match &self.source {
            Source::Borrowed(pool) => {
                let connection = Some(Connection::Borrowed(pool.acquire().await?));
                Ok(Lane { lanes: self, longest: Some(self.longest), connection, _permit: None })
            }
            Source::Own { options, connect_timeout, permits, idle, .. } => {
                let free = tokio::time::timeout(*connect_timeout, permits.acquire()).await;
                let permit = free.map_err(|_| no_connection_free())?.map_err(|_| closed())?;
                let here = runtime::Handle::current().id();
                let kept = take_of(idle, here);
                let connection = match kept {
                    Some(connection) => connection,
                    None => connect(options, *connect_timeout).await?,
                };
                let connection = Some(Connection::Own(here, connection));
                let longest = Some(self.longest);
                Ok(Lane { lanes: self, longest, connection, _permit: Some(permit) })
            }
        }
    }

    /// After one connection broke, the idle ones are doubtful too.
    fn forget_idle(&self) {
        if let Source::Own { idle, .. } = &self.source {
            idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

impl Lane<'_> {
    /// A statement within this transaction.
    pub(super) async fn fetch(&mut self, statement: Statement) -> Attempt<Vec<PgRow>> {
        let statement = self.lanes.prepared(statement);
        let longest = self.longest;
        let fetch = async { Ok(statement.fetch_all(self.connection()).await?) };
        within(longest, fetch).await
    }

    /// Statements of ours without parameters.
    pub(super) async fn run_all(&mut self, sql: &str) -> Attempt<()> {
        let longest = self.longest;
        let run = async { Ok(self.connection().execute(raw_sql(AssertSqlSafe(sql))).await?) };
        within(longest, run).await.map(drop)
    }

    /// Waits for every answer as long as it takes: for migrations, which lift the server's time-out.
    pub(super) fn wait_for_ever(&mut self) {
        self.longest = None;
    }

    /// Makes the transaction's writes everyone's.
    pub(super) async fn commit(mut self) -> Attempt<()> {
        match self.run_all("COMMIT").await {
            Ok(()) => {
                self.give_back();
                Ok(())
            }
            Err(trouble) => {
                let lanes = self.lanes;
                drop(self);
                lanes.forget_idle();
                Err(trouble)
            }
        }
    }

    /// How long an answer may take; for work on the connection itself.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.longest
    }

    /// The connection itself.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        // Only `give_back` and `drop` take it, and both end the lane.
        match self.connection.as_mut().expect("a lane in use has its connection") {
            Connection::Own(_, connection) => connection,
            Connection::Borrowed(connection) => connection,
        }
    }

    fn give_back(mut self) {
        match (self.connection.take(), &self.lanes.source) {
            (Some(Connection::Own(home, connection)), Source::Own { connections, idle, .. }) => {
                let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() >= *connections {
                    // Of a runtime that may have ended: the longest unused goes.
                    idle.remove(0);
                }
                idle.push((home, connection));
            }
            // Dropping it returns it to its pool.
            (Some(Connection::Borrowed(_) | Connection::Own(..)) | None, _) => {}
        }
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        if let Some(Connection::Borrowed(connection)) = self.connection.as_mut() {
            connection.close_on_drop();
        }
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The last used idle connection of a runtime.
fn take_of(idle: &Idle, home: runtime::Id) -> Option<PgConnection> {
    let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
    let nth = idle.iter().rposition(|(of, _)| *of == home)?;
    Some(idle.remove(nth).1)
}

/// Awaits an answer for so long. After that the connection is of no use, and the statement may have
/// been carried out or not.
pub(super) async fn within<T>(
    longest: Option<Duration>,
    answer: impl Future<Output = Attempt<T>>,
) -> Attempt<T> {
    let Some(longest) = longest else {
        return answer.await;
    };
    let answered = tokio::time::timeout(longest, answer).await;
    answered.unwrap_or_else(|_| {
        let what = format!("the server did not answer within {longest:?}");
        Err(Trouble::new(StoreErrorKind::Unavailable, what))
    })
}

/// Opens a connection.
pub(super) async fn connect(
    options: &PgConnectOptions,
    longest: Duration,
) -> Attempt<PgConnection> {
    let connecting = PgConnection::connect_with(options);
    let Ok(connection) = tokio::time::timeout(longest, connecting).await else {
        let what = format!("the server did not take a connection within {longest:?}");
        return Err(Trouble::new(StoreErrorKind::Unavailable, what));
    };
    Ok(connection?)
}

/// The address with the settings that every connection of ours brings along.
pub(super) fn session(connect: &PgConnectOptions, options: &PostgresOptions) -> PgConnectOptions {
    let connect = connect.clone().disable_statement_logging();
    match options.path {
        Path::Direct => connect.options(settings(options, BRIEF)),
        Path::Pooler => connect.statement_cache_capacity(0),
    }
}

fn settings(options: &PostgresOptions, lock_timeout: Duration) -> Vec<(&'static str, String)> {
    let ms = |span: Duration| span.as_millis().clamp(1, 86_400_000).to_string();
    let word = |text: &str| text.to_owned();
    vec![
        ("default_transaction_isolation", word("read committed")),
        ("statement_timeout", ms(options.statement_timeout)),
        ("lock_timeout", ms(lock_timeout)),
        ("idle_in_transaction_session_timeout", ms(options.statement_timeout * 2)),
        ("enable_seqscan", word("off")),
        ("enable_bitmapscan", word("off")),
        ("enable_hashjoin", word("off")),
        ("enable_mergejoin", word("off")),
        ("jit", word("off")),
    ]
}

fn no_connection_free() -> Trouble {
    Trouble::new(StoreErrorKind::Busy, "all connections of the store are in use")
}

fn closed() -> Trouble {
    Trouble::new(StoreErrorKind::Unavailable, "the store is closed")
}
