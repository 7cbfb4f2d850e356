//! What is said of a job at its enqueue, and what its run makes of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Redrive, Redriven};
use jobs_runtime::{
    Clock, Due, Enqueued, ErrorKind, MAX_WAIT, NewJob, OnConflict, Schedule, State, SystemClock,
    TRACEPARENT, Timestamp, TraceContext, UniqueWhile,
};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Running, SCHEMES, act, ended, fresh, open, open_sqlite, until, worker};

/// What handlers noted, in order.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Notes the trace and the idempotency key of its run; may enqueue one more, or fail.
async fn note(job: Act, cx: JobContext<Notes>) -> Result<(), JobError> {
    let trace = cx.headers().get(TRACEPARENT).cloned().unwrap_or_default();
    cx.state.0.lock().unwrap().push(format!("{} {trace} {}", job.how, cx.idempotency_key()));
    match job.how.as_str() {
        "chain" => drop(cx.jobs().enqueue(act("link")).await?),
        "die" => return Err(JobError::new("as asked").permanent()),
        _ => {}
    }
    Ok(())
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn a_trace_is_carried_from_the_enqueue_to_the_runs_and_on() {
    for scheme in SCHEMES {
        let builder = Jobs::builder().trace_context(|| TRACE.parse().ok());
        let jobs = fresh(scheme, builder).await;
        let notes = Notes::default();
        let handlers = Registry::new().handle(note).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, notes.clone()));
        let first = jobs.enqueue(act("chain")).await.unwrap().id();
        ended(&jobs, first).await;
        let link = jobs_runtime::JobId(first.0 + 1);
        ended(&jobs, link).await;
        let own = jobs.enqueue(act("own")).header(TRACEPARENT, "mine").await.unwrap().id();
        ended(&jobs, own).await;
        running.stop().await;
        let noted = notes.take();
        let trace = |nth: usize| noted[nth].split(' ').nth(1).unwrap();
        assert_eq!(trace(0), TRACE);
        let (first, link): (TraceContext, TraceContext) =
            (trace(0).parse().unwrap(), trace(1).parse().unwrap());
        assert_eq!((link.trace_id, link.flags), (first.trace_id, first.flags));
        assert_ne!(link.parent_id, first.parent_id, "the run in between is a span of its own");
        assert_eq!(trace(2), "mine", "what is written is not replaced, and harms nobody");
    }
}

#[tokio::test]
async fn outside_of_any_trace_nothing_is_made_up() {
    let jobs = open_sqlite().await;
    let id = jobs.enqueue(act("plain")).await.unwrap().id();
    assert_eq!(jobs.job(id).await.unwrap().unwrap().headers, None);
}

#[tokio::test]
async fn a_redrive_keeps_the_idempotency_key_unless_a_new_one_is_asked_for() {
    for jobs in open().await {
        let notes = Notes::default();
        let handlers = Registry::new().handle(note).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, notes.clone()));
        let id = jobs.enqueue(act("die")).await.unwrap().id();
        for makes_new_key in [false, true] {
            until(&jobs, id, |record| record.state == State::Dead).await;
            let redrive = Redrive { makes_new_key, ..Redrive::default() };
            assert_eq!(jobs.operate().redrive(&[id], redrive).await.unwrap(), [Redriven::Ready]);
        }
        until(&jobs, id, |record| record.state == State::Dead && record.claim.0 == 3).await;
        running.stop().await;
        let noted = notes.take();
        let keys: Vec<_> = noted.iter().map(|note| note.rsplit(' ').next().unwrap()).collect();
        assert_eq!(keys[0], keys[1]);
        assert_eq!(keys[2], format!("{}-1", keys[0]));
    }
}

#[tokio::test]
async fn a_wait_that_would_park_a_job_for_ever_is_refused() {
    for jobs in open().await {
        let in_2170 = std::time::UNIX_EPOCH + MAX_WAIT * 20;
        for refused in [
            jobs.enqueue(act("")).delay(Duration::MAX).await,
            jobs.enqueue(act("")).delay(MAX_WAIT + Duration::from_nanos(1)).await,
            jobs.enqueue(act("")).due_at(in_2170).await,
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
        }
        jobs.enqueue(act("")).delay(MAX_WAIT).await.unwrap();
    }
}

#[tokio::test]
async fn a_job_that_no_run_could_start_of_in_time_is_refused() {
    for jobs in open().await {
        let minute = Duration::from_mins(1);
        let ago = |span: Duration| {
            let now = u64::try_from(SystemClock.now().as_micros()).unwrap();
            std::time::UNIX_EPOCH + Duration::from_micros(now) - span
        };
        let late = NewJob { expires_in: Some(minute), ..NewJob::of(&act(""), 1_024).unwrap() };
        let late = NewJob { due: Due::At(Timestamp::from(ago(minute))), ..late };
        let refused = [
            jobs.enqueue(act("")).expires_in(Duration::ZERO).await,
            jobs.enqueue(act("")).due_at(ago(minute)).expires_in(minute).await,
            jobs.enqueue(act("")).expires_in(minute).due_at(ago(minute * 2)).await,
            jobs.enqueue_new(late).await,
            jobs.enqueue_new(NewJob {
                expires_in: Some(Duration::ZERO),
                ..NewJob::of(&act(""), 1_024).unwrap()
            })
            .await,
        ];
        for refused in refused {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
            assert!(error.to_string().contains("give it a longer"), "{error}");
        }
        let hasty = NewJob {
            expires_in: Some(Duration::from_micros(999)),
            ..NewJob::of(&act(""), 1_024).unwrap()
        };
        let hourly = Schedule::of_job("hourly", "every 1h", hasty);
        let error = jobs.declare(&hourly).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
        assert!(error.to_string().contains("give it a longer"), "{error}");
        assert_eq!(jobs.inspect().counts().await.unwrap(), [], "nothing is stored");
        jobs.enqueue(act("")).due_at(ago(minute)).expires_in(minute * 2).await.unwrap();
        jobs.enqueue(act("")).due_at(ago(Duration::ZERO)).expires_in(minute).await.unwrap();
    }
}

#[tokio::test]
async fn a_text_that_no_build_could_read_is_refused() {
    for jobs in open().await {
        let deep = "[".repeat(128) + &"]".repeat(128);
        let job = NewJob { payload: deep, ..NewJob::of(&act(""), 1_024).unwrap() };
        let error = jobs.enqueue_new(job).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Payload, "{error:?}");
        assert!(format!("{error:?}").contains("nested more than 127 levels deep"), "{error:?}");
        assert_eq!(jobs.inspect().counts().await.unwrap(), [], "nothing is stored");
    }
}

#[tokio::test]
async fn a_job_that_expired_before_its_run_never_starts() {
    for jobs in open().await {
        let id = jobs.enqueue(act("late")).expires_in(Duration::from_millis(1)).await.unwrap().id();
        let in_time = act("in time");
        let other = jobs.enqueue(in_time).expires_in(Duration::from_mins(1)).await.unwrap().id();
        let notes = Notes::default();
        let handlers = Registry::new().handle(note).build().unwrap();
        // Twice as long as it may wait for its start.
        tokio::time::sleep(Duration::from_millis(2)).await;
        let running = Running::start(worker(&jobs, handlers, notes.clone()));
        let record = ended(&jobs, id).await;
        assert_eq!((record.state, record.error_class.as_deref()), (State::Dead, Some("expired")));
        assert_eq!(ended(&jobs, other).await.state, State::Succeeded);
        running.stop().await;
        assert_eq!(notes.take().len(), 1);
    }
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.sync", version = "1.0.0", unique("order"))]
struct Sync {
    order: u32,
    memo: String,
}

#[tokio::test]
async fn jobs_with_equal_fields_wait_once_also_in_bulk() {
    for jobs in open().await {
        let sync = |order, memo: &str| Sync { order, memo: memo.to_owned() };
        let first = jobs.enqueue(sync(1, "a")).await.unwrap();
        let many = [sync(1, "b"), sync(2, "c"), sync(2, "d")];
        let answers = jobs.enqueue_all(many).on_conflict(OnConflict::Replace).await.unwrap();
        assert_eq!(answers[0], Enqueued::AlreadyThere(first.id()));
        assert!(matches!(answers[1], Enqueued::Added(_)));
        assert_eq!(answers[2], Enqueued::AlreadyThere(answers[1].id()));
        let payload = async |id| jobs.job(id).await.unwrap().unwrap().payload;
        assert_eq!(payload(first.id()).await, r#"{"order":1,"memo":"b"}"#);
        assert_eq!(payload(answers[1].id()).await, r#"{"order":2,"memo":"d"}"#);
    }
}

#[tokio::test]
async fn a_key_may_bind_for_a_period_and_while_its_job_runs() {
    for jobs in open().await {
        let day = Duration::from_hours(24);
        let enqueue = async || {
            let enqueued = jobs.enqueue(act("daily")).unique_key("k").unique_for(day).await;
            enqueued.unwrap()
        };
        let first = enqueue().await;
        let handlers = Registry::new().handle(note).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, Notes::default()));
        ended(&jobs, first.id()).await;
        running.stop().await;
        assert_eq!(enqueue().await, Enqueued::AlreadyThere(first.id()));
        let other = jobs.enqueue(act("daily")).unique_key("k");
        let other = other.unique_while(UniqueWhile::Running).await.unwrap();
        assert!(matches!(other, Enqueued::Added(_)), "the period's key is another");
        let unnamed = jobs.enqueue(act("daily")).unique_for(day).await.unwrap_err();
        assert_eq!(unnamed.kind(), ErrorKind::Configuration);
        let brief = jobs.enqueue(act("daily")).unique_key("k").unique_for(Duration::ZERO).await;
        assert_eq!(brief.unwrap_err().kind(), ErrorKind::Configuration);
        let long = jobs.enqueue(act("daily")).unique_key("k".repeat(512)).unique_for(day).await;
        let long = long.unwrap_err();
        assert_eq!(long.kind(), ErrorKind::Configuration);
        assert!(long.to_string().contains("leaves no room for its period"), "{long}");
    }
}
