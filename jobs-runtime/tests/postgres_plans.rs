//! Every statement of the PostgreSQL store: its columns, its plan, and that the plan does not depend
//! on what the tables held when it was made.
#![cfg(feature = "postgres")]

mod postgres_support;

use std::fmt::Write as _;

use jobs_core::store::Store;
use jobs_core::{BuildId, Lease, WorkerName};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Column, Executor, Row, SqlSafeStr, Statement, TypeInfo};

use postgres_support::{TestStore, connect, quoted, with_store};

/// What a connection of the store has set.
const SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; \
     SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; \
     SET plan_cache_mode = force_generic_plan";

/// What a look for a person has set beside.
const LOOK: &str = "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; \
     SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on; \
     SET LOCAL plan_cache_mode = force_custom_plan";

#[test]
fn every_statement_has_its_columns_and_its_plan() {
    with_store(async |subject| {
        let mut connection = connect().await;
        connection.execute(SETTINGS).await.unwrap();
        analyze(&subject).await;
        let empty = plans(&mut connection, &subject).await;
        fill(&subject).await;
        analyze(&subject).await;
        let full = plans(&mut connection, &subject).await;
        let mut text = String::new();
        for (Planned { name, when, plan }, before) in full.iter().zip(&empty) {
            if *when == "kept" {
                assert_eq!(*plan, before.plan, "{name} is planned by what the tables held");
            }
            assert!(!plan.contains("Seq Scan on job"), "{name}:\n{plan}");
            assert!(!walks_all_jobs(plan), "{name} walks all jobs:\n{plan}");
            writeln!(text, "== {name}, {when}\n{plan}").unwrap();
        }
        insta::assert_snapshot!(text);
    });
}

#[test]
fn a_claim_visits_what_it_takes_and_no_other_rows() {
    with_store(async |subject| {
        fill(&subject).await;
        // One ready job a route is for no worker here: a rollout's worth of foreign kinds.
        subject
            .sql(
                "INSERT INTO {schema}.job (kind, version, payload) \
                 SELECT 'foreign' || n % 300, '1.0.0', '{}' FROM generate_series(1, 30000) AS n",
            )
            .await;
        subject
            .sql(
                "INSERT INTO {schema}.job (kind, version, payload) \
                 SELECT 'wanted', '1.0.0', '{}' FROM generate_series(1, 100)",
            )
            .await;
        analyze(&subject).await;
        let worker = subject.store.register(&worker()).await.unwrap();
        let text = |wanted| {
            let texts = subject.store.statement_texts();
            texts.into_iter().find(|(name, ..)| *name == wanted).unwrap().2
        };
        let mut connection = connect().await;
        connection.execute(SETTINGS).await.unwrap();
        let one = sqlx::query(AssertSqlSafe(text("claim_head")))
            .bind(worker.0)
            .bind("default")
            .bind("wanted@1.0")
            .bind(i64::MIN)
            .bind(i64::MIN)
            .bind(10_i64);
        let visited = visited_by(&mut connection, &subject, one, 10, "").await;
        assert!(visited <= 30, "a claim of 10 jobs from one head visited {visited} rows");
        let two = sqlx::query(AssertSqlSafe(text("claim")))
            .bind(worker.0)
            .bind(vec!["default"; 2])
            .bind(vec!["wanted@1.0", "foreign7@1.0"])
            .bind(vec![i64::MIN; 2])
            .bind(vec![i64::MIN; 2])
            .bind(vec![10_i64; 2])
            .bind(10_i64);
        let visited = visited_by(&mut connection, &subject, two, 10, "").await;
        assert!(visited <= 50, "a claim of 10 jobs from two heads visited {visited} rows");
    });
}

/// Where a snapshot is held, nothing can be forgotten that was ready: only the look walks it.
#[test]
fn a_claim_from_where_a_look_points_walks_nothing_that_vacuum_can_not_remove() {
    const GONE: i64 = 3_000;
    with_store(async |subject| {
        let mut held = connect().await;
        run(&mut held, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1").await;
        let insert = |count: i64| {
            format!(
                "INSERT INTO {{schema}}.job (kind, version, payload) \
                 SELECT 'wanted', '1.0.0', '{{}}' FROM generate_series(1, {count})"
            )
        };
        subject.sql(&insert(GONE)).await;
        subject.sql("UPDATE {schema}.job SET state = 'succeeded'").await;
        subject.sql(&insert(10)).await;
        let worker = subject.store.register(&worker()).await.unwrap();
        let listed = subject.store.routes(&[jobs_core::QueueName::default()]).await.unwrap();
        let [ready] = &listed[..] else { panic!("one route: {listed:?}") };
        let texts = subject.store.statement_texts();
        let text = texts.into_iter().find(|(name, ..)| *name == "claim_head").unwrap().2;
        let mut connection = connect().await;
        connection.execute(SETTINGS).await.unwrap();
        let mut read = async |at_us: i64, id: i64| {
            let before = entries_read(&mut connection, &subject).await;
            let claim = sqlx::query(AssertSqlSafe(text.clone()))
                .bind(worker.0)
                .bind("default")
                .bind("wanted@1.0")
                .bind(at_us)
                .bind(id)
                .bind(10_i64);
            visited_by(&mut connection, &subject, claim, 10, "").await;
            entries_read(&mut connection, &subject).await - before
        };
        let from_the_head = read(i64::MIN, i64::MIN).await;
        assert!(from_the_head > GONE, "the dead are there to be walked: {from_the_head}");
        let from_there = read(ready.first.at_us, ready.first.job.0).await;
        assert!(from_there <= 30, "a claim of 10 jobs read {from_there} entries of the index");
        run(&mut held, "ROLLBACK").await;
    });
}

/// How many entries of the ready index were read so far, as the server counts.
async fn entries_read(connection: &mut PgConnection, subject: &TestStore) -> i64 {
    run(connection, "SELECT pg_stat_force_next_flush()").await;
    let count = "SELECT idx_tup_read FROM pg_stat_user_indexes \
                 WHERE indexrelname = 'job_ready' AND schemaname = $1";
    let row = sqlx::query(count).bind(&subject.schema).fetch_one(&mut *connection).await.unwrap();
    row.get(0)
}

/// What is stranded may be little beside much: finished jobs, and waiting ones that somebody reads.
#[test]
fn jobs_that_nobody_reads_are_found_without_a_look_at_any_other() {
    with_store(async |subject| {
        fill(&subject).await;
        let others = if std::env::var_os("JOBS_TEST_SIZE").is_some() { 1_000_000 } else { 30_000 };
        subject
            .sql(&format!(
                "INSERT INTO {{schema}}.job (kind, version, payload, state, finished_at_us) \
                 SELECT 'kind' || n % 20, '1.0.0', '{{}}', \
                 CASE WHEN n % 2 = 0 THEN 'ready' ELSE 'succeeded' END, \
                 CASE WHEN n % 2 = 1 THEN 1800000000000000 + n END \
                 FROM generate_series(1, {others}) AS n"
            ))
            .await;
        let stranded = "INSERT INTO {schema}.job (kind, version, payload, queue, state, refused_reason) \
                        SELECT 'later', '2.0.0', '{}', 'queue ' || n % 3, \
                        CASE WHEN n % 2 = 0 THEN 'ready' ELSE 'scheduled' END, 'newer' \
                        FROM generate_series(1, 100) AS n";
        subject.sql(stranded).await;
        analyze(&subject).await;
        let texts = subject.store.statement_texts();
        let text = |wanted| texts.iter().find(|(name, ..)| *name == wanted).unwrap().2.clone();
        let mut connection = connect().await;
        connection.execute(SETTINGS).await.unwrap();
        let strand = sqlx::query(AssertSqlSafe(text("strand")))
            .bind(vec!["later@2.0"])
            .bind(0_i64)
            .bind(1_000_i64)
            .bind("stranded")
            .bind("nobody read it");
        let visited = visited_by(&mut connection, &subject, strand, 100, "").await;
        assert!(visited <= 300, "ending 100 stranded jobs visited {visited} rows");
        let count = sqlx::query(AssertSqlSafe(text("count_due")));
        let count = count.bind(vec!["later@2.0", "later@3.0"]).bind(1_000_i64);
        let visited = visited_by(&mut connection, &subject, count, 2, "").await;
        assert!(visited <= 300, "counting 100 stranded jobs visited {visited} rows");
    });
}

/// What a filter binds to the statement that lists the newest jobs.
#[derive(Clone, Copy, Default)]
struct Wanted {
    state: Option<&'static str>,
    class: Option<&'static str>,
    ended_from: Option<i64>,
}

#[test]
fn a_list_of_a_rare_match_visits_what_it_finds() {
    with_store(async |subject| {
        fill(&subject).await;
        // The rare ones are the oldest, so that a walk from the newest on meets all others before.
        subject
            .sql(
                "UPDATE {schema}.job SET error_class = CASE WHEN id <= 50 THEN 'rare' ELSE 'often' \
                 END, finished_at_us = CASE WHEN id <= 50 THEN 1900000000000000 + id \
                 ELSE finished_at_us END WHERE state = 'dead'",
            )
            .await;
        subject
            .sql("UPDATE {schema}.job SET state = 'ready' WHERE state = 'running' AND id > 50")
            .await;
        analyze(&subject).await;
        let texts = subject.store.statement_texts();
        let text = texts.into_iter().find(|(name, ..)| *name == "newest").unwrap().2;
        let mut connection = connect().await;
        connection.execute(SETTINGS).await.unwrap();
        let plain = Wanted::default();
        let cases = [
            ("running", Wanted { state: Some("running"), ..plain }, 6),
            ("a class", Wanted { class: Some("rare"), ..plain }, 6),
            ("no class", Wanted { class: Some("none"), ..plain }, 0),
            (
                "ended since",
                Wanted { state: Some("dead"), ended_from: Some(1_900_000_000_000_000), ..plain },
                6,
            ),
        ];
        for (what, wanted, found) in cases {
            let list = list(AssertSqlSafe(text.clone()), wanted);
            let visited = visited_by(&mut connection, &subject, list, found, LOOK).await;
            // Of 20,000. The planner looks at a few rows too, at the ends of its histograms.
            assert!(visited <= 100, "{what}: {visited} rows visited for {found}");
        }
    });
}

fn list(
    text: AssertSqlSafe<String>,
    wanted: Wanted,
) -> sqlx::query::Query<'static, sqlx::Postgres, sqlx::postgres::PgArguments> {
    let Wanted { state, class, ended_from } = wanted;
    let (nothing, never) = (None::<String>, None::<i64>);
    sqlx::query(text)
        .bind(state)
        .bind(nothing.clone())
        .bind(nothing.clone())
        .bind(class)
        .bind(nothing.clone())
        .bind(nothing)
        .bind(never)
        .bind(never)
        .bind(ended_from)
        .bind(never)
        .bind(i64::MAX)
        .bind(101_i64)
        .persistent(false)
}

/// What looks for what a person asks: planned for its values, so there is no plan to keep.
const LOOKS: [&str; 6] = ["briefs", "counts", "jobs", "newest", "newest_briefs", "waiting"];

/// Whether a plan goes through the index of all jobs from end to end.
fn walks_all_jobs(plan: &str) -> bool {
    let lines: Vec<&str> = plan.lines().collect();
    let walks =
        |pair: &[&str]| pair[0].contains("job_pkey on job") && !pair[1].contains("Index Cond");
    lines.windows(2).any(walks) || lines.last().is_some_and(|line| line.contains("job_pkey"))
}

/// How many rows of the jobs' table a statement fetches; it is undone.
async fn visited_by(
    connection: &mut PgConnection,
    subject: &TestStore,
    statement: sqlx::query::Query<'_, sqlx::Postgres, sqlx::postgres::PgArguments>,
    takes: usize,
    settings: &str,
) -> i64 {
    run(connection, &format!("BEGIN; {settings}")).await;
    assert_eq!(statement.fetch_all(&mut *connection).await.unwrap().len(), takes);
    let counts = "SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_xact_user_tables \
                  WHERE relname = 'job' AND schemaname = $1";
    let row = sqlx::query(counts).bind(&subject.schema).fetch_one(&mut *connection).await.unwrap();
    run(connection, "ROLLBACK").await;
    row.get(0)
}

fn worker() -> jobs_core::store::NewWorker {
    jobs_core::store::NewWorker {
        name: WorkerName::new("w").unwrap(),
        build: BuildId::new("b").unwrap(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    }
}

/// Lets the planner know what every table holds.
async fn analyze(subject: &TestStore) {
    for table in tables(subject).await {
        subject.sql(&format!("VACUUM ANALYZE {{schema}}.{table}")).await;
    }
}

async fn tables(subject: &TestStore) -> Vec<String> {
    let names = "SELECT tablename::text FROM pg_tables WHERE schemaname = $1 ORDER BY tablename";
    let names = sqlx::query_scalar(names).bind(&subject.schema).fetch_all(&subject.outside).await;
    names.unwrap()
}

/// Some jobs of each state, as a busy week leaves them.
async fn fill(subject: &TestStore) {
    let sql = "INSERT INTO {schema}.job (kind, version, payload, state, due_at_us, finished_at_us, \
               claim_number, worker_id, unique_key) \
               SELECT 'kind' || n % 20, '1.' || n % 3 || '.0', '{\"n\": 1}', \
               (ARRAY['ready', 'scheduled', 'succeeded', 'succeeded', 'succeeded', 'dead', \
               'cancelled', 'running'])[1 + n % 8], 1800000000000000 + n, \
               CASE WHEN n % 8 BETWEEN 2 AND 6 THEN 1800000000000000 + n END, 1, \
               CASE WHEN n % 8 = 7 THEN n % 7 END, CASE WHEN n % 5 = 0 THEN 'key' || n END \
               FROM generate_series(1, 20000) AS n";
    subject.sql(sql).await;
    subject
        .sql(
            "INSERT INTO {schema}.worker (lease_us, started_at_us, expires_at_us, phase, name, \
             build, manifest) SELECT 1, 1, 9000000000000000, 'working', 'w', 'b', '{}' \
             FROM generate_series(1, 7)",
        )
        .await;
    subject
        .sql(
            "INSERT INTO {schema}.checkpoint (job_id, number, version, text) \
             SELECT id, 1, '1.0.0', '{}' FROM {schema}.job WHERE id % 10 = 0",
        )
        .await;
    for sql in BESIDE_JOBS {
        subject.sql(sql).await;
    }
    for table in tables(subject).await {
        let rows = subject.number(&format!("SELECT count(*) FROM {{schema}}.{table}")).await;
        assert!(rows > 0, "{table} is empty");
    }
}

/// What stands beside the jobs of such a week.
const BESIDE_JOBS: [&str; 8] = [
    "INSERT INTO {schema}.event (job_id, slot, number, at_us, claim_number, kind, class, text) \
     SELECT job.id, n, n, 1800000000000000 + n, 1, 'failed', 'error', 'no' \
     FROM {schema}.job AS job CROSS JOIN generate_series(1, 3) AS n WHERE job.id % 10 = 1",
    "INSERT INTO {schema}.cancel_request (job_id, claim_number) \
     SELECT id, claim_number FROM {schema}.job WHERE id % 400 = 7",
    "INSERT INTO {schema}.abandoned (job_id, claim_number) \
     SELECT id, claim_number FROM {schema}.job WHERE id % 400 = 15",
    "INSERT INTO {schema}.pause (queue, paused_by, reason, paused_at_us) \
     SELECT 'paused' || n, 'ann', 'away', 1800000000000000 FROM generate_series(1, 5) AS n",
    "INSERT INTO {schema}.build (build, fingerprint, seen_at_us, manifest) \
     SELECT 'shop ' || n, n, 1800000000000000, '{}' FROM generate_series(1, 100) AS n",
    "INSERT INTO {schema}.duty (name, worker_id) SELECT 'duty' || n, n FROM generate_series(1, 3) AS n",
    "INSERT INTO {schema}.schedule (name, next_at_us, last_at_us, text) \
     SELECT 'schedule' || n, 1800000000000000 + n, 1800000000000000, '{}' \
     FROM generate_series(1, 200) AS n",
    "WITH declared AS ( \
         INSERT INTO {schema}.schedule_declaration (schedule, worker_id, since_us, text) \
         SELECT 'schedule' || n, worker, 1800000000000000, '{}' \
         FROM generate_series(1, 200) AS n CROSS JOIN generate_series(0, 7) AS worker \
     ) \
     INSERT INTO {schema}.schedule_tick (schedule, at_us, job_id) \
     SELECT 'schedule' || n, 1800000000000000 + tick, n \
     FROM generate_series(1, 200) AS n CROSS JOIN generate_series(1, 20) AS tick",
];

struct Planned {
    name: &'static str,
    when: &'static str,
    plan: String,
}

async fn plans(connection: &mut PgConnection, subject: &TestStore) -> Vec<Planned> {
    let mut plans = Vec::new();
    for (name, when, sql) in subject.store.statement_texts() {
        let prepared = connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await;
        let prepared = prepared.unwrap_or_else(|error| panic!("{name} is not valid: {error}"));
        let columns = prepared.columns().iter();
        let columns: Vec<_> =
            columns.map(|c| format!("{} {}", c.name(), c.type_info().name())).collect();
        let most = (1..=20).rev().find(|nth| sql.contains(&format!("${nth}"))).unwrap_or(0);
        let nulls = vec!["NULL"; most].join(", ");
        let arguments = if most == 0 { String::new() } else { format!("({nulls})") };
        run(connection, &format!("PREPARE asked AS {sql}")).await;
        let rows =
            sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN (COSTS OFF) EXECUTE asked{arguments}")))
                .fetch_all(&mut *connection)
                .await
                .unwrap_or_else(|error| panic!("{name} has no plan: {error}"));
        run(connection, "DEALLOCATE asked").await;
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = lines.join("\n").replace(&quoted(&subject.schema), "{schema}");
        let plan = plan.replace(&quoted(&subject.schema).replace('"', "\"\""), "{schema}");
        let plan = if LOOKS.contains(&name) { "planned for its values".to_owned() } else { plan };
        let plan = format!("columns: {}\n{plan}", columns.join(", "));
        plans.push(Planned { name, when, plan });
    }
    plans
}

async fn run(connection: &mut PgConnection, sql: &str) {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
}
