//! The floor on PostgreSQL: two connections, of which one claims the next batch while the other
//! completes the last.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, Row};

use super::Result;
use super::app::{KIND, ROUTE, Stamp};
use super::floor::{Floor, Rows, Tenths};

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const ENQUEUE: &str = "
    INSERT INTO jobs.job (queue, kind, version, min_reader, payload, priority, state, max_failures,
        build)
    SELECT 'default', $1, '1.0.0', '1.0', payload::json, 0, 'ready', 20, 'bench'
    FROM unnest($2::text[]) AS payload RETURNING id";
const NOTIFY: &str = "
    WITH told AS MATERIALIZED (SELECT pg_notify('jobs_bench', ''))
    INSERT INTO jobs.job (kind, version, min_reader, payload, build)
    SELECT $1, '1.0.0', '1.0', $2::json, 'bench' FROM told";
const CLAIM: &str = "
    UPDATE jobs.job
    SET state = 'running', claim_number = claim_number + 1, worker_id = 1,
        claimed_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM jobs.job
        WHERE state = 'ready' AND queue = 'default' AND route = $1 AND (place, id) > ($2, $3)
        ORDER BY queue, route, place, id LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED
    ))
    RETURNING id, place, payload::text";
const COMPLETE: &str = "
    UPDATE jobs.job SET state = 'succeeded', worker_id = NULL,
        finished_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    WHERE id = ANY ($1) AND state = 'running'";

const FOREIGN: &str = "'other.kind' || (n % 20)";
const DEAD: &str = "
    UPDATE jobs.job SET failures = 20, events = 1, error_text = 'connection refused',
        error_class = 'class' || (id / 7 % 10)
    WHERE state = 'dead'";
const HISTORY: &str = "
    INSERT INTO jobs.event (job_id, slot, number, at_us, claim_number, kind, class, text, build)
    SELECT id, 1, 1, finished_at_us, 1, 'failure', error_class, error_text, 'bench'
    FROM jobs.job WHERE state = 'dead'";
const UPSERT: &str = "
    INSERT INTO jobs.checkpoint AS saved (job_id, number, version, min_reader, text)
    VALUES (1, 1, '1.0.0', '1.0', $1)
    ON CONFLICT (job_id) DO UPDATE SET number = saved.number + 1, version = excluded.version,
        min_reader = excluded.min_reader, text = excluded.text";

pub(crate) struct PostgresFloor {
    options: PgConnectOptions,
    connection: PgConnection,
}

#[derive(Clone, Copy)]
struct Position {
    place: i64,
    id: i64,
}

impl PostgresFloor {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        // A plan that was made while the table was empty must stay right.
        let settings = [("enable_seqscan", "off"), ("enable_bitmapscan", "off"), ("jit", "off")];
        let options = url.parse::<PgConnectOptions>()?.options(settings);
        let options = options.disable_statement_logging();
        let connection = PgConnection::connect_with(&options).await?;
        Ok(Self { options, connection })
    }
}

async fn claim(
    lane: &mut PgConnection,
    position: &mut Position,
    batch: u32,
) -> Result<(Vec<i64>, Vec<Stamp>)> {
    let rows = sqlx::query(CLAIM)
        .bind(ROUTE)
        .bind(position.place)
        .bind(position.id)
        .bind(i64::from(batch))
        .fetch_all(lane)
        .await?;
    let mut ids = Vec::with_capacity(rows.len());
    let mut stamps = Vec::with_capacity(rows.len());
    for row in &rows {
        let (id, place): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if (place, id) > (position.place, position.id) {
            *position = Position { place, id };
        }
        ids.push(id);
        stamps.push(serde_json::from_str(row.try_get(2)?)?);
    }
    Ok((ids, stamps))
}

async fn complete(lane: &mut PgConnection, mut ids: Vec<i64>) -> Result<()> {
    if !ids.is_empty() {
        ids.sort_unstable();
        sqlx::query(COMPLETE).bind(ids).execute(lane).await?;
    }
    Ok(())
}

const START: Position = Position { place: i64::MIN, id: i64::MIN };

#[async_trait]
impl Floor for PostgresFloor {
    async fn fill(&mut self, rows: Rows, count: u64) -> Result<()> {
        let (kind, state, due_us, finished) = match rows {
            Rows::Ready => (format!("'{KIND}'"), "ready", 0, "NULL".to_owned()),
            Rows::Finished => (format!("'{KIND}'"), "succeeded", 0, NOW.to_owned()),
            Rows::Future => {
                (format!("'{KIND}'"), "scheduled", 86_400_000_000_i64, "NULL".to_owned())
            }
            Rows::Foreign => (FOREIGN.to_owned(), "ready", 0, "NULL".to_owned()),
            Rows::Dead => (FOREIGN.to_owned(), "dead", 0, NOW.to_owned()),
        };
        let sql = format!(
            "INSERT INTO jobs.job (kind, version, min_reader, payload, state, due_at_us,
                finished_at_us, build)
            SELECT {kind}, '1.0.0', '1.0', '{{\"sent_at_ns\":0}}', '{state}',
                now.us - 1000000000 + n / 100 + {due_us}, {finished}, 'bench'
            FROM (SELECT {NOW} AS us) AS now, generate_series(1, $1::bigint) AS n"
        );
        let insert = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(i64::try_from(count)?);
        insert.execute(&mut self.connection).await?;
        if rows == Rows::Dead {
            sqlx::query(DEAD).execute(&mut self.connection).await?;
            sqlx::query(HISTORY).execute(&mut self.connection).await?;
        }
        // Neither side pays for the vacuum of what the other filled in.
        sqlx::query("VACUUM (ANALYZE) jobs.job").execute(&mut self.connection).await?;
        sqlx::query("CHECKPOINT").execute(&mut self.connection).await?;
        Ok(())
    }

    async fn enqueue(&mut self, jobs: &[Stamp]) -> Result<()> {
        let payload = |job| Ok(serde_json::to_string(job)?);
        let payloads = jobs.iter().map(payload).collect::<Result<Vec<String>>>()?;
        sqlx::query(ENQUEUE).bind(KIND).bind(payloads).fetch_all(&mut self.connection).await?;
        Ok(())
    }

    async fn drain(&mut self, batch: u32, count: u64) -> Result<Vec<Duration>> {
        let mut second = PgConnection::connect_with(&self.options).await?;
        let mut tenths = Tenths::begin(count);
        let mut position = START;
        let (mut done, mut held) = (0, Vec::new());
        while done < count {
            let completed = held.len() as u64;
            let claiming = claim(&mut self.connection, &mut position, batch);
            let completing = complete(&mut second, std::mem::take(&mut held));
            let (claimed, ()) = tokio::try_join!(claiming, completing)?;
            held = claimed.0;
            done += completed;
            tenths.note(done);
        }
        Ok(tenths.ends())
    }

    async fn pickups(&mut self, count: usize, spacing: Duration) -> Result<Vec<Duration>> {
        let pool =
            PgPoolOptions::new().max_connections(1).connect_with(self.options.clone()).await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen("jobs_bench").await?;
        let mut worker = PgConnection::connect_with(&self.options).await?;
        let producer = async {
            for _ in 0..count {
                tokio::time::sleep(spacing).await;
                let payload = serde_json::to_string(&Stamp::now())?;
                let insert = sqlx::query(NOTIFY).bind(KIND).bind(payload);
                insert.execute(&mut self.connection).await?;
            }
            Result::Ok(())
        };
        let consumer = async {
            let mut ages = Vec::new();
            while ages.len() < count {
                listener.recv().await?;
                let mut position = START;
                let (ids, stamps) = claim(&mut worker, &mut position, 10).await?;
                ages.extend(stamps.iter().filter_map(|stamp| stamp.age()));
                complete(&mut worker, ids).await?;
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
        let mut reader = PgConnection::connect_with(&self.options).await?;
        sqlx::query("BEGIN ISOLATION LEVEL REPEATABLE READ").execute(&mut reader).await?;
        sqlx::query("SELECT FROM jobs.meta").fetch_all(&mut reader).await?;
        Ok(Box::new(reader))
    }

    async fn commits(&mut self) -> Result<Option<i64>> {
        let count = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
        Ok(Some(sqlx::query_scalar(count).fetch_one(&mut self.connection).await?))
    }
}
