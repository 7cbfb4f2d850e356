//! What the statements answer and how SQLite finds it: a changed plan is reviewed like code.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::fmt::Write;

use jobs_runtime::store::sqlite::STATEMENTS;
use sqlite_scene::{Scene, runtime};
use sqlx::{AssertSqlSafe, Column, Executor, Row, SqlSafeStr, Statement};

#[test]
fn every_statement_keeps_its_columns_and_its_plan() {
    let told = runtime().block_on(async {
        let scene = Scene::fresh().await;
        let mut shell = scene.shell().await;
        let mut told = String::new();
        for (name, text) in STATEMENTS {
            let prepared = (&mut shell).prepare(text.into_sql_str()).await.expect(name);
            let columns: Vec<_> = prepared.columns().iter().map(Column::name).collect();
            writeln!(told, "{name} ({})", columns.join(", ")).expect("a string takes any text");
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
            let steps = sqlx::query(explain).fetch_all(&mut shell).await.expect(name);
            let mut depths = std::collections::HashMap::from([(0, 0)]);
            for step in &steps {
                let (id, parent): (i64, i64) = (step.get("id"), step.get("parent"));
                let depth = depths.get(&parent).copied().unwrap_or(0) + 1;
                depths.insert(id, depth);
                let detail: String = step.get("detail");
                writeln!(told, "{}{detail}", "  ".repeat(depth)).expect("a string takes any text");
            }
        }
        told
    });
    insta::assert_snapshot!(told);
}

#[test]
fn no_plan_of_a_worker_walks_the_whole_table() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let mut shell = scene.shell().await;
        // These answer a person about everything there is.
        let people = ["counts", "waiting"];
        for (name, text) in STATEMENTS.iter().filter(|(name, _)| !people.contains(name)) {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
            for step in sqlx::query(explain).fetch_all(&mut shell).await.expect(name) {
                let detail: String = step.get("detail");
                assert!(!["SCAN jobs_job", "SCAN job"].contains(&detail.as_str()), "{name}");
            }
        }
    });
}
