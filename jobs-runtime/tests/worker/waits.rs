//! Due times, wake-ups, priorities and unique keys, as a user sees them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Clock, Enqueued, State, SystemClock};

use crate::support::{Act, App, Running, act, ended, open, worker};

/// Notes in which order jobs ran and when.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<(String, Duration)>>>);

async fn note(job: Act, cx: JobContext<Notes>) -> Result<(), JobError> {
    cx.state.0.lock().unwrap().push((job.how, SystemClock.elapsed()));
    Ok(())
}

#[tokio::test]
async fn a_due_job_starts_soon_after_its_due_time_on_an_idle_worker() {
    for jobs in open().await {
        let notes = Notes::default();
        let handlers = Registry::new().handle(note).build().unwrap();
        // The poll is too slow to help: the timer sleeps to the due time.
        let idle = worker(&jobs, handlers, notes.clone()).poll_interval(Duration::from_secs(30));
        let running = Running::start(idle);
        let mut lateness = Vec::new();
        for delay in [50, 120, 200, 10, 90] {
            let delay = Duration::from_millis(delay);
            let due = SystemClock.elapsed() + delay;
            let id = jobs.enqueue(act("")).delay(delay).await.unwrap().id();
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
            let (_, ran_at) = notes.0.lock().unwrap().pop().unwrap();
            let late = ran_at.checked_sub(due).expect("it started before it was due");
            lateness.push(late);
        }
        assert!(lateness.iter().all(|late| *late < Duration::from_millis(250)), "{lateness:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn jobs_run_in_order_of_priority_and_then_of_enqueue() {
    for jobs in open().await {
        jobs.enqueue(act("low")).priority(-1).await.unwrap();
        jobs.enqueue_all(["a", "b", "c"].map(act)).await.unwrap();
        let last = jobs.enqueue(act("high")).priority(1).await.unwrap();
        assert!(matches!(last, Enqueued::Added(_)));
        let notes = Notes::default();
        let handlers = Registry::new().handle(note).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, notes.clone()).concurrency(1));
        let order =
            || notes.0.lock().unwrap().iter().map(|(how, _)| how.clone()).collect::<Vec<_>>();
        while order().len() < 5 {
            tokio::task::yield_now().await;
        }
        assert_eq!(order(), ["high", "a", "b", "c", "low"]);
        running.stop().await;
    }
}

#[tokio::test]
async fn an_enqueue_that_reports_already_there_leaves_a_run_that_starts_after_it() {
    for jobs in open().await {
        let counter = Arc::new(AtomicUsize::new(0));
        let copied = Arc::new(AtomicUsize::new(0));
        let copy = {
            let copied = copied.clone();
            move |_: Act, cx: JobContext<Arc<AtomicUsize>>| {
                copied.store(cx.state.load(Ordering::SeqCst), Ordering::SeqCst);
                async { Ok(()) }
            }
        };
        let handlers = Registry::new().handle(copy).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, counter.clone()));
        let mut last = None;
        for round in 0..500 {
            counter.fetch_add(1, Ordering::SeqCst);
            let answer = jobs.enqueue(act("")).unique_key("k").await.unwrap();
            last = Some(answer.id());
            if round % 7 == 0 {
                ended(&jobs, answer.id()).await;
            }
        }
        ended(&jobs, last.unwrap()).await;
        assert_eq!(copied.load(Ordering::SeqCst), counter.load(Ordering::SeqCst));
        running.stop().await;
    }
}

#[tokio::test]
async fn settings_outside_their_range_are_refused_with_the_reason() {
    let jobs = Jobs::open("memory:").await.unwrap();
    let refusal = async |change: fn(Worker<App>) -> Worker<App>| {
        let handlers = Registry::new().build().unwrap();
        let worker = change(Worker::new(&jobs, handlers, App::default()));
        worker.run_until(async {}).await.unwrap_err().to_string()
    };
    assert!(refusal(|w| w.concurrency(0)).await.contains("at least 1"));
    assert!(refusal(|w| w.lease(Duration::from_millis(5))).await.contains("1 s to 1 h"));
    assert!(refusal(|w| w.grace_period(Duration::ZERO)).await.contains("below 1 s"));
    assert!(refusal(|w| w.poll_interval(Duration::ZERO)).await.contains("below 10 ms"));
    assert!(refusal(|w| w.queue("a\0b")).await.contains("queue name"));
    assert!(jobs.enqueue(act("")).priority(101).await.unwrap_err().to_string().contains("-100"));
    let odd = Jobs::open("mysql://somewhere").await.unwrap_err();
    let odd = jobs_runtime::chain(&odd);
    assert!(odd.contains("sqlite://"), "{odd}");
}
