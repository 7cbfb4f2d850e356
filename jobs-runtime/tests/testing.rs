//! What applications use in their own tests: handlers inline, and a rollout in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::testing::{Inline, Plan, Simulation, decode_golden, enqueued, not_enqueued};
use jobs_runtime::{Handlers, NewJob, Next, RunInfo, State};
use serde::{Deserialize, Serialize};

/// What the build before knew.
mod old {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "mail.welcome", version = "1.0.0")]
    pub(super) struct Welcome {
        pub(super) to: String,
    }

    async fn welcome(_: Welcome, _: JobContext<()>) -> Result<(), JobError> {
        Ok(())
    }

    pub(super) fn handlers() -> Handlers<()> {
        Registry::new().handle(welcome).build().unwrap()
    }
}

/// What this build knows.
mod new {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, PastJob)]
    #[job(kind = "mail.welcome", version = "1.0.0")]
    pub(super) struct WelcomeV1 {
        to: String,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, Job)]
    #[job(kind = "mail.welcome", version = "2.0.0", previous = WelcomeV1)]
    pub(super) struct Welcome {
        pub(super) address: String,
    }

    impl From<WelcomeV1> for Welcome {
        fn from(past: WelcomeV1) -> Self {
            assert_ne!(past.to, "nobody at all", "this one can't be converted");
            Self { address: past.to }
        }
    }

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "mail.digest", version = "1.0.0")]
    pub(super) struct Digest {
        pub(super) to: String,
    }

    async fn welcome(job: Welcome, cx: JobContext<()>) -> Result<Outcome, JobError> {
        match job.address.as_str() {
            "" => return Err(JobError::new("nobody to welcome").permanent()),
            "later" => return Ok(Outcome::Snooze(Duration::from_mins(1))),
            _ => {}
        }
        cx.jobs().enqueue(Digest { to: job.address }).delay(Duration::from_hours(1)).await?;
        Ok(Outcome::Done)
    }

    async fn digest(_: Digest, _: JobContext<()>) -> Result<(), JobError> {
        Ok(())
    }

    pub(super) fn handlers() -> Handlers<()> {
        Registry::new().handle(welcome).handle(digest).build().unwrap()
    }
}

fn welcome(address: &str) -> new::Welcome {
    new::Welcome { address: address.to_owned() }
}

#[tokio::test]
async fn a_handler_runs_without_a_database() {
    let inline = Inline::new(new::handlers(), ()).await;
    assert_eq!(inline.run(welcome("ann")).await.unwrap(), Outcome::Done);
    let snoozed = inline.run(welcome("later")).await.unwrap();
    assert_eq!(snoozed, Outcome::Snooze(Duration::from_mins(1)));
    let error = inline.run(welcome("")).await.unwrap_err();
    assert!(error.to_string().contains("nobody to welcome"), "{error}");
    enqueued::<new::Digest>(inline.jobs(), |digest| digest.to == "ann").await;
    not_enqueued::<new::Digest>(inline.jobs(), |digest| digest.to == "later").await;
}

#[tokio::test]
async fn a_queue_is_drained_where_it_is_called() {
    let inline = Inline::new(new::handlers(), ()).await;
    for address in ["ann", "", "bob", "later"] {
        inline.jobs().enqueue(welcome(address)).await.unwrap();
    }
    let drained = inline.drain().await;
    assert_eq!((drained.succeeded, drained.snoozed, drained.failed.len()), (2, 1, 1));
    assert!(drained.failed[0].1.contains("nobody to welcome"), "{drained:?}");
    assert_eq!(inline.drain().await.succeeded, 0, "the digests are not due yet");
    inline.advance(Duration::from_hours(1));
    let drained = inline.drain().await;
    assert_eq!((drained.succeeded, drained.snoozed), (2, 1), "two digests, and the snooze again");
}

/// Leaves all that a handler can leave on its job.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "mail.report", version = "1.0.0", checkpoint = Page, checkpoint_every = "1h")]
struct Report {}

#[derive(Debug, PartialEq, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct Page(u32);

async fn report(_: Report, mut cx: JobContext<usize, Page>) -> Result<(), JobError> {
    let Page(from) = cx.resume_or(Page(0));
    if cx.failures() == 0 && from == 0 {
        return Err(JobError::new("not yet").retry_in(Duration::ZERO));
    }
    // The first is written at once, the second put off until the run has ended.
    cx.checkpoint(&Page(from + 1)).await?;
    cx.checkpoint(&Page(from + 2)).await?;
    cx.progress(format!("page {}", from + 2));
    cx.set_result(&(from + 2))?;
    if from == 0 { Err(JobError::new("half-way").retry_in(Duration::ZERO)) } else { Ok(()) }
}

#[tokio::test]
async fn what_a_handler_leaves_on_its_job_is_kept_as_in_a_worker() {
    let wrapped = Arc::new(AtomicUsize::new(0));
    let counting = wrapped.clone();
    let around = move |_: usize, _: Arc<RunInfo>, next: Next| {
        counting.fetch_add(1, Ordering::SeqCst);
        next.run()
    };
    let handlers = Registry::new().handle(report).around(around).build().unwrap();
    let inline = Inline::new(handlers, 0).await;
    let id = inline.jobs().enqueue(Report {}).await.unwrap().id();
    let read = async || inline.jobs().job(id).await.unwrap().unwrap();
    assert_eq!(inline.drain().await.failed.len(), 2, "and then it succeeded");
    let record = read().await;
    assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
    assert_eq!(record.checkpoint.unwrap().text, "4");
    assert_eq!(record.progress.as_deref(), Some("page 4"));
    assert_eq!(record.result.as_deref(), Some("4"));
    assert_eq!(wrapped.load(Ordering::SeqCst), 3, "each run went through the middleware");
}

#[tokio::test]
async fn a_run_by_itself_is_of_its_own_job_whatever_became_of_the_one_before() {
    let inline = Inline::new(new::handlers(), ()).await;
    inline.run(welcome("")).await.unwrap_err();
    inline.run(welcome("later")).await.unwrap();
    inline.advance(Duration::from_mins(2));
    assert_eq!(inline.run(welcome("ann")).await.unwrap(), Outcome::Done);
    assert_eq!(inline.drain().await.snoozed, 1, "the one that was put off is due again");
}

#[tokio::test]
async fn a_job_that_no_worker_would_start_is_not_run() {
    let inline = Inline::new(new::handlers(), ()).await;
    let late = inline.jobs().enqueue(welcome("ann")).expires_in(Duration::from_secs(1));
    let late = late.await.unwrap().id();
    inline.advance(Duration::from_secs(2));
    assert_eq!(inline.drain().await.succeeded, 0);
    let record = inline.jobs().job(late).await.unwrap().unwrap();
    assert_eq!((record.state, record.error_class.as_deref()), (State::Dead, Some("expired")));
}

#[tokio::test]
async fn a_conversion_that_panics_is_a_dead_letter_and_no_panic_of_the_test() {
    let inline = Inline::new(new::handlers(), ()).await;
    let old = NewJob::of(&old::Welcome { to: "nobody at all".to_owned() }, 1_024).unwrap();
    let old = inline.jobs().enqueue_new(old).await.unwrap().id();
    assert_eq!(inline.drain().await.failed.len(), 1);
    let record = inline.jobs().job(old).await.unwrap().unwrap();
    assert_eq!((record.state, record.error_class.as_deref()), (State::Dead, Some("upcast_failed")));
}

#[tokio::test]
#[should_panic(expected = "no such job of `mail.digest` was enqueued")]
async fn what_was_not_enqueued_is_told_with_what_was() {
    let inline = Inline::new(new::handlers(), ()).await;
    inline.jobs().enqueue(new::Digest { to: "bob".to_owned() }).await.unwrap();
    enqueued::<new::Digest>(inline.jobs(), |digest| digest.to == "ann").await;
}

#[test]
fn a_golden_row_decodes_as_a_stored_one() {
    let decoded = decode_golden::<new::Welcome>("1.0.0", r#"{"to":"ann"}"#).unwrap();
    assert_eq!(decoded, welcome("ann"));
    decode_golden::<new::Welcome>("2.1.0", r#"{"address":"ann"}"#).unwrap_err();
    decode_golden::<new::Welcome>("1.0.0", r#"{"address":"ann"}"#).unwrap_err();
}

#[tokio::test]
async fn a_rollout_forwards_and_back_loses_doubles_and_fails_nothing() {
    let (old, new) = (old::handlers(), new::handlers());
    let mut interruptions = 0;
    for seed in 1..=20 {
        let minute = Duration::from_mins(1);
        let report = Simulation::new(&old, &new)
            .seed(seed)
            .plan(Plan::rolling(3, Duration::from_secs(10)).rolled_back().kills(4))
            .load(minute, (0..100).map(|n| old::Welcome { to: n.to_string() }))
            .load(minute, (0..100).map(|n| welcome(&n.to_string())))
            .load(minute, (0..100).map(|n| new::Digest { to: n.to_string() }))
            .run()
            .await;
        report.assert_nothing_lost();
        assert_eq!(report.jobs.len(), 300);
        assert!(report.refusals() > 0, "old workers met new jobs");
        interruptions += report.jobs.iter().map(|job| job.interruptions).sum::<u32>();
        let again = Simulation::new(&old, &new)
            .seed(seed)
            .plan(Plan::rolling(3, Duration::from_secs(10)).rolled_back().kills(4))
            .load(minute, (0..100).map(|n| old::Welcome { to: n.to_string() }))
            .load(minute, (0..100).map(|n| welcome(&n.to_string())))
            .load(minute, (0..100).map(|n| new::Digest { to: n.to_string() }));
        if seed == 1 {
            assert_eq!(again.run().await, report, "a seed gives the same run again");
        }
    }
    assert!(interruptions > 0, "eighty kills interrupted nothing");
}

#[tokio::test]
async fn new_jobs_start_soon_once_a_new_worker_is_up() {
    let (old, new) = (old::handlers(), new::handlers());
    let report = Simulation::new(&old, &new)
        .plan(Plan::rolling(3, Duration::from_secs(10)))
        .load(Duration::from_secs(5), (0..200).map(|n| welcome(&n.to_string())))
        .run()
        .await;
    report.assert_nothing_lost();
    // The first of them is there after ten seconds; before that nobody could run them.
    let slowest = report.p99_delay(|job| job.kind == "mail.welcome").unwrap();
    assert!(slowest < Duration::from_secs(10 + 35), "{slowest:?}");
}

#[tokio::test]
async fn a_build_that_drops_a_kind_is_caught() {
    let (old, new) = (new::handlers(), old::handlers());
    let report = Simulation::new(&old, &new)
        .load(Duration::from_mins(2), (0..50).map(|n| new::Digest { to: n.to_string() }))
        .run()
        .await;
    assert!(!report.stranded().is_empty());
    assert!(report.lost().is_empty() && report.failed_by_the_deploy().is_empty());
    assert!(
        report
            .stranded()
            .iter()
            .all(|job| job.state == Some(State::Scheduled) || job.state == Some(State::Ready))
    );
}

#[tokio::test]
async fn a_shape_that_changed_under_its_version_is_caught() {
    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "mail.welcome", version = "1.0.0")]
    struct Changed {
        whom: String,
    }

    async fn changed(_: Changed, _: JobContext<()>) -> Result<(), JobError> {
        Ok(())
    }

    let new = Registry::new().handle(changed).build().unwrap();
    let report = Simulation::new(&old::handlers(), &new)
        .load(Duration::from_mins(1), (0..50).map(|n| old::Welcome { to: n.to_string() }))
        .run()
        .await;
    assert!(!report.failed_by_the_deploy().is_empty());
}
