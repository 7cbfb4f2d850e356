//! What may be in a row although no one sane put it there.

use std::time::Duration;

use super::super::{CANCELLED, Cancelled, Redrive, Redriven, Standing, Strand};
use super::scene::{ALL, SECOND, Scene, failed, ids, job, queue, save};
use super::{RawRow, Subject, Tampering};
use crate::envelope::NewJob;
use crate::id::JobId;
use crate::outcome::{Ending, Retry};
use crate::record::{ClaimedJob, EventKind};
use crate::route::Route;
use crate::state::State;

/// JSON texts that a store which parses, rounds or reformats would change.
const PAYLOADS: [&str; 14] = [
    "null",
    "[]",
    "{}",
    "{ }",
    "\"\"",
    r#"{"b":1,"a":2,"b":3}"#,
    "[18446744073709551615, -9223372036854775808, 1970670598291982290]",
    "[0.1, 1.0, 1e2, 1E+400, -0, -0.0, 123456789.123456789123456789]",
    r#"{"nul":"\u0000","\u0000":"nul"}"#,
    r#"["\ud800", "\udc00\ud800"]"#,
    r#"["\u00e9", "é", "\/", "/", "🦀", "\ud83e\udd80"]"#,
    " \t\r\n{\"a\" :\n\t1 }\n ",
    r#"["'; drop table job; --", "$1", "?1", "%s", "\\", "\""]"#,
    "[\"\u{202e}rtl\u{200b}\u{feff}\u{10ffff}\"]",
];

pub(super) async fn a_payload_is_kept_to_the_byte(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for payload in PAYLOADS {
        let run = scene.run(&NewJob { payload: payload.to_owned(), ..job("a") }).await;
        assert_eq!(run.payload, payload);
        assert_eq!(scene.record(run.fence.job).await.payload, payload);
        scene.save(run.fence, payload).await;
        assert_eq!(scene.record(run.fence.job).await.checkpoint.unwrap().text, payload);
    }
}

pub(super) async fn a_planted_payload_is_kept_to_the_byte(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    for payload in PAYLOADS {
        let id = subject.plant(&row("a", "1.0.0", payload)).await;
        let run = scene.take().await;
        assert_eq!((run.fence.job, run.payload.as_str()), (id, payload));
    }
}

fn row(kind: &str, version: &str, payload: &str) -> RawRow {
    RawRow {
        queue: "default".to_owned(),
        kind: kind.to_owned(),
        version: version.to_owned(),
        min_reader: None,
        payload: payload.to_owned(),
    }
}

pub(super) async fn a_payload_of_a_mebibyte_is_kept(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let payload = format!("\"{}\"", "é🦀'\\\\".repeat(crate::MAX_PAYLOAD_BYTES / 10));
    let run = scene.run(&NewJob { payload: payload.clone(), ..job("a") }).await;
    assert_eq!(run.payload, payload);
    scene.save(run.fence, &payload).await;
    assert_eq!(scene.record(run.fence.job).await.checkpoint.unwrap().text, payload);
}

pub(super) async fn deep_json_is_not_looked_into(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let payload = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let run = scene.run(&NewJob { payload: payload.clone(), ..job("a") }).await;
    assert_eq!(run.payload, payload);
}

pub(super) async fn queue_names_are_any_text_and_never_alike(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let long = "🦀".repeat(63);
    let longer = format!("{long}a");
    let ascii = "q".repeat(255);
    let other = format!("{}r", "q".repeat(254));
    let names = [
        "default",
        "Default",
        "default ",
        "' or 1=1",
        "\"",
        "`",
        ";--",
        "%",
        "_",
        "\\",
        "$1",
        "?",
        "é",
        "e\u{301}",
        "\u{202e}rtl",
        "\u{200b}",
        "@",
        "a@1.0",
        "{}",
        "🦀",
        &long,
        &longer,
        &ascii,
        &other,
    ];
    for name in names {
        scene.add(&NewJob { queue: queue(name), ..job("a") }).await;
    }
    for name in names {
        let runs = scene.claim_in(name, ALL).await;
        assert_eq!(runs.len(), 1, "{name:?}");
        assert_eq!(runs[0].queue.as_str(), name);
        assert_eq!(scene.record(runs[0].fence.job).await.queue, name);
    }
}

pub(super) async fn a_row_with_any_kind_and_version_runs_its_course(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let long = "k".repeat(500);
    let cases = [
        ("", ""),
        ("Ärger", "eins"),
        ("a@b", "1.0.0@"),
        ("'; --", "0.1.0"),
        ("jobs.internal", "1.0.0-rc.1+build"),
        ("\u{202e}", "\u{202e}"),
        (&long, "99999999999999999999.0.0"),
        ("a\nb", "1.\n0"),
    ];
    for (kind, version) in cases {
        let id = subject.plant(&row(kind, version, "{}")).await;
        let run = scene.take().await;
        assert_eq!((run.fence.job, run.kind.as_str(), run.version.as_str()), (id, kind, version));
        let malformed = Ending::MalformedVersion(format!("{version:?} is not a version"));
        scene.end_as(&run, &malformed, State::Dead).await;
        let record = scene.record(id).await;
        assert_eq!(record.error_class.as_deref(), Some("malformed_version"));
        subject.operate().redrive(&[id], super::super::Redrive::default()).await.unwrap();
        let again = scene.take().await;
        scene.end_as(&again, &Ending::Done, State::Succeeded).await;
    }
}

pub(super) async fn a_row_with_full_counters_stops_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let full = scene.add(&job("a")).await;
    subject.tamper(full, &Tampering::FillCounters).await;
    let others = scene.enqueue(&vec![job("a"); 100]).await;
    let mut claimed = Vec::new();
    for _ in 0..11 {
        claimed.extend(ids(&scene.claim(10).await));
    }
    claimed.sort_unstable();
    let others: Vec<_> = others.into_iter().map(super::super::Enqueued::id).collect();
    assert_eq!(claimed, others);
    assert_eq!(scene.claim(ALL).await, []);
    let record = scene.record(full).await;
    assert_eq!(record.state, State::Dead);
    assert_eq!(record.error_class.as_deref(), Some(super::super::EXHAUSTED));
    assert!(record.finished_at.is_some() && record.worker.is_none());
    assert_eq!(scene.events(full).await.last().unwrap().class, super::super::EXHAUSTED);
}

pub(super) async fn a_run_with_full_counters_is_taken_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let full = scene.add(&job("a")).await;
    subject.tamper(full, &Tampering::FillCounters).await;
    subject.tamper(full, &Tampering::RunUnheld).await;
    let unheld = scene.add(&job("b")).await;
    subject.tamper(unheld, &Tampering::RunUnheld).await;
    let mut jobs = scene.sweep().await.jobs;
    jobs.sort_unstable();
    assert_eq!(
        jobs,
        [(full, State::Scheduled), (unheld, State::Ready)],
        "nobody knows if it was alone"
    );
}

/// Stores two jobs, and fills the counters of the first.
async fn full_beside_good(scene: &Scene<'_>, new: &NewJob) -> [JobId; 2] {
    let pair = [scene.add(new).await, scene.add(new).await];
    scene.subject.tamper(pair[0], &Tampering::FillCounters).await;
    pair
}

pub(super) async fn waiting_jobs_with_full_counters_end_and_come_back_beside_others(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    let (store, operate) = (subject.store(), subject.operate());
    let cancelled = full_beside_good(&scene, &job("a")).await;
    assert_eq!(operate.cancel(&cancelled).await.unwrap(), [Cancelled::Cancelled; 2]);
    let routes = ["b@1.0..suspect", "b@1.0"].map(|route| Route::from_store(route.to_owned()));
    let stranded = full_beside_good(&scene, &job("b")).await;
    let strand = Strand { by: scene.author(), routes: &routes, waited: Duration::ZERO, limit: ALL };
    assert_eq!(store.strand(&strand).await.unwrap(), 2);
    let expired = full_beside_good(&scene, &NewJob { expires_in: Some(SECOND), ..job("c") }).await;
    subject.advance(SECOND * 2).await;
    assert_eq!(store.expire(ALL).await.unwrap(), 2);
    for pair in [cancelled, stranded, expired] {
        let redriven = operate.redrive(&pair, Redrive::default()).await.unwrap();
        assert_eq!(redriven, [Redriven::Ready; 2]);
        let numbers = async |id| scene.events(id).await.into_iter().map(|event| event.number);
        assert_eq!(numbers(pair[0]).await.collect::<Vec<_>>(), [i64::MAX]);
        assert_eq!(numbers(pair[1]).await.collect::<Vec<_>>(), [1, 2]);
        assert_eq!(scene.events(pair[0]).await[0].class, super::super::REDRIVEN);
    }
}

pub(super) async fn a_run_with_full_counters_goes_on_beside_others(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 2]).await;
    let mut runs = scene.claim(ALL).await;
    let fences = |runs: &[ClaimedJob]| runs.iter().map(|run| run.fence).collect::<Vec<_>>();
    let save_all = async |runs: &[ClaimedJob], text: &str| {
        let saves: Vec<_> = fences(runs).into_iter().map(|fence| save(fence, text)).collect();
        subject.store().checkpoint(&saves).await.unwrap()
    };
    save_all(&runs, "[0]").await;
    subject.tamper(runs[0].fence.job, &Tampering::FillCounters).await;
    runs[0].fence.claim.0 = i64::MAX;
    for (text, number) in [("[1]", 2), ("[2]", 3)] {
        assert_eq!(save_all(&runs, text).await, [Standing::Held; 2]);
        // By itself it is a statement of its own in some stores.
        for (run, number) in runs.iter().zip([i64::MAX, number]) {
            let alone = format!("{text} ");
            let stored = scene.record(run.fence.job).await.checkpoint.unwrap();
            assert_eq!((stored.text.as_str(), stored.number), (text, number));
            if number == i64::MAX {
                assert_eq!(scene.save(run.fence, &alone).await, Standing::Held);
                let stored = scene.record(run.fence.job).await.checkpoint.unwrap();
                assert_eq!((stored.text, stored.number), (alone, number));
            }
        }
    }
    let ids = ids(&runs);
    assert_eq!(subject.operate().cancel(&ids).await.unwrap(), [Cancelled::Requested; 2]);
    let ended = |run| super::scene::ended(run, &failed(Retry::After(SECOND)));
    let settlements: Vec<_> = runs.iter().map(ended).collect();
    let settled = subject.store().settle(&scene.author(), &settlements).await.unwrap();
    assert_eq!(settled, [super::super::Settled::Applied(State::Cancelled); 2]);
    for id in ids {
        let last = scene.events(id).await.pop().unwrap();
        assert_eq!((last.kind, last.class.as_str()), (EventKind::Cancelled, CANCELLED));
    }
}

pub(super) async fn full_counters_stay_full(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let counters = crate::Counters {
        failures: crate::COUNTER_MAX,
        interruptions: crate::COUNTER_MAX,
        crashes: 0,
        refusals: crate::COUNTER_MAX,
        snoozes: crate::COUNTER_MAX,
    };
    let unstarted = super::scene::ended(&run, &Ending::Unstarted);
    scene.settle(&crate::Settlement { counters, ..unstarted }).await;
    let run = scene.take().await;
    assert_eq!(scene.close().await, [run.fence.job]);
    let record = scene.record(run.fence.job).await;
    assert_eq!(record.counters, counters);
    assert_eq!(record.state, State::Scheduled, "a job that does not get on is delayed");
}

pub(super) async fn one_bad_job_in_a_batch_stops_no_other(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    subject.plant(&row("a", "not a version", "null")).await;
    scene.enqueue(&vec![job("a"); 5]).await;
    let runs = scene.claim(ALL).await;
    assert_eq!(runs.len(), 6);
    let mut settlements: Vec<_> =
        runs.iter().map(|run| super::scene::ended(run, &failed(Retry::After(SECOND)))).collect();
    settlements[3].fence.claim.0 = i64::MAX;
    settlements[4].fence.job.0 = i64::MIN;
    let settled = subject.store().settle(&scene.author(), &settlements).await.unwrap();
    let lost = settled.iter().filter(|one| **one == super::super::Settled::LeaseLost).count();
    assert_eq!(lost, 2);
}

pub(super) async fn the_longest_manifest_and_names_are_kept(subject: &dyn Subject) {
    let manifest = format!("{{\"kinds\":\"{}\"}}", "x'\\\"".repeat(50_000));
    let name = "é".repeat(127);
    let worker = super::super::NewWorker {
        name: crate::WorkerName::new(&name).unwrap(),
        manifest: manifest.clone(),
        ..super::scene::new_worker("one")
    };
    subject.store().register(&worker).await.unwrap();
    let record = subject.inspect().workers().await.unwrap().remove(0);
    assert_eq!((record.name, record.manifest), (name, manifest));
}
