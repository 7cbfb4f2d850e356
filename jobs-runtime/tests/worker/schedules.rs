//! Schedules, as an application declares them.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::{Duty, Filter};
use jobs_runtime::{JobRecord, Schedule, ScheduleName, State};
use serde::{Deserialize, Serialize};

use crate::support::{App, Running, open, worker};

#[derive(Debug, Serialize, Deserialize, Job, Default)]
#[job(kind = "test.tick", version = "1.0.0", schedule = "every 1s")]
struct Tick;

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.report", version = "1.0.0")]
struct Report {
    list: String,
}

async fn tick(_: Tick, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}

async fn report(_: Report, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}

async fn of_kind(jobs: &Jobs, kind: &str) -> Vec<JobRecord> {
    let filter = Filter { kind: Some(kind.to_owned()), ..Filter::default() };
    jobs.inspect().jobs(&filter, u32::MAX).await.unwrap()
}

async fn until_succeeded(jobs: &Jobs, kind: &str, count: usize) {
    let look = async {
        let done = async || {
            let records = of_kind(jobs, kind).await;
            records.iter().filter(|record| record.state == State::Succeeded).count()
        };
        while done().await < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), look).await.expect("the schedule ticks");
}

#[tokio::test]
async fn what_the_derive_and_the_registry_declare_ticks_once_a_second() {
    for jobs in open().await {
        let daily = Report { list: "all".to_owned() };
        let handlers = || {
            let both = Registry::new().handle(tick).handle(report);
            both.schedule(Schedule::new("* * * * * *", &daily).named("secondly")).build().unwrap()
        };
        let app = App::default();
        let first = Running::start(worker(&jobs, handlers(), app.clone()));
        until_succeeded(&jobs, "test.tick", 2).await;
        let second = Running::start(worker(&jobs, handlers(), app.clone()));
        // The first gives its duty back with its drain, and the second goes on.
        first.stop().await;
        until_succeeded(&jobs, "test.tick", 4).await;
        until_succeeded(&jobs, "test.report", 3).await;
        second.stop().await;
        for (kind, schedule) in [("test.tick", "test.tick"), ("test.report", "secondly")] {
            let due: Vec<_> = of_kind(&jobs, kind).await.iter().map(|job| job.due_at).collect();
            let step = Duration::from_secs(1);
            assert!(due.windows(2).all(|pair| pair[1].since(pair[0]) == step), "{due:?}");
            let name = ScheduleName::new(schedule).unwrap();
            assert_eq!(jobs.store().ticks(&name).await.unwrap().len(), due.len());
        }
        let header = of_kind(&jobs, "test.report").await[0].headers.clone().unwrap();
        assert!(header.contains(r#""jobs-schedule":"secondly""#), "{header}");
    }
}

#[tokio::test]
async fn a_drain_gives_the_duty_back_at_once() {
    for jobs in open().await {
        let handlers = Registry::new().handle(tick).build().unwrap();
        let leading = Running::start(worker(&jobs, handlers, App::default()));
        until_succeeded(&jobs, "test.tick", 1).await;
        leading.stop().await;
        let other = jobs_runtime::store::NewWorker {
            name: jobs_runtime::WorkerName::new("other").unwrap(),
            build: jobs_runtime::BuildId::default(),
            manifest: "{}".to_owned(),
            lease: jobs_runtime::Lease::default(),
        };
        let other = jobs.store().register(&other).await.unwrap();
        assert!(jobs.store().take_duty(Duty::Schedule, other).await.unwrap());
    }
}

#[tokio::test]
async fn a_person_declares_in_the_store_and_takes_it_back() {
    for jobs in open().await {
        let report = Report { list: "all".to_owned() };
        let schedule = Schedule::new("every 1s", &report).named("by hand");
        jobs.declare(&schedule).await.unwrap();
        let handlers = Registry::new().handle(self::report).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        until_succeeded(&jobs, "test.report", 2).await;
        running.stop().await;
        assert!(jobs.undeclare("by hand").await.unwrap());
        assert!(!jobs.undeclare("by hand").await.unwrap());
        let never = Schedule::new("0 0 31 4 *", &report).named("by hand");
        let error = jobs.declare(&never).await.unwrap_err();
        assert_eq!(error.kind(), jobs_runtime::ErrorKind::Configuration);
        assert!(error.to_string().contains("by hand"), "{error}");
    }
}

#[tokio::test]
async fn a_paused_schedule_stands_still_until_it_is_resumed() {
    for jobs in open().await {
        let handlers = || Registry::new().handle(tick).build().unwrap();
        let running = Running::start(worker(&jobs, handlers(), App::default()));
        until_succeeded(&jobs, "test.tick", 1).await;
        assert!(jobs.pause_schedule("test.tick", "ann", "the bank is away").await.unwrap());
        assert!(jobs.pause_schedule("test.tick", "bob", "once more").await.unwrap());
        assert!(!jobs.pause_schedule("test.tock", "ann", "a slip of the pen").await.unwrap());
        running.stop().await;
        // Another worker leads from here on; its first look is what writes the pause.
        let name = ScheduleName::new("test.tick").unwrap();
        let running = Running::start(worker(&jobs, handlers(), App::default()));
        let record = async || jobs.store().schedules().await.unwrap().schedules.remove(0);
        let look = async {
            while record().await.next_at.is_some() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), look).await.expect("the pause is seen");
        let before = jobs.store().ticks(&name).await.unwrap().len();
        let status = jobs.schedules().await.unwrap().remove(0);
        let pause = status.paused.expect("it is paused");
        assert_eq!((pause.by.as_str(), pause.reason.as_str()), ("ann", "the bank is away"));
        assert_eq!(status.when.as_deref(), Some("every 1s"), "what counts behind the pause");
        running.stop().await;
        let last = jobs.ticks("test.tick").await.unwrap()[0].at;
        assert_eq!(jobs.ticks("test.tick").await.unwrap().len(), before, "no tick in the pause");
        assert!(jobs.resume_schedule("test.tick").await.unwrap());
        assert!(!jobs.resume_schedule("test.tick").await.unwrap());
        let running = Running::start(worker(&jobs, handlers(), App::default()));
        let ticked = async {
            while jobs.ticks("test.tick").await.unwrap().len() == before {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ticked).await.expect("it ticks again");
        running.stop().await;
        assert!(jobs.ticks("test.tick").await.unwrap()[0].at > last);
    }
}

#[tokio::test]
async fn what_is_declared_by_hand_while_it_is_paused_waits_behind_the_pause() {
    for jobs in open().await {
        let report = Report { list: "all".to_owned() };
        let first = Schedule::new("every 1h", &report).named("by hand");
        jobs.declare(&first).await.unwrap();
        assert!(jobs.pause_schedule("by hand", "ann", "the bank is away").await.unwrap());
        let second = Schedule::new("every 2h", &report).named("by hand");
        jobs.declare(&second).await.unwrap();
        let status = async || jobs.schedules().await.unwrap().remove(0);
        let paused = status().await;
        assert!(paused.paused.is_some(), "declaring does not end a pause");
        assert_eq!(paused.when.as_deref(), Some("every 2h"));
        assert!(jobs.resume_schedule("by hand").await.unwrap());
        assert_eq!(status().await.when.as_deref(), Some("every 2h"));
        assert!(jobs.pause_schedule("by hand", "ann", "again").await.unwrap());
        assert!(jobs.undeclare("by hand").await.unwrap(), "what stood behind the pause is gone");
        assert!(!jobs.undeclare("by hand").await.unwrap());
        assert!(status().await.paused.is_some(), "and the pause stands");
        assert!(jobs.resume_schedule("by hand").await.unwrap());
        assert_eq!(jobs.schedules().await.unwrap(), []);
    }
}

#[test]
fn a_schedule_that_never_ticks_is_refused_by_its_name() {
    let report = Report { list: String::new() };
    let registry = Registry::<App>::new()
        .handle(tick)
        .schedule(Schedule::new("0 0 30 2 *", &report))
        .schedule(Schedule::new("60 * * * *", &report).named("hourly"))
        .schedule(Schedule::new("every 1h", &report).named("test.tick"));
    let error = registry.build().unwrap_err();
    let problems = error.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains(r#"the schedule "test.report": `0 0 30 2 *` names a date"#));
    assert!(problems[1].contains(r#"the schedule "hourly": `60 * * * *` is no cron expression"#));
    assert!(problems[2].contains(r#"two schedules are named "test.tick""#));
}
