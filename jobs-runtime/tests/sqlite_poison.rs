//! Rows that a trigger or a foreign key of others lets nobody write: they hold up no other.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use std::time::Duration;

use jobs_core::store::{Enqueued, Promoted, Retention, Store, Swept};
use jobs_core::{Due, JobId, NewJob, Route, StoreErrorKind};
use sqlx::AssertSqlSafe;

use sqlite_scene::{Scene, claim, job, register, runtime, sweep};

/// After it, every row is tried again.
const LONG: Duration = Duration::from_mins(1);

#[test]
fn a_row_that_a_trigger_refuses_keeps_a_sweep_from_no_other() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let (dead, jobs) = dead_worker(&scene, 7).await;
        refuse(&scene, &format!("BEFORE UPDATE OF state ON jobs_job WHEN OLD.id = {}", jobs[3]))
            .await;
        let swept = scene.store.sweep(&sweep(worker)).await.expect("a sweep");
        assert_eq!(swept.workers, [dead], "its lease is ended");
        assert_eq!(taken(&swept), all_but(&jobs, jobs[3]));
        let swept = scene.store.sweep(&sweep(worker)).await.expect("a sweep");
        assert_eq!(swept, Swept::default(), "what is left is stepped over");
        relent(&scene).await;
        scene.clock.advance(LONG);
        let swept = scene.store.sweep(&sweep(worker)).await.expect("a sweep");
        assert_eq!(taken(&swept), [jobs[3]]);
    });
}

/// The history of a job is written with its row.
#[test]
fn an_event_that_is_refused_keeps_a_sweep_from_no_other() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let (_, jobs) = dead_worker(&scene, 3).await;
        let when = format!("BEFORE INSERT ON jobs_event WHEN NEW.job_id = {}", jobs[1]);
        refuse(&scene, &when).await;
        let swept = scene.store.sweep(&sweep(worker)).await.expect("a sweep");
        assert_eq!(taken(&swept), [jobs[0], jobs[2]]);
        let running = "SELECT count(*) FROM jobs_job WHERE state = 'running'";
        assert_eq!(number(&scene, running).await, 1, "nothing of it is written");
    });
}

#[test]
fn a_row_that_a_trigger_refuses_keeps_no_other_from_its_promotion() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let later = |seconds| Due::In(Duration::from_secs(seconds));
        let jobs = enqueue(&scene, 5, later(1)).await;
        scene.clock.advance(Duration::from_secs(2));
        let when = format!("BEFORE UPDATE OF state ON jobs_job WHEN OLD.id = {}", jobs[2]);
        refuse(&scene, &when).await;
        let promoted = scene.store.promote(3).await.expect("a promotion");
        assert_eq!(promoted.count, 3, "as many as were asked for");
        let promoted = scene.store.promote(3).await.expect("a promotion");
        let first_pause = Some(Duration::from_secs(1));
        assert_eq!(promoted, Promoted { count: 1, next_in: first_pause });
        assert_eq!(scene.store.promote(3).await.expect("none").next_in, first_pause);
        enqueue(&scene, 1, later(600)).await;
        scene.clock.advance(Duration::from_secs(601));
        assert_eq!(scene.store.promote(3).await.expect("a promotion").count, 1);
        relent(&scene).await;
        scene.clock.advance(LONG);
        let promoted = scene.store.promote(3).await.expect("a promotion");
        assert_eq!(promoted, Promoted { count: 1, next_in: None });
    });
}

#[test]
fn where_every_row_is_refused_a_promotion_says_so() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        enqueue(&scene, 20, Due::In(Duration::from_secs(1))).await;
        scene.clock.advance(Duration::from_secs(2));
        refuse(&scene, "BEFORE UPDATE ON jobs_job").await;
        let error = scene.store.promote(100).await.expect_err("a refusal");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert!(format!("{error:?}").contains("not this one"), "{error:?}");
    });
}

#[test]
fn a_row_that_a_trigger_refuses_keeps_no_other_from_its_recall_or_its_end() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let refused = enqueue(&scene, 4, Due::In(Duration::from_hours(9))).await;
        run(&scene, "UPDATE jobs_job SET refused_reason = 'newer', refused_build = 'b'").await;
        let when = |job| format!("BEFORE UPDATE OF state ON jobs_job WHEN OLD.id = {job}");
        refuse(&scene, &when(refused[1])).await;
        let routes = [Route::from_store("mail.send@1.0")];
        assert_eq!(scene.store.recall(&routes, 10).await.expect("a recall"), 3);
        assert_eq!(scene.store.recall(&routes, 10).await.expect("a recall"), 0);
        relent(&scene).await;
        run(&scene, "DELETE FROM jobs_job").await;
        let in_time = NewJob { expires_in: Some(Duration::from_secs(1)), ..job("{}") };
        let expired = scene.store.enqueue(&vec![in_time; 4]).await.expect("four jobs");
        scene.clock.advance(LONG);
        refuse(&scene, &when(expired[3].id())).await;
        assert_eq!(scene.store.expire(10).await.expect("an end"), 3);
        let told = "SELECT count(*) FROM jobs_event WHERE class = 'expired'";
        assert_eq!(number(&scene, told).await, 3, "each with its line of history");
        relent(&scene).await;
        scene.clock.advance(LONG);
        assert_eq!(scene.store.expire(10).await.expect("an end"), 1);
    });
}

/// Of an application that keeps the job's number beside what it did.
#[test]
fn a_foreign_key_of_others_keeps_a_prune_from_no_other_row() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let jobs = enqueue(&scene, 6, Due::Unchanged).await;
        run(&scene, "UPDATE jobs_job SET state = 'succeeded', finished_at_us = due_at_us").await;
        run(&scene, "CREATE TABLE invoice (job INTEGER REFERENCES jobs_job (id))").await;
        for job in [jobs[0], jobs[4]] {
            run(&scene, &format!("INSERT INTO invoice VALUES ({job})")).await;
        }
        scene.clock.advance(Duration::from_hours(48));
        let prune = async || scene.store.prune(Retention::default(), 3).await.expect("a prune");
        assert_eq!([prune().await, prune().await], [3, 1]);
        assert_eq!(number(&scene, "SELECT count(*) FROM jobs_job").await, 2);
        run(&scene, "DROP TABLE invoice").await;
        scene.clock.advance(LONG);
        assert_eq!(prune().await, 2);
    });
}

/// However many there are, and wherever: of an application that refers to most of its jobs.
#[test]
fn refused_rows_that_stand_together_hold_up_no_other_for_ever() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let jobs = enqueue(&scene, 140, Due::Unchanged).await;
        run(&scene, "UPDATE jobs_job SET state = 'succeeded', finished_at_us = due_at_us").await;
        run(&scene, "CREATE TABLE invoice (job INTEGER REFERENCES jobs_job (id))").await;
        for job in jobs[..20].iter().chain(&jobs[120..]) {
            run(&scene, &format!("INSERT INTO invoice VALUES ({job})")).await;
        }
        scene.clock.advance(Duration::from_hours(48));
        for _ in 0..10 {
            // A call that meets nothing but such rows says so.
            drop(scene.store.prune(Retention::default(), 1_000).await);
            scene.clock.advance(LONG);
        }
        assert_eq!(number(&scene, "SELECT count(*) FROM jobs_job").await, 40);
    });
}

#[test]
fn refused_rows_that_stand_together_keep_no_other_from_its_promotion() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let jobs = enqueue(&scene, 140, Due::In(Duration::from_secs(1))).await;
        let [first, last] = [jobs[20], jobs[119]];
        let when = format!(
            "BEFORE UPDATE OF state ON jobs_job WHEN OLD.id NOT BETWEEN {first} AND {last}"
        );
        refuse(&scene, &when).await;
        scene.clock.advance(Duration::from_secs(2));
        let mut promoted = 0;
        for _ in 0..10 {
            promoted += scene.store.promote(1_000).await.map_or(0, |promoted| promoted.count);
            scene.clock.advance(LONG);
        }
        assert_eq!(promoted, 100);
    });
}

#[test]
fn a_row_that_is_refused_keeps_no_worker_from_being_forgotten() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let jobs = enqueue(&scene, 20, Due::Unchanged).await;
        run(&scene, "UPDATE jobs_job SET state = 'succeeded', finished_at_us = due_at_us").await;
        run(&scene, "CREATE TABLE invoice (job INTEGER REFERENCES jobs_job (id))").await;
        scene.clock.advance(Duration::from_hours(24 * 31));
        let forgotten = async || {
            register(&scene.store).await;
            run(&scene, "UPDATE jobs_worker SET ended_at_us = 1").await;
            let pruned = scene.store.prune(Retention::default(), 1_000).await;
            (pruned.ok(), number(&scene, "SELECT count(*) FROM jobs_worker").await)
        };
        run(&scene, &format!("INSERT INTO invoice VALUES ({})", jobs[0])).await;
        assert_eq!(forgotten().await, (Some(19), 0), "in the call that meets the row");
        assert_eq!(forgotten().await, (Some(0), 0), "while it is known");
        let jobs = enqueue(&scene, 20, Due::Unchanged).await;
        run(&scene, "UPDATE jobs_job SET state = 'succeeded', finished_at_us = due_at_us").await;
        for job in jobs {
            run(&scene, &format!("INSERT INTO invoice VALUES ({job})")).await;
        }
        scene.clock.advance(Duration::from_hours(24 * 31));
        assert_eq!(forgotten().await, (None, 0), "where no row can be pruned");
    });
}

#[test]
fn where_every_row_is_refused_a_sweep_ends_the_lease_and_says_so() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let worker = register(&scene.store).await;
        let (dead, jobs) = dead_worker(&scene, 50).await;
        refuse(&scene, "BEFORE UPDATE OF state ON jobs_job").await;
        let swept = scene.store.sweep(&sweep(worker)).await.expect("an ended lease");
        assert_eq!((swept.workers, swept.jobs), (vec![dead], vec![]));
        let error = scene.store.sweep(&sweep(worker)).await.expect_err("a refusal");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        let ended = "SELECT count(*) FROM jobs_worker WHERE is_taken_back";
        assert_eq!(number(&scene, ended).await, 1);
        relent(&scene).await;
        scene.clock.advance(LONG);
        let swept = scene.store.sweep(&sweep(worker)).await.expect("a sweep");
        assert_eq!(taken(&swept), jobs);
    });
}

/// And what is known of other rows, for other reasons, has no part in it.
#[test]
fn a_promotion_comes_back_for_a_refused_row_in_no_less_than_a_tenth_of_a_second() {
    runtime().block_on(async {
        let scene = Scene::fresh().await;
        let old = enqueue(&scene, 1, Due::Unchanged).await[0];
        run(&scene, "UPDATE jobs_job SET state = 'succeeded', finished_at_us = due_at_us").await;
        run(&scene, "CREATE TABLE invoice (job INTEGER REFERENCES jobs_job (id))").await;
        run(&scene, &format!("INSERT INTO invoice VALUES ({old})")).await;
        scene.clock.advance(Duration::from_hours(48));
        assert_eq!(scene.store.prune(Retention::default(), 9).await.expect("a prune"), 0);
        let promoted = scene.store.promote(9).await.expect("a promotion");
        assert_eq!(promoted, Promoted::default(), "nothing is scheduled");
        enqueue(&scene, 1, Due::In(Duration::from_secs(1))).await;
        refuse(&scene, "BEFORE UPDATE OF state ON jobs_job").await;
        scene.clock.advance(Duration::from_secs(2));
        assert_eq!(scene.store.promote(9).await.expect("a promotion").count, 0);
        scene.clock.advance(Duration::from_millis(999));
        let promoted = scene.store.promote(9).await.expect("a promotion");
        let floor = Some(Duration::from_millis(100));
        assert_eq!(promoted, Promoted { count: 0, next_in: floor });
    });
}

async fn enqueue(scene: &Scene, count: usize, due: Due) -> Vec<JobId> {
    let added = scene.store.enqueue(&vec![NewJob { due, ..job("{}") }; count]).await;
    added.expect("the jobs are stored").into_iter().map(Enqueued::id).collect()
}

/// A worker of another process, which has ended, and the jobs that it held.
async fn dead_worker(scene: &Scene, jobs: usize) -> (jobs_core::WorkerId, Vec<JobId>) {
    let jobs = enqueue(scene, jobs, Due::Unchanged).await;
    let neighbour = scene.neighbour(2).await;
    let worker = register(&neighbour).await;
    assert_eq!(claim(&neighbour, worker).await.len(), jobs.len());
    (worker, jobs)
}

fn taken(swept: &Swept) -> Vec<JobId> {
    swept.jobs.iter().map(|(job, _)| *job).collect()
}

fn all_but(jobs: &[JobId], left_out: JobId) -> Vec<JobId> {
    jobs.iter().copied().filter(|job| *job != left_out).collect()
}

async fn run(scene: &Scene, sql: &str) {
    let ran = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut scene.shell().await).await;
    ran.expect("the test's SQL runs");
}

async fn number(scene: &Scene, sql: &str) -> i64 {
    let number = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut scene.shell().await).await;
    number.expect("the test's SQL runs")
}

async fn refuse(scene: &Scene, when: &str) {
    run(
        scene,
        &format!("CREATE TRIGGER refuse {when} BEGIN SELECT RAISE(ABORT, 'not this one'); END"),
    )
    .await;
}

async fn relent(scene: &Scene) {
    run(scene, "DROP TRIGGER refuse").await;
}
