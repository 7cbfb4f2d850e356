//! Rows of the SQLite store that no build of ours wrote.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use jobs_core::store::{Filter, Inspect, Settled, Store, Swept};
use jobs_core::{Ending, Ladder, Route, Run, State, StoreErrorKind, transition};
use sqlite_scene::{Scene, author, claim, finish, job, register, runtime, sweep};

#[test]
fn a_row_that_is_no_text_stops_no_other() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let rows = "
            INSERT INTO jobs_job (kind, version, payload) VALUES ('mail.send', '1.0.0', '{}');
            INSERT INTO jobs_job (kind, version, payload, due_at_us)
                VALUES ('mail.send', '1.0.0', CAST(x'7b22ff227d' AS TEXT), 0);
            INSERT INTO jobs_job (kind, version, payload, priority, due_at_us)
                VALUES ('mail.send', '1.0.0', '{}', 9223372036854775807, -9223372036854775808);
            INSERT INTO jobs_job (kind, version, payload, max_failures, max_interruptions, events)
                VALUES ('mail.send', '1.0.0', '{}', -5, -5, 9223372036854775807);
            INSERT INTO jobs_job (kind, version, payload, refused_reason, refused_build, headers)
                VALUES ('mail.send', '1.0.0', '{}', CAST(x'ff' AS TEXT), CAST(x'fe' AS TEXT), '');
            INSERT INTO jobs_job (kind, version, payload, checkpoints)
                VALUES ('mail.send', '1.0.0', '{}', 9223372036854775807);
            INSERT INTO jobs_job (kind, version, payload, unique_key, state)
                VALUES ('mail.send', '1.0.0', '{}', CAST(x'ff' AS TEXT), 'running');
        ";
        sqlx::raw_sql(rows).execute(&mut scene.shell().await).await.expect("plain inserts");
        let jobs = claim(&scene.store, worker).await;
        assert_eq!(jobs.len(), 6);
        let bad = jobs.iter().find(|job| job.due_at.as_micros() == 0).expect("the payload's row");
        assert!(serde_json::from_str::<serde_json::Value>(&bad.payload).is_err());
        let settled = finish(&scene.store, worker, &jobs).await;
        assert_eq!(settled, vec![Settled::Applied(State::Succeeded); 6]);
        let all = scene.store.jobs(&Filter::default(), 100).await.expect("a listing");
        assert_eq!(all.len(), 7);
        assert_eq!(scene.store.sweep(&sweep(worker)).await.expect("a sweep").jobs.len(), 1);
    });
}

#[test]
fn values_of_a_wrong_type_do_not_get_in() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let mut shell = scene.shell().await;
        for row in [
            "INSERT INTO jobs_job (kind, version, payload) VALUES ('a', '1.0.0', x'00ff')",
            "INSERT INTO jobs_job (kind, version, payload) VALUES (NULL, '1.0.0', '{}')",
            "INSERT INTO jobs_job (kind, version, payload, due_at_us) VALUES ('a', '1', '{}', 'x')",
            "INSERT INTO jobs_job (kind, version, payload, state) VALUES ('a', '1', '{}', 'x')",
        ] {
            sqlx::query(row).execute(&mut shell).await.expect_err(row);
        }
    });
}

#[test]
fn a_route_of_the_table_is_the_route_of_the_library() {
    let parts = [
        "", ".", "..", "1", "1.", ".1", "1.2", "1.2.3", "1..2", "a\0b", "\0", "1.\0.2", "é.ü.ß",
        "1.2\0.3", "🦀", " 1.2.3 ", "'.\".;",
    ];
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let mut shell = scene.shell().await;
        for kind in ["", "a@b", "mail.send", "x\0y", "é"] {
            for version in parts {
                for reader in parts.map(Some).into_iter().chain([None]) {
                    let insert = "INSERT INTO jobs_job (kind, version, min_reader, payload)
                        VALUES (?1, ?2, ?3, '') RETURNING id";
                    let insert = sqlx::query_scalar(insert).bind(kind).bind(version).bind(reader);
                    let id: i64 = insert.fetch_one(&mut shell).await.expect("a row");
                    let route = sqlx::query_scalar("SELECT route FROM jobs_routed WHERE id = ?1");
                    let route: String =
                        route.bind(id).fetch_one(&mut shell).await.expect("a route");
                    let derived = Route::derive(kind, version, reader);
                    assert_eq!(route, derived.as_str(), "{kind:?} {version:?} {reader:?}");
                }
            }
        }
    });
}

#[test]
fn a_trigger_that_ignores_writes_fails_them_alone_and_loses_no_job() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        scene.store.enqueue(&[job("{}"), job("{}")]).await.expect("two jobs");
        let claimed = claim(&scene.store, worker).await;
        let mut shell = scene.shell().await;
        let ignore = "
            CREATE TRIGGER no_new BEFORE INSERT ON jobs_job BEGIN SELECT RAISE(IGNORE); END;
            CREATE TRIGGER no_end BEFORE UPDATE ON jobs_job BEGIN SELECT RAISE(IGNORE); END;
        ";
        sqlx::raw_sql(ignore).execute(&mut shell).await.expect("triggers");
        let error = scene.store.enqueue(&[job("{}")]).await.expect_err("it was not stored");
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
        let by = author(worker);
        let done = |job| transition(&Run::from(job), &Ending::Done, &Ladder::default(), 0);
        let done: Vec<_> = claimed.iter().map(done).collect();
        let error = scene.store.settle(&by, &done).await.expect_err("it was not written");
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
        let gone = "DROP TRIGGER no_new; DROP TRIGGER no_end";
        sqlx::raw_sql(gone).execute(&mut shell).await.expect("no triggers");
        scene.store.enqueue(&[job("{}")]).await.expect("the writer goes on");
        let settled = scene.store.settle(&by, &done).await.expect("an answer");
        assert_eq!(settled, vec![Settled::Applied(State::Succeeded); 2]);
    });
}

#[test]
fn a_job_whose_names_are_no_text_is_ended_with_a_reason_by_a_sweep() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let rows = "
            INSERT INTO jobs_job (kind, version, payload)
                VALUES (CAST(x'746573742eff' AS TEXT), '1.0.0', '{}');
            INSERT INTO jobs_job (kind, version, payload)
                VALUES ('mail.send', CAST(x'ff' AS TEXT), '{}');
            INSERT INTO jobs_job (kind, version, payload, queue)
                VALUES ('mail.send', '1.0.0', '{}', CAST(x'00ff' AS TEXT));
            INSERT INTO jobs_job (kind, version, payload) VALUES ('mail.send', '1.0.0', '{}');
            INSERT INTO jobs_job (kind, version, payload) VALUES (char(65533), '1.0.0', '{}');
        ";
        sqlx::raw_sql(rows).execute(&mut scene.shell().await).await.expect("plain inserts");
        assert_eq!(scene.store.sweep(&sweep(worker)).await.expect("a sweep"), Swept::default());
        let all = scene.store.jobs(&Filter::default(), 100).await.expect("a listing");
        let malformed = all.iter().filter(|job| {
            job.state == State::Dead && job.error_class.as_deref() == Some("malformed_version")
        });
        assert_eq!(malformed.count(), 3, "{all:#?}");
        for job in all.iter().filter(|job| job.state == State::Dead) {
            let events = scene.store.events(job.id).await.expect("a history");
            assert_eq!(events.len(), 1, "its history says it too");
        }
        assert_eq!(claim(&scene.store, worker).await.len(), 2, "the others are claimed");
    });
}
