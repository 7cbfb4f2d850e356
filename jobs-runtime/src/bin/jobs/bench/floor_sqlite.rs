//! The floor on SQLite: one connection that completes the last batch and claims the next in one
//! transaction, since the disk's flush is what a small batch costs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tokio::sync::Notify;

use super::Result;
use super::app::{KIND, ROUTE, Stamp};
use super::floor::{Floor, Rows, Tenths};

const ENQUEUE: &str = "
    INSERT INTO jobs_job (queue, kind, version, min_reader, payload, priority, state, due_at_us,
        max_failures, build, enqueued_at_us)
    SELECT 'default', ?1, '1.0.0', '1.0', value ->> 0, 0, 'ready', ?3, 20, 'bench', ?3
    FROM json_each(?2)";
const CLAIM: &str = "
    UPDATE jobs_job
    SET state = 'running', claim_number = claim_number + 1, worker_id = 1, claimed_at_us = ?1
    WHERE id IN (
        SELECT id FROM jobs_routed
        WHERE state = 'ready' AND queue = 'default' AND route = ?2
            AND place >= ?3 AND (place > ?3 OR id > ?4)
        ORDER BY place, id LIMIT ?5 + 0
    )
    RETURNING id, due_at_us, payload";
const COMPLETE: &str = "
    UPDATE jobs_job SET state = 'succeeded', worker_id = NULL, finished_at_us = ?1
    WHERE id IN (SELECT value FROM json_each(?2)) AND state = 'running'";

const FOREIGN: &str = "'other.kind' || (n % 20)";
const DEAD: &str = "
    UPDATE jobs_job SET failures = 20, events = 1, error_text = 'connection refused',
        error_class = 'class' || (id / 7 % 10)
    WHERE state = 'dead'";
const HISTORY: &str = "
    INSERT INTO jobs_event (job_id, slot, number, at_us, claim_number, kind, class, text, build)
    SELECT id, 1, 1, finished_at_us, 1, 'failure', error_class, error_text, 'bench'
    FROM jobs_job WHERE state = 'dead'";
const UPSERT: &str = "
    INSERT INTO jobs_checkpoint (job_id, version, min_reader, text) VALUES (1, '1.0.0', '1.0', ?1)
    ON CONFLICT (job_id) DO UPDATE SET version = excluded.version,
        min_reader = excluded.min_reader, text = excluded.text, number = number + 1";

pub(crate) struct SqliteFloor {
    options: SqliteConnectOptions,
    connection: SqliteConnection,
}

/// Where the last claim ended.
#[derive(Clone, Copy)]
struct Position {
    place: i64,
    id: i64,
}

impl SqliteFloor {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let options = url
            .parse::<SqliteConnectOptions>()?
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(30))
            .pragma("cache_size", "-32000")
            .pragma("wal_autocheckpoint", "4000")
            .row_buffer_size(1024)
            .disable_statement_logging();
        let connection = SqliteConnection::connect_with(&options).await?;
        Ok(Self { options, connection })
    }
}

fn now_us() -> i64 {
    use jobs_runtime::Clock;
    jobs_runtime::SystemClock.now().as_micros()
}

async fn claim(
    tx: &mut SqliteConnection,
    position: &mut Position,
    batch: u32,
) -> Result<(Vec<i64>, Vec<Stamp>)> {
    let rows = sqlx::query(CLAIM)
        .bind(now_us())
        .bind(ROUTE)
        .bind(position.place)
        .bind(position.id)
        .bind(batch)
        .fetch_all(tx)
        .await?;
    let mut ids = Vec::with_capacity(rows.len());
    let mut stamps = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: i64 = row.try_get(0)?;
        let place: i64 = row.try_get(1)?;
        if (place, id) > (position.place, position.id) {
            *position = Position { place, id };
        }
        ids.push(id);
        stamps.push(serde_json::from_str(row.try_get(2)?)?);
    }
    Ok((ids, stamps))
}

async fn complete(tx: &mut SqliteConnection, ids: &[i64]) -> Result<()> {
    let ids = serde_json::to_string(ids)?;
    sqlx::query(COMPLETE).bind(now_us()).bind(ids).execute(tx).await?;
    Ok(())
}

async fn begin(tx: &mut SqliteConnection) -> Result<()> {
    sqlx::query("BEGIN IMMEDIATE").execute(tx).await?;
    Ok(())
}

async fn commit(tx: &mut SqliteConnection) -> Result<()> {
    sqlx::query("COMMIT").execute(tx).await?;
    Ok(())
}

#[async_trait]
impl Floor for SqliteFloor {
    async fn fill(&mut self, rows: Rows, count: u64) -> Result<()> {
        let (kind, state, due_us, finished) = match rows {
            Rows::Ready => (format!("'{KIND}'"), "ready", 0, "NULL"),
            Rows::Finished => (format!("'{KIND}'"), "succeeded", 0, "?2"),
            Rows::Future => (format!("'{KIND}'"), "scheduled", 86_400_000_000_i64, "NULL"),
            Rows::Foreign => (FOREIGN.to_owned(), "ready", 0, "NULL"),
            Rows::Dead => (FOREIGN.to_owned(), "dead", 0, "?2"),
        };
        // In order of place and id, as jobs that were enqueued one after another are.
        let sql = format!(
            "WITH RECURSIVE one (n) AS (
                SELECT 1 WHERE ?1 > 0 UNION ALL SELECT n + 1 FROM one WHERE n < ?1
            )
            INSERT INTO jobs_job (kind, version, min_reader, payload, state, due_at_us,
                finished_at_us, enqueued_at_us, build)
            SELECT {kind}, '1.0.0', '1.0', '{{\"sent_at_ns\":0}}', '{state}',
                ?2 - 1000000000 + n / 100 + {due_us}, {finished}, ?2, 'bench' FROM one"
        );
        let sql = sqlx::AssertSqlSafe(sql);
        let count = i64::try_from(count)?;
        sqlx::query(sql).bind(count).bind(now_us()).execute(&mut self.connection).await?;
        if rows == Rows::Dead {
            sqlx::query(DEAD).execute(&mut self.connection).await?;
            sqlx::query(HISTORY).execute(&mut self.connection).await?;
        }
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut self.connection).await?;
        Ok(())
    }

    async fn enqueue(&mut self, jobs: &[Stamp]) -> Result<()> {
        enqueue(&mut self.connection, jobs).await
    }

    async fn drain(&mut self, batch: u32, count: u64) -> Result<Vec<Duration>> {
        let tx = &mut self.connection;
        let mut tenths = Tenths::begin(count);
        let mut position = Position { place: i64::MIN, id: i64::MIN };
        let (mut done, mut held) = (0, Vec::new());
        while done < count {
            begin(tx).await?;
            if !held.is_empty() {
                complete(tx, &held).await?;
            }
            done += held.len() as u64;
            (held, _) = claim(tx, &mut position, batch).await?;
            commit(tx).await?;
            tenths.note(done);
        }
        Ok(tenths.ends())
    }

    async fn pickups(&mut self, count: usize, spacing: Duration) -> Result<Vec<Duration>> {
        let mut worker = SqliteConnection::connect_with(&self.options).await?;
        let bell = Arc::new(Notify::new());
        let producer = async {
            for _ in 0..count {
                tokio::time::sleep(spacing).await;
                enqueue(&mut self.connection, &[Stamp::now()]).await?;
                bell.notify_one();
            }
            Result::Ok(())
        };
        let consumer = async {
            let mut ages = Vec::new();
            while ages.len() < count {
                bell.notified().await;
                begin(&mut worker).await?;
                let mut position = Position { place: i64::MIN, id: i64::MIN };
                let (ids, stamps) = claim(&mut worker, &mut position, 10).await?;
                commit(&mut worker).await?;
                ages.extend(stamps.iter().filter_map(|stamp| stamp.age()));
                begin(&mut worker).await?;
                complete(&mut worker, &ids).await?;
                commit(&mut worker).await?;
            }
            Result::Ok(ages)
        };
        let ((), ages) = tokio::try_join!(producer, consumer)?;
        Ok(ages)
    }

    async fn upsert(&mut self, text: &str) -> Result<()> {
        sqlx::query(UPSERT).bind(text).execute(&mut self.connection).await?;
        Ok(())
    }

    async fn hold_snapshot(&mut self) -> Result<Box<dyn Send>> {
        let mut reader = SqliteConnection::connect_with(&self.options).await?;
        sqlx::query("BEGIN").execute(&mut reader).await?;
        sqlx::query("SELECT count(*) FROM jobs_meta").fetch_all(&mut reader).await?;
        Ok(Box::new(reader))
    }

    async fn commits(&mut self) -> Result<Option<i64>> {
        Ok(None)
    }
}

async fn enqueue(connection: &mut SqliteConnection, jobs: &[Stamp]) -> Result<()> {
    let payloads: Vec<(String,)> =
        jobs.iter().map(|job| Ok((serde_json::to_string(job)?,))).collect::<Result<_>>()?;
    let rows = serde_json::to_string(&payloads)?;
    sqlx::query(ENQUEUE).bind(KIND).bind(rows).bind(now_us()).execute(connection).await?;
    Ok(())
}
