//! Rows that no build of ours wrote: a person or another language put them there by SQL.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{JobId, JobRecord, State};

use crate::support::{Act, App, Fresh, Running, act, ended, open_sqlite, sized, until, worker};

async fn run(_: Act, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}

/// Inserts a row whose columns are SQL expressions.
async fn plant(jobs: &Fresh, columns: &str, values: &str) -> Result<JobId, sqlx::Error> {
    let insert = format!("INSERT INTO jobs_job ({columns}) VALUES ({values})");
    let planted = sqlx::query(sqlx::AssertSqlSafe(insert)).execute(&mut jobs.shell().await).await;
    planted.map(|planted| JobId(planted.last_insert_rowid()))
}

fn good(record: &JobRecord) -> bool {
    record.state == State::Succeeded
}

fn dead(class: &str, record: &JobRecord) -> bool {
    record.state == State::Dead && record.error_class.as_deref() == Some(class)
}

fn refused(reason: &str, record: &JobRecord) -> bool {
    record.refused.as_ref().is_some_and(|refused| refused.reason == reason)
        && record.counters.failures == 0
}

#[tokio::test]
async fn good_rows_run_and_bad_ones_are_parked_with_a_reason() {
    type Wanted = fn(&JobRecord) -> bool;
    let malformed: Wanted = |record| dead("malformed_payload", record);
    let no_version: Wanted = |record| dead("malformed_version", record);
    let unknown: Wanted = |record| refused("unknown_kind", record);
    let newer: Wanted = |record| refused("newer", record);
    let good: Wanted = good;
    let fine = r#"'{"how":""}'"#;
    let rows: [(&str, &str, &str, Wanted); 21] = [
        ("'test.act'", "'1.0.0'", fine, good),
        ("'test.act'", "'1.0.0'", "'{\"how\":'", malformed),
        ("'test.act'", "'1.0.0'", "''", malformed),
        ("'test.act'", "'1.0.0'", "'null'", malformed),
        ("'test.act'", "'1.0.0'", r#"'{"how":"\ud800"}'"#, malformed),
        ("'test.act'", "'1.0.0'", r#"'{"how":7}'"#, malformed),
        ("'test.act'", "'1.0.0'", "CAST(x'7b22686f77223a22ff227d' AS TEXT)", malformed),
        ("'test.act'", "'1.0.0'", r#"'{"how":""}' || char(0)"#, malformed),
        ("'test.act'", "'1.0.0'", fine, good),
        ("''", "'1.0.0'", fine, unknown),
        ("'test.other'", "'1.0.0'", fine, unknown),
        ("'test.act' || char(0)", "'1.0.0'", fine, unknown),
        ("' test.act'", "'1.0.0'", fine, unknown),
        ("'test.act'", "'1.1.0'", fine, newer),
        ("'test.act'", "'2.0.0'", fine, newer),
        ("'test.act'", "''", fine, no_version),
        ("'test.act'", "'1'", fine, no_version),
        ("'test.act'", "'one.two.three'", fine, no_version),
        ("'test.act'", "CAST(x'312e302eff' AS TEXT)", fine, no_version),
        ("'test.act'", "'1.0.99999999999999999999'", fine, no_version),
        ("'test.act'", "'1.0.0'", fine, good),
    ];
    let jobs = open_sqlite().await;
    let mut planted = Vec::new();
    for (kind, version, payload, wanted) in rows {
        let values = format!("{kind}, {version}, {payload}");
        let id = plant(&jobs, "kind, version, payload", &values).await.unwrap();
        planted.push((id, values, wanted));
    }
    let handlers = Registry::new().handle(run).build().unwrap();
    let app = App::default();
    let running = Running::start(worker(&jobs, handlers, app.clone()));
    let mut unlike = Vec::new();
    for (id, values, wanted) in planted {
        let waiting = until(&jobs, id, wanted);
        if tokio::time::timeout(Duration::from_secs(5), waiting).await.is_err() {
            unlike.push((values, jobs.job(id).await.unwrap().unwrap()));
        }
    }
    assert!(unlike.is_empty(), "{unlike:#?}");
    // Every loop still turns: what is enqueued now runs, also by way of the schedule.
    for delay in [0, 100] {
        let delay = Duration::from_millis(delay);
        let id = jobs.enqueue(act("")).delay(delay).await.unwrap().id();
        assert!(good(&ended(&jobs, id).await));
    }
    running.stop().await;
    assert_eq!(app.count(), 5);
}

#[tokio::test]
async fn odd_columns_beside_a_good_payload_keep_no_job_from_running() {
    let odd = [
        ("headers", "'{'"),
        ("headers", "'[1]'"),
        ("headers", "''"),
        ("headers", "CAST(x'ff' AS TEXT)"),
        ("unique_key", "''"),
        ("unique_key", "'a' || char(0)"),
        ("unique_key", "CAST(x'ff' AS TEXT)"),
        ("build", "CAST(x'ff' AS TEXT)"),
        ("refused_reason", "CAST(x'ff' AS TEXT)"),
        ("error_text", "CAST(x'ff' AS TEXT)"),
        ("priority", "9223372036854775807"),
        ("priority", "-9223372036854775808"),
        ("due_at_us", "-9223372036854775808"),
        ("due_at_us", "9223372036854775807"),
        ("enqueued_at_us", "-9223372036854775808"),
        ("max_failures", "-5"),
        ("max_interruptions", "-5"),
        ("failures", "-9223372036854775808"),
        ("checkpoints", "7"),
        ("events", "9223372036854775807"),
        ("events", "-9223372036854775808"),
        ("worker_id", "77"),
        ("min_reader", "'1.0'"),
    ];
    let jobs = open_sqlite().await;
    let mut planted = Vec::new();
    for (column, value) in odd {
        let columns = format!("kind, version, payload, {column}");
        let values = format!(r#"'test.act', '1.0.0', '{{"how":""}}', {value}"#);
        planted.push((plant(&jobs, &columns, &values).await.unwrap(), column, value));
    }
    let handlers = Registry::new().handle(run).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    for (id, column, value) in planted {
        let record = ended(&jobs, id).await;
        assert!(good(&record), "{column} = {value}: {record:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn the_schema_takes_no_blob_no_null_and_no_unknown_state() {
    let jobs = open_sqlite().await;
    for values in [
        "'test.act', '1.0.0', x'7b7d'",
        "'test.act', x'ff', '{}'",
        "NULL, '1.0.0', '{}'",
        "'test.act', NULL, '{}'",
        "'test.act', '1.0.0', NULL",
    ] {
        let refused = plant(&jobs, "kind, version, payload", values).await;
        assert!(refused.is_err(), "{values}");
    }
    let columns = "kind, version, payload, state";
    let refused = plant(&jobs, columns, "'test.act', '1.0.0', '{}', 'asleep'").await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn counters_at_their_maximum_stop_no_other_job() {
    let jobs = open_sqlite().await;
    let most = "9223372036854775807";
    let columns = "kind, version, payload, claim_number, failures, interruptions, crashes, \
                   refusals, snoozes, events, checkpoints";
    let values = format!(
        r#"'test.act', '1.0.0', '{{"how":""}}', {most}, {most}, {most}, {most}, {most}, {most},
           {most}, {most}"#
    );
    let full = plant(&jobs, columns, &values).await.unwrap();
    let values = values.replacen(most, "0", 1);
    let nearly = plant(&jobs, columns, &values).await.unwrap();
    let others = jobs.enqueue_all((0..100).map(|_| act(""))).await.unwrap();
    let handlers = Registry::new().handle(run).build().unwrap();
    let running = Running::start(worker(&jobs, handlers, App::default()));
    for other in others {
        assert!(good(&ended(&jobs, other.id()).await));
    }
    assert!(dead("claim_numbers_exhausted", &ended(&jobs, full).await));
    assert!(good(&ended(&jobs, nearly).await));
    running.stop().await;
}

#[tokio::test]
async fn snoozing_without_end_costs_no_failure_and_no_backoff() {
    let snoozes = sized(150, 40_000);
    let snooze = move |_: Act, cx: JobContext<App>| async move {
        cx.state.ran();
        if cx.state.count() <= snoozes {
            return Ok(Outcome::Snooze(Duration::ZERO));
        }
        Err(JobError::new("at last").retry_in(Duration::ZERO))
    };
    let jobs = open_sqlite().await;
    let columns = "kind, version, payload, snoozes";
    let values = r#"'test.act', '1.0.0', '{"how":""}', 32700"#;
    let id = plant(&jobs, columns, values).await.unwrap();
    let handlers = Registry::new().handle(snooze).build().unwrap();
    let app = App::default();
    let running = Running::start(worker(&jobs, handlers, app.clone()));
    let record = until(&jobs, id, |record| record.counters.failures > 0).await;
    assert_eq!(record.counters.failures, 1);
    assert_eq!(usize::try_from(record.counters.snoozes).unwrap(), 32_700 + snoozes);
    running.stop().await;
}
