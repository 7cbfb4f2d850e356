//! Connections, and the one way a statement gets to the server.
//!
//! 1. A call that is dropped half-way closes its connection: the server then undoes what was not
//!    committed, and nobody is handed a connection inside a transaction. (A cancelled `begin` of
//!    sqlx 0.9.0 hands one back: launchbadge/sqlx#4393.)
//! 2. Every statement runs under READ COMMITTED, a statement time-out and a lock time-out,
//!    whatever the database's defaults are.
//! 3. Plans don't depend on statistics: sequential scans, hashes and merges are out of the
//!    planner's choice, so a plan that was cached while a table was empty stays right.
//!    But what a person looks for is planned for its very values, by statistics and with all that
//!    the planner knows: which index finds a rare match is known to nobody else.
//! 4. No call waits for ever: where a server vanishes without a word, its silence is an error that
//!    passes soon after the server would have ended the statement itself, and the connection goes.
//!
//! On connections of our own the settings come with the connection, and one statement is one round
//! trip. On borrowed ones, and behind a pooler, each statement is wrapped in a transaction that
//! brings its settings along.
//!
//! Not sqlx's pool for our own: it asks a connection whether it lives at each return (a round trip
//! a statement), and hands cancelled connections on.

use std::fmt;
use std::time::Duration;

use jobs_core::StoreErrorKind;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgRow, Postgres};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Executor, raw_sql};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::{Attempt, Trouble, is_answer, is_parting};
use super::idle::{Idle, Next};
use super::options::{Path, PostgresOptions};
use super::sql::Statement;

/// How long a statement of the hot path waits for a lock before it steps aside.
const BRIEF: Duration = Duration::from_millis(250);

/// What a look has set beside: the planner's own freedom.
const LOOK: &str = "SET LOCAL transaction_read_only = on; \
    SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; \
    SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on; \
    SET LOCAL plan_cache_mode = force_custom_plan";

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
    /// Where the server is, for errors: `host:port/database, schema "jobs"`.
    place: String,
    path: Path,
    /// After how long an answer will not come any more.
    silence: Duration,
    begin_brief: String,
    begin_patient: String,
    begin_look: String,
}

enum Source {
    Own {
        options: Box<PgConnectOptions>,
        connect_timeout: Duration,
        permits: Semaphore,
        idle: Idle<PgConnection>,
    },
    Borrowed(PgPool),
}

/// A connection in use. It goes back only when its work has ended in good order.
pub(super) struct Lane<'a> {
    lanes: &'a Lanes,
    connection: Option<Connection>,
    _permit: Option<SemaphorePermit<'a>>,
}

enum Connection {
    Own(PgConnection),
    Borrowed(PoolConnection<Postgres>),
}

impl Lanes {
    /// Connections of our own.
    pub(super) fn own(connect: &PgConnectOptions, options: &PostgresOptions) -> Self {
        let connections = usize::try_from(options.connections).unwrap_or(usize::MAX);
        Self::new(
            options,
            connect,
            Source::Own {
                options: Box::new(session(connect, options)),
                connect_timeout: options.connect_timeout,
                permits: Semaphore::new(connections.min(Semaphore::MAX_PERMITS)),
                idle: Idle::default(),
            },
        )
    }

    /// Connections of the application's pool, each for one call.
    pub(super) fn borrowed(pool: PgPool, options: &PostgresOptions) -> Self {
        let address = pool.connect_options();
        Self::new(options, &address, Source::Borrowed(pool))
    }

    fn new(options: &PostgresOptions, address: &PgConnectOptions, source: Source) -> Self {
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
        let begin_look = format!("{begin_brief}; {LOOK}");
        let silence = options.statement_timeout + options.statement_timeout / 4;
        let place = format!("{}, schema {:?}", super::url::place(address), options.schema);
        Self { source, place, path: options.path, silence, begin_brief, begin_patient, begin_look }
    }

    /// Where the server is, and the schema.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Waits for an answer, but no longer than the server may take for it.
    pub(super) async fn heard<T, E: Into<Trouble>>(
        &self,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Attempt<T> {
        let silent = |_| {
            let what = format!(
                "the server {} has not answered for {:?}: is the network to it cut, or is it overloaded?",
                self.place, self.silence
            );
            Trouble::new(StoreErrorKind::Unavailable, what)
        };
        let answer = tokio::time::timeout(self.silence, answer).await.map_err(silent)?;
        answer.map_err(|error| self.placed(error.into()))
    }

    /// A broken connection names its server; what the server answers keeps its own words.
    fn placed(&self, trouble: Trouble) -> Trouble {
        let is_broken = matches!(&trouble, Trouble::Sql(error) if is_parting(error));
        if is_broken { trouble.at("no more connection to", &self.place) } else { trouble }
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

    /// One statement that looks for what a person asks, planned for what it asks.
    pub(super) async fn look(&self, statement: Statement) -> Attempt<Vec<PgRow>> {
        let mut lane = self.begin_with(&self.begin_look).await?;
        let rows = lane.fetch(statement).await?;
        lane.commit().await?;
        Ok(rows)
    }

    /// A transaction of several statements. Dropped before its commit, it is undone.
    pub(super) async fn begin(&self, wait: Wait) -> Attempt<Lane<'_>> {
        let begin = match wait {
            Wait::Brief => &self.begin_brief,
            Wait::Patient => &self.begin_patient,
        };
        self.begin_with(begin).await
    }

    async fn begin_with(&self, begin: &str) -> Attempt<Lane<'_>> {
        let mut lane = self.lane().await?;
        let begin = lane.connection().execute(raw_sql(AssertSqlSafe(begin)));
        if let Err(trouble) = self.heard(begin).await {
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
                let acquired = pool.acquire().await;
                let acquired = acquired.map_err(|error| self.unreached(error.into()))?;
                let connection = Some(Connection::Borrowed(acquired));
                Ok(Lane { lanes: self, connection, _permit: None })
            }
            Source::Own { options, connect_timeout, permits, idle } => {
                let free = tokio::time::timeout(*connect_timeout, permits.acquire()).await;
                let permit = free.map_err(|_| self.none_free())?.map_err(|_| closed())?;
                let connection = match idle.next().await {
                    Next::Idle(connection) => connection,
                    Next::Open(_turn) => self.connect(options, *connect_timeout).await?,
                };
                let connection = Some(Connection::Own(connection));
                Ok(Lane { lanes: self, connection, _permit: Some(permit) })
            }
        }
    }

    /// Opens a connection.
    async fn connect(
        &self,
        options: &PgConnectOptions,
        longest: Duration,
    ) -> Attempt<PgConnection> {
        let connecting = PgConnection::connect_with(options);
        let Ok(connection) = tokio::time::timeout(longest, connecting).await else {
            let what = format!(
                "the server {} did not take a connection within {longest:?}: do its address and the \
                 network lead to it, and is it overloaded?",
                self.place
            );
            return Err(Trouble::new(StoreErrorKind::Unavailable, what));
        };
        connection.map_err(|error| self.unreached(error.into()))
    }

    /// A connection that is not to be had names its server.
    pub(super) fn unreached(&self, trouble: Trouble) -> Trouble {
        trouble.at("no connection to", &self.place)
    }

    fn none_free(&self) -> Trouble {
        let what = format!(
            "all connections of the store to {} are in use: does the server answer slowly, or are \
             `connections` too few?",
            self.place
        );
        Trouble::new(StoreErrorKind::Busy, what)
    }

    /// After one connection broke, the idle ones are doubtful too.
    fn forget_idle(&self) {
        if let Source::Own { idle, .. } = &self.source {
            idle.forget();
        }
    }
}

impl Lane<'_> {
    /// A statement within this transaction.
    pub(super) async fn fetch(&mut self, statement: Statement) -> Attempt<Vec<PgRow>> {
        let lanes = self.lanes;
        lanes.heard(lanes.prepared(statement).fetch_all(self.connection())).await
    }

    /// Lets constraints that would speak at the commit speak at each statement.
    pub(super) async fn check_at_once(&mut self) -> Attempt<()> {
        self.say("SET CONSTRAINTS ALL IMMEDIATE").await
    }

    /// From now on no lock is waited for longer than a moment: what can't be had is left.
    pub(super) async fn hurry(&mut self) -> Attempt<()> {
        self.say("SET LOCAL lock_timeout = '50ms'").await
    }

    /// From now on next to no time: what is held now is left.
    pub(super) async fn hardly_wait(&mut self) -> Attempt<()> {
        self.say("SET LOCAL lock_timeout = '1ms'").await
    }

    /// Marks where an attempt at a part of this transaction begins.
    pub(super) async fn mark(&mut self) -> Attempt<()> {
        self.say("SAVEPOINT part").await
    }

    /// The part since the mark belongs to this transaction.
    pub(super) async fn keep(&mut self) -> Attempt<()> {
        self.say("RELEASE SAVEPOINT part").await
    }

    /// Undoes the part since the mark, which failed.
    pub(super) async fn undo(&mut self) -> Attempt<()> {
        self.say("ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part").await
    }

    async fn say(&mut self, sql: &'static str) -> Attempt<()> {
        let lanes = self.lanes;
        lanes.heard(self.connection().execute(raw_sql(sql))).await.map(drop)
    }

    /// A statement that may take however long it takes.
    pub(super) async fn fetch_patiently(&mut self, statement: Statement) -> Attempt<Vec<PgRow>> {
        let statement = self.lanes.prepared(statement);
        Ok(statement.fetch_all(self.connection()).await?)
    }

    /// Statements of ours without parameters, which may take however long they take.
    pub(super) async fn run_all(&mut self, sql: &str) -> Attempt<()> {
        self.connection().execute(raw_sql(AssertSqlSafe(sql))).await?;
        Ok(())
    }

    /// Makes the transaction's writes everyone's.
    pub(super) async fn commit(mut self) -> Attempt<()> {
        let lanes = self.lanes;
        let committed = lanes.heard(self.connection().execute(raw_sql("COMMIT"))).await;
        match committed {
            Ok(_) => {
                self.give_back();
                Ok(())
            }
            Err(trouble) => {
                drop(self);
                lanes.forget_idle();
                Err(trouble)
            }
        }
    }

    /// The connection itself.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        // Only `give_back` and `drop` take it, and both end the lane.
        match self.connection.as_mut().expect("a lane in use has its connection") {
            Connection::Own(connection) => connection,
            Connection::Borrowed(connection) => connection,
        }
    }

    fn give_back(mut self) {
        match (self.connection.take(), &self.lanes.source) {
            (Some(Connection::Own(connection)), Source::Own { idle, .. }) => {
                idle.give_back(connection);
            }
            // Dropping it returns it to its pool.
            (Some(Connection::Borrowed(_) | Connection::Own(_)) | None, _) => {}
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

/// The address with the settings that every connection of ours brings along.
pub(super) fn session(connect: &PgConnectOptions, options: &PostgresOptions) -> PgConnectOptions {
    let connect = connect.clone().disable_statement_logging();
    match options.path {
        Path::Direct => connect.options(settings(options, BRIEF)),
        Path::Pooler => connect.statement_cache_capacity(0),
    }
}

fn settings(options: &PostgresOptions, lock_timeout: Duration) -> Vec<(&'static str, String)> {
    let ms = |span: Duration| span.as_millis().to_string();
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
        ("plan_cache_mode", word("force_generic_plan")),
    ]
}

fn closed() -> Trouble {
    Trouble::new(StoreErrorKind::Unavailable, "the store is closed")
}
