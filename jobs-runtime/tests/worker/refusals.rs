//! What a build can't read is given back unread, and a capable one runs it.

use jobs_runtime::prelude::*;
use jobs_runtime::store::Filter;
use jobs_runtime::{
    BuildId, Clock, Due, EventKind, JobId, Kind, NewJob, State, SystemClock, Version,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::support::{App, Running, ended, open, until, worker};

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.mail", version = "2.1.0")]
struct Mail {
    to: String,
}

async fn send(_: Mail, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}

/// A job as another build may have written it.
async fn written(jobs: &Jobs, kind: &str, version: Version, reader: (u32, u32)) -> JobId {
    let mail = NewJob::of(&Mail { to: "ann".to_owned() }, 1_000).unwrap();
    let min_reader = jobs_runtime::MinReader { major: reader.0, minor: reader.1 };
    let kind = Kind::new(kind).unwrap();
    let build = Some(BuildId::new("another").unwrap());
    let new = NewJob { kind, version, min_reader, build, due: Due::In(Duration::ZERO), ..mail };
    jobs.store().enqueue(&[new]).await.unwrap()[0].id()
}

#[tokio::test]
async fn what_this_build_cannot_read_is_refused_and_told_once() {
    for jobs in open().await {
        let foreign = [
            ("test.unknown", Version::new(1, 0, 0), (1, 0), "unknown_kind"),
            ("test.mail", Version::new(2, 2, 0), (2, 2), "newer"),
            ("test.mail", Version::new(3, 0, 0), (3, 0), "newer"),
            ("test.mail", Version::new(1, 7, 0), (1, 7), "older"),
        ];
        let handlers = Registry::new().handle(send).build().unwrap();
        let app = App::default();
        let running = Running::start(worker(&jobs, handlers, app.clone()));
        for (kind, version, reader, reason) in foreign {
            let id = written(&jobs, kind, version, reader).await;
            let refused = until(&jobs, id, |record| record.state == State::Scheduled).await;
            assert_eq!(refused.counters.refusals, 1, "{kind} {version}");
            assert_eq!((refused.counters.failures, refused.counters.interruptions), (0, 0));
            assert_eq!(refused.refused.unwrap().reason, reason, "{kind} {version}");
            let events = jobs.inspect().events(id).await.unwrap();
            assert_eq!(events.len(), 1, "{kind} {version}");
            assert_eq!((events[0].kind, events[0].class.as_str()), (EventKind::Refused, reason));
            assert_eq!(events[0].build.as_deref(), Some("unlabelled"));
        }
        running.stop().await;
        assert_eq!(app.count(), 0);
    }
}

#[tokio::test]
async fn a_vouched_for_newer_minor_runs() {
    for jobs in open().await {
        let handlers = Registry::new().handle(send).build().unwrap();
        let app = App::default();
        let running = Running::start(worker(&jobs, handlers, app.clone()));
        let id = written(&jobs, "test.mail", Version::new(2, 9, 0), (2, 0)).await;
        assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        running.stop().await;
        assert_eq!(app.count(), 1);
    }
}

#[tokio::test]
async fn a_capable_worker_runs_what_others_refused_at_once() {
    for jobs in open().await {
        let blind = Registry::<App>::new().build().unwrap();
        let running = Running::start(worker(&jobs, blind, App::default()).queue("default"));
        let id = jobs.enqueue(Mail { to: "ann".to_owned() }).await.unwrap().id();
        until(&jobs, id, |record| record.counters.refusals == 1).await;
        running.stop().await;
        let handlers = Registry::new().handle(send).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        let record = ended(&jobs, id).await;
        assert_eq!((record.state, record.counters.failures), (State::Succeeded, 0));
        running.stop().await;
    }
}

#[tokio::test]
async fn a_retired_kind_is_a_dead_letter() {
    for jobs in open().await {
        let handlers = Registry::<App>::new().retired("test.mail").build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()).queue("default"));
        let id = jobs.enqueue(Mail { to: "ann".to_owned() }).await.unwrap().id();
        let record = ended(&jobs, id).await;
        assert_eq!((record.state, record.counters.failures), (State::Dead, 0));
        assert_eq!(record.error_class.as_deref(), Some("retired"));
        running.stop().await;
    }
}

#[tokio::test]
async fn a_payload_that_does_not_decode_is_dead_with_its_bytes_and_stops_no_other() {
    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "test.mail", version = "2.1.0")]
    struct Misshapen {
        unlike: u64,
    }

    for jobs in open().await {
        let bad = jobs.enqueue(Misshapen { unlike: u64::MAX }).await.unwrap().id();
        let good = jobs.enqueue(Mail { to: "ann".to_owned() }).await.unwrap().id();
        let handlers = Registry::new().handle(send).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        let record = ended(&jobs, bad).await;
        assert_eq!(record.error_class.as_deref(), Some("malformed_payload"));
        assert_eq!(record.payload, r#"{"unlike":18446744073709551615}"#);
        assert_eq!(ended(&jobs, good).await.state, State::Succeeded);
        running.stop().await;
    }
}

#[tokio::test]
async fn an_upcast_that_fails_or_panics_is_dead() {
    #[derive(Debug, Serialize, Deserialize, PastJob)]
    #[job(kind = "test.past", version = "1.0.0")]
    struct Past {
        how: String,
    }

    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "test.past", version = "2.0.0", previous = Past)]
    struct Present {}

    impl TryFrom<Past> for Present {
        type Error = String;

        fn try_from(past: Past) -> Result<Self, String> {
            assert!(past.how != "panic", "no such order");
            if past.how == "fine" { Ok(Self {}) } else { Err(past.how) }
        }
    }

    async fn run(_: Present, _: JobContext<App>) -> Result<(), JobError> {
        Ok(())
    }

    for jobs in open().await {
        let handlers = Registry::new().handle(run).build().unwrap();
        let running = Running::start(worker(&jobs, handlers, App::default()));
        let past = NewJob::of(&Present {}, 1_000).unwrap();
        for (how, wanted) in
            [("fine", State::Succeeded), ("odd", State::Dead), ("panic", State::Dead)]
        {
            let payload = format!(r#"{{"how":"{how}"}}"#);
            let version = Version::new(1, 0, 0);
            let min_reader = version.own_reader();
            let new = NewJob { version, min_reader, payload, ..past.clone() };
            let id = jobs.store().enqueue(&[new]).await.unwrap()[0].id();
            let record = ended(&jobs, id).await;
            assert_eq!(record.state, wanted, "{how}");
            if wanted == State::Dead {
                assert_eq!(record.error_class.as_deref(), Some("upcast_failed"), "{how}");
            }
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn a_backlog_of_foreign_rows_is_tried_once_a_route_while_own_jobs_flow() {
    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(kind = "test.own", version = "1.0.0")]
    struct Own {}

    async fn run(_: Own, cx: JobContext<App>) -> Result<(), JobError> {
        cx.state.ran();
        Ok(())
    }

    const FOREIGN: usize = 2_000;
    let look_for = Duration::from_secs(3);
    for jobs in open().await {
        // Three routes: of a kind that no one here knows, of a newer minor, of a newer major.
        let mail = NewJob::of(&Mail { to: "ann".to_owned() }, 1_000).unwrap();
        let versions = [Version::new(1, 0, 0), Version::new(1, 4, 0), Version::new(2, 0, 0)];
        let backlog: Vec<NewJob> = (0..FOREIGN)
            .map(|n| {
                let version = versions[n % 3];
                NewJob { version, min_reader: version.own_reader(), ..mail.clone() }
            })
            .collect();
        jobs.store().enqueue(&backlog).await.unwrap();
        let app = App::default();
        let own = Registry::new().handle(run).build().unwrap();
        let running = Running::start(worker(&jobs, own, app.clone()));
        let started = SystemClock.elapsed();
        while SystemClock.elapsed() < started + look_for {
            let id = jobs.enqueue(Own {}).await.unwrap().id();
            assert_eq!(ended(&jobs, id).await.state, State::Succeeded);
        }
        running.stop().await;
        let all = jobs.inspect().jobs(&Filter::default(), u32::MAX).await.unwrap();
        for version in versions {
            let version = version.to_string();
            let of_route =
                all.iter().filter(|job| job.kind == "test.mail" && job.version == version);
            let refusals: u32 = of_route.map(|job| job.counters.refusals).sum();
            assert_eq!(refusals, 1, "{version}: one is tried per cool-down of 10 s");
        }
        let flowed = app.count();
        assert!(flowed > 5, "own jobs waited: only {flowed} ran");
        // A capable worker runs them at once, refused or not.
        let capable = Registry::new().handle(send_any).build().unwrap();
        let running = Running::start(worker(&jobs, capable, app.clone()).concurrency(50));
        let limit = Duration::from_secs(20);
        let all_ran = async {
            while app.count() < flowed + FOREIGN {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(limit, all_ran).await.is_ok(), "{}", app.count() - flowed);
        running.stop().await;
    }
}

#[derive(Debug, Serialize, Deserialize, PastJob)]
#[job(kind = "test.mail", version = "1.4.0")]
struct OlderMail {
    to: String,
}

/// What a later build makes of `test.mail`.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "test.mail", version = "2.1.0", previous = OlderMail)]
struct AnyMail {
    to: String,
}

impl From<OlderMail> for AnyMail {
    fn from(older: OlderMail) -> Self {
        Self { to: older.to }
    }
}

async fn send_any(_: AnyMail, cx: JobContext<App>) -> Result<(), JobError> {
    cx.state.ran();
    Ok(())
}
