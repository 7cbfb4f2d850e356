use std::sync::Arc;
use std::time::Duration;

use jobs_core::{Clock, Job, State, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::{Budget, Notifier, Wired, Worker, claim, settle, tenure};
use super::*;
use crate::{JobContext, JobError, Jobs, Registry};

/// Time as tokio tells it, which stands still until everybody waits for it.
#[derive(Debug)]
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1).after(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.stay", version = "1.0.0", crate = "jobs_core")]
struct Stay {
    how: How,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum How {
    /// It takes eight seconds more.
    Finishes,
    /// It returns when it is asked to.
    Returns,
    /// It hears nothing.
    Deaf,
}

async fn stay(job: Stay, cx: JobContext<Arc<Notify>>) -> Result<(), JobError> {
    cx.state.notify_one();
    match job.how {
        How::Finishes => tokio::time::sleep(Duration::from_secs(8)).await,
        How::Returns => {
            cx.stopping().await;
            cx.check().await?;
        }
        How::Deaf => std::future::pending().await,
    }
    Ok(())
}

/// Runs these jobs, asks the worker so many times to stop, and answers what its drain says, after how
/// many milliseconds it ended, and what became of the jobs.
async fn drained(jobs: &[How], stops: usize) -> (Drained, u128, Vec<State>) {
    #[expect(clippy::disallowed_methods, reason = "the clock of a test whose time is paused")]
    let clock = Arc::new(VirtualClock(Instant::now()));
    let client = Jobs::builder().clock(clock).open("memory:").await.unwrap();
    let begun = Arc::new(Notify::new());
    let handlers = Registry::new().handle(stay).build().unwrap();
    let worker = Worker::new(&client, handlers, begun.clone())
        .lease(Duration::from_hours(1))
        .grace_period(Duration::from_secs(30));
    let budget = Budget::ask(worker.wanted.stated).await.unwrap();
    let Wired { shared, ends, .. } = worker.wire(budget, Notifier::default()).unwrap();
    tenure::register(&shared).await.unwrap();
    let mut loops = JoinSet::new();
    loops.spawn(settle::settle_loop(shared.clone(), ends));
    loops.spawn(claim::claim_loop(shared.clone()));
    let mut ids = Vec::new();
    for how in jobs {
        ids.push(client.enqueue(Stay { how: *how }).await.unwrap().id());
        begun.notified().await;
    }
    let (ask, asked) = mpsc::unbounded_channel();
    for _ in 0..stops {
        ask.send(()).unwrap();
    }
    let report = drain(&shared, Stop::Asked(asked)).await;
    let mut states = Vec::new();
    for id in ids {
        states.push(client.job(id).await.unwrap().unwrap().state);
    }
    shared.over.cancel();
    loops.join_all().await;
    (report.in_drain, report.took.as_millis(), states)
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_is_gone_at_once() {
    let (told, took_ms, _) = drained(&[], 1).await;
    assert_eq!((took_ms, told), (0, Drained::default()));
}

#[tokio::test(start_paused = true)]
async fn a_drain_takes_as_long_as_its_handlers_and_no_longer() {
    for (how, ends_ms, state) in [
        (How::Finishes, 8_000, State::Succeeded),
        (How::Returns, 24_000, State::Ready),
        (How::Deaf, 27_500, State::Ready),
    ] {
        let (told, took_ms, states) = drained(&[how], 1).await;
        // A timer of tokio fires up to a millisecond late.
        assert!((ends_ms..ends_ms + 10).contains(&took_ms), "{how:?} ended after {took_ms} ms");
        assert_eq!(states, [state], "{how:?}");
        let is_settled = state == State::Succeeded;
        let counted = (told.settled, told.interrupted, told.abandoned);
        assert_eq!(counted, (u64::from(is_settled), u64::from(!is_settled), 0), "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_further_request_to_stop_moves_on_one_phase() {
    let all = [How::Finishes, How::Returns, How::Deaf];
    let (told, took_ms, states) = drained(&all, 2).await;
    // They are asked at once, and may return until the drain's time for that is over.
    assert!((27_500..27_510).contains(&took_ms), "{took_ms} ms");
    assert_eq!(states, [State::Succeeded, State::Ready, State::Ready]);
    assert_eq!((told.settled, told.interrupted), (1, 2));
    let (_, took_ms, states) = drained(&all, 3).await;
    assert!(took_ms < 10, "{took_ms} ms");
    assert_eq!(states, [State::Ready; 3]);
}
