//! Rows that a trigger, a constraint or a foreign key of others lets nobody write: they hold up no other.
#![cfg(feature = "postgres")]

mod postgres_support;

use std::time::Duration;

use jobs_core::store::conformance::Subject;
use jobs_core::store::{
    Author, Claim, Claimed, NewWorker, Promoted, Retention, Store, Sweep, Swept,
};
use jobs_core::{
    Budget, BuildId, Due, JobId, Kind, Lease, MinReader, NewJob, OnConflict, Priority, QueueName,
    Route, State, StoreErrorKind, UniqueWhile, Version, WorkerId, WorkerName,
};

use postgres_support::{TestStore, with_store};

/// How long a test waits for what takes a second or two.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_row_that_a_trigger_refuses_keeps_a_sweep_from_no_other() {
    with_store(async |subject| {
        let (worker, jobs) = running(&subject, 7).await;
        subject.advance(Duration::from_mins(2)).await;
        refuse(&subject, "BEFORE UPDATE", jobs[3]).await;
        let swept = sweep(&subject).await;
        assert_eq!(swept.workers, [worker], "its lease is ended");
        assert_eq!(taken(&swept), all_but(&jobs, &[jobs[3]]));
        assert_eq!(sweep(&subject).await, Swept::default(), "what is left is stepped over");
        let dead = "SELECT count(*) FROM {schema}.worker WHERE is_taken_back";
        assert_eq!(subject.number(dead).await, 1);
        relent(&subject).await;
        until("a sweep comes back for it", async || taken(&sweep(&subject).await) == [jobs[3]])
            .await;
    });
}

#[test]
fn a_constraint_that_speaks_at_the_commit_keeps_a_sweep_from_no_other() {
    with_store(async |subject| {
        let (worker, jobs) = running(&subject, 4).await;
        subject.advance(Duration::from_mins(2)).await;
        subject.sql(&function("P0001")).await;
        let trigger = format!(
            "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON {{schema}}.job \
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
             WHEN (OLD.id = {}) EXECUTE FUNCTION {{schema}}.refuse()",
            jobs[0]
        );
        subject.sql(&trigger).await;
        let swept = sweep(&subject).await;
        assert_eq!((swept.workers.as_slice(), taken(&swept)), (&[worker][..], jobs[1..].to_vec()));
    });
}

/// The history of a job is written with its row.
#[test]
fn an_event_that_is_refused_keeps_a_sweep_from_no_other() {
    with_store(async |subject| {
        let (_, jobs) = running(&subject, 3).await;
        subject.advance(Duration::from_mins(2)).await;
        subject.sql(&function("P0001")).await;
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON {{schema}}.event FOR EACH ROW \
             WHEN (NEW.job_id = {}) EXECUTE FUNCTION {{schema}}.refuse()",
            jobs[1]
        );
        subject.sql(&trigger).await;
        assert_eq!(taken(&sweep(&subject).await), [jobs[0], jobs[2]]);
        let states = "SELECT count(*) FROM {schema}.job WHERE state = 'running'";
        assert_eq!(subject.number(states).await, 1, "nothing of it is written");
    });
}

#[test]
fn where_every_row_is_refused_a_sweep_ends_the_lease_all_the_same() {
    with_store(async |subject| {
        let (worker, jobs) = running(&subject, 50).await;
        subject.advance(Duration::from_mins(2)).await;
        refuse(&subject, "BEFORE UPDATE", jobs[0]).await;
        subject.sql("ALTER TABLE {schema}.job DISABLE TRIGGER refuse").await;
        let all = "CREATE TRIGGER refuse_all BEFORE UPDATE ON {schema}.job FOR EACH ROW \
                   EXECUTE FUNCTION {schema}.refuse()";
        subject.sql(all).await;
        let swept = sweep(&subject).await;
        assert_eq!((swept.workers, swept.jobs), (vec![worker], vec![]));
        let again = Sweep { by: author(), grace: Duration::ZERO, limit: 1000, draw: 7 };
        let error = subject.store.sweep(&again).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        subject.sql("DROP TRIGGER refuse_all ON {schema}.job").await;
        let mut left = jobs;
        until("all are taken back", async || {
            let swept = taken(&sweep(&subject).await);
            left.retain(|job| !swept.contains(job));
            left.is_empty()
        })
        .await;
    });
}

#[test]
fn a_row_that_a_trigger_refuses_keeps_no_other_from_its_promotion() {
    with_store(async |subject| {
        let jobs = enqueue(&subject, 5, Due::In(Duration::from_secs(1)), None).await;
        subject.advance(Duration::from_mins(1)).await;
        refuse(&subject, "BEFORE UPDATE", jobs[2]).await;
        let promoted = subject.store.promote(3).await.unwrap();
        assert_eq!(promoted.count, 3, "as many as were asked for");
        let Promoted { count, next_in } = subject.store.promote(3).await.unwrap();
        assert_eq!(count, 1);
        let next_in = next_in.expect("it is tried again");
        assert!(!next_in.is_zero() && next_in <= Duration::from_secs(1), "{next_in:?}");
        let later = enqueue(&subject, 1, Due::In(Duration::from_mins(10)), None).await;
        let promoted = subject.store.promote(3).await.unwrap();
        assert_eq!(promoted.count, 0);
        subject.advance(Duration::from_mins(11)).await;
        assert_eq!(subject.store.promote(3).await.unwrap().count, 1, "job {}", later[0]);
        relent(&subject).await;
        until("it is promoted", async || subject.store.promote(3).await.unwrap().count == 1).await;
        let ready = "SELECT count(*) FROM {schema}.job WHERE state = 'ready'";
        assert_eq!(subject.number(ready).await, 6);
        assert_eq!(subject.store.promote(3).await.unwrap(), Promoted::default());
    });
}

#[test]
fn where_every_row_is_refused_a_promotion_says_so() {
    with_store(async |subject| {
        let jobs = enqueue(&subject, 20, Due::In(Duration::from_secs(1)), None).await;
        subject.advance(Duration::from_mins(1)).await;
        refuse(&subject, "BEFORE UPDATE", jobs[0]).await;
        let all = "CREATE TRIGGER refuse_all BEFORE UPDATE ON {schema}.job FOR EACH ROW \
                   EXECUTE FUNCTION {schema}.refuse()";
        subject.sql(all).await;
        let error = subject.store.promote(100).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert!(format!("{error:?}").ends_with("refused it: not this one"), "{error:?}");
    });
}

#[test]
fn a_row_that_a_trigger_refuses_keeps_no_other_from_its_recall_or_its_end() {
    with_store(async |subject| {
        let refused = enqueue(&subject, 4, Due::In(Duration::from_hours(9)), None).await;
        subject.sql("UPDATE {schema}.job SET refused_reason = 'newer', refused_build = 'b'").await;
        refuse(&subject, "BEFORE UPDATE", refused[1]).await;
        let routes = [Route::from_store("mail.send@1.0")];
        assert_eq!(subject.store.recall(&routes, 10).await.unwrap(), 3);
        assert_eq!(subject.store.recall(&routes, 10).await.unwrap(), 0);
        subject.sql("DELETE FROM {schema}.job").await;
        subject.sql("DROP FUNCTION {schema}.refuse CASCADE").await;
        let in_time = Some(Duration::from_secs(1));
        let expired = enqueue(&subject, 4, Due::Unchanged, in_time).await;
        subject.advance(Duration::from_mins(1)).await;
        refuse(&subject, "BEFORE UPDATE", expired[3]).await;
        assert_eq!(subject.store.expire(10).await.unwrap(), 3);
        let told = "SELECT count(*) FROM {schema}.event WHERE class = 'expired'";
        assert_eq!(subject.number(told).await, 3, "each with its line of history");
        relent(&subject).await;
        until("it is ended", async || subject.store.expire(10).await.unwrap() == 1).await;
    });
}

/// Of an application that keeps the job's number beside what it did.
#[test]
fn a_foreign_key_of_others_keeps_a_prune_from_no_other_row() {
    with_store(async |subject| {
        let jobs = enqueue(&subject, 6, Due::Unchanged, None).await;
        let end = "UPDATE {schema}.job SET state = 'succeeded', finished_at_us = due_at_us";
        subject.sql(end).await;
        subject
            .sql("CREATE TABLE {schema}.invoice (job bigint REFERENCES {schema}.job (id))")
            .await;
        for job in [jobs[0], jobs[4]] {
            subject.sql(&format!("INSERT INTO {{schema}}.invoice VALUES ({job})")).await;
        }
        subject.advance(Duration::from_hours(48)).await;
        assert_eq!(subject.store.prune(Retention::default(), 3).await.unwrap(), 3);
        assert_eq!(subject.store.prune(Retention::default(), 3).await.unwrap(), 1);
        assert_eq!(subject.number("SELECT count(*) FROM {schema}.job").await, 2);
        subject.sql("DROP TABLE {schema}.invoice").await;
        let mut left = 2;
        until("the others are pruned", async || {
            left -= subject.store.prune(Retention::default(), 3).await.unwrap();
            left == 0
        })
        .await;
    });
}

/// However many there are, and wherever: of an application that refers to most of its jobs.
#[test]
fn refused_rows_that_stand_together_hold_up_no_other_for_ever() {
    with_store(async |subject| {
        let jobs = enqueue(&subject, 140, Due::Unchanged, None).await;
        finish_and_refer(&subject, jobs[..20].iter().chain(&jobs[120..])).await;
        subject.advance(Duration::from_hours(48)).await;
        until("all others are pruned", async || {
            // A call that meets nothing but such rows says so.
            drop(subject.store.prune(Retention::default(), 1_000).await);
            subject.number("SELECT count(*) FROM {schema}.job").await == 40
        })
        .await;
    });
}

#[test]
fn refused_rows_that_stand_together_keep_no_other_from_its_promotion() {
    with_store(async |subject| {
        let jobs = enqueue(&subject, 140, Due::In(Duration::from_secs(1)), None).await;
        subject.advance(Duration::from_mins(1)).await;
        subject.sql(&function("P0001")).await;
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE UPDATE ON {{schema}}.job FOR EACH ROW \
             WHEN (OLD.id NOT BETWEEN {} AND {}) EXECUTE FUNCTION {{schema}}.refuse()",
            jobs[20], jobs[119]
        );
        subject.sql(&trigger).await;
        let mut promoted = 0;
        until("all others are promoted", async || {
            promoted += subject.store.promote(1_000).await.map_or(0, |promoted| promoted.count);
            promoted == 100
        })
        .await;
    });
}

#[test]
fn a_row_that_is_refused_keeps_no_worker_from_being_forgotten() {
    with_store(async |subject| {
        let jobs = enqueue(&subject, 20, Due::Unchanged, None).await;
        finish_and_refer(&subject, &jobs).await;
        let worker = NewWorker {
            name: WorkerName::new("w").unwrap(),
            build: BuildId::new("shop 1").unwrap(),
            manifest: "{}".to_owned(),
            lease: Lease::default(),
        };
        subject.store.register(&worker).await.unwrap();
        subject.sql("UPDATE {schema}.worker SET ended_at_us = expires_at_us").await;
        subject.advance(Duration::from_hours(24 * 31)).await;
        let error = subject.store.prune(Retention::default(), 1_000).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert_eq!(subject.number("SELECT count(*) FROM {schema}.worker").await, 0);
    });
}

/// Ends all jobs; to these an application refers.
async fn finish_and_refer(subject: &TestStore, jobs: impl IntoIterator<Item = &JobId>) {
    let end = "UPDATE {schema}.job SET state = 'succeeded', finished_at_us = due_at_us";
    subject.sql(end).await;
    subject.sql("CREATE TABLE {schema}.invoice (job bigint REFERENCES {schema}.job (id))").await;
    for job in jobs {
        subject.sql(&format!("INSERT INTO {{schema}}.invoice VALUES ({job})")).await;
    }
}

async fn enqueue(
    subject: &TestStore,
    count: usize,
    due: Due,
    expires_in: Option<Duration>,
) -> Vec<JobId> {
    let job = NewJob {
        queue: QueueName::default(),
        kind: Kind::new("mail.send").unwrap(),
        version: Version::new(1, 0, 0),
        min_reader: MinReader { major: 1, minor: 0 },
        payload: "{}".to_owned(),
        headers: None,
        priority: Priority::default(),
        due,
        unique_key: None,
        unique_while: UniqueWhile::default(),
        on_conflict: OnConflict::default(),
        expires_in,
        budget: Budget::default(),
        build: None,
    };
    let added = subject.store.enqueue(&vec![job; count]).await.unwrap();
    added.into_iter().map(jobs_core::store::Enqueued::id).collect()
}

fn author() -> Author {
    Author { worker: None, build: BuildId::new("shop 1").unwrap() }
}

async fn running(subject: &TestStore, count: usize) -> (WorkerId, Vec<JobId>) {
    let worker = NewWorker {
        name: WorkerName::new("w").unwrap(),
        build: BuildId::new("shop 1").unwrap(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    let worker = subject.store.register(&worker).await.unwrap();
    let jobs = enqueue(subject, count, Due::Unchanged, None).await;
    let routes = subject.store.routes(&[QueueName::default()]).await.unwrap();
    let heads: Vec<_> = routes.into_iter().map(|listed| listed.head(1000)).collect();
    let claim = Claim { worker, heads: &heads, limit: 1000 };
    match subject.store.claim(claim).await.unwrap() {
        Claimed::Jobs(runs) => assert_eq!(runs.len(), count),
        Claimed::WorkerEnded => panic!("the worker lives"),
    }
    (worker, jobs)
}

async fn sweep(subject: &TestStore) -> Swept {
    let sweep = Sweep { by: author(), grace: Duration::ZERO, limit: 1000, draw: 7 };
    subject.store.sweep(&sweep).await.unwrap()
}

fn taken(swept: &Swept) -> Vec<JobId> {
    let is_waiting = |state: State| matches!(state, State::Ready | State::Scheduled);
    assert!(swept.jobs.iter().all(|(_, state)| is_waiting(*state)), "{swept:?}");
    swept.jobs.iter().map(|(job, _)| *job).collect()
}

fn all_but(jobs: &[JobId], left_out: &[JobId]) -> Vec<JobId> {
    jobs.iter().copied().filter(|job| !left_out.contains(job)).collect()
}

fn function(code: &str) -> String {
    format!(
        "CREATE FUNCTION {{schema}}.refuse() RETURNS trigger LANGUAGE plpgsql \
         AS $$ BEGIN RAISE 'not this one' USING ERRCODE = '{code}'; END $$"
    )
}

/// From now on nobody changes the state of this job.
async fn refuse(subject: &TestStore, when: &str, job: JobId) {
    subject.sql(&function("P0001")).await;
    let trigger = format!(
        "CREATE TRIGGER refuse {when} OF state ON {{schema}}.job FOR EACH ROW \
         WHEN (OLD.id = {job}) EXECUTE FUNCTION {{schema}}.refuse()"
    );
    subject.sql(&trigger).await;
}

async fn relent(subject: &TestStore) {
    subject.sql("DROP TRIGGER refuse ON {schema}.job").await;
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let tried = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let tried = tokio::time::timeout(SOON, tried).await;
    assert!(tried.is_ok(), "waited in vain until {what}");
}
