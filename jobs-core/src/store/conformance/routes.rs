//! Routes: what is ready to be claimed, as the row's own columns say.

use super::super::ReadyRoute;
use super::scene::{ALL, SECOND, Scene, due_in, ids, job, queue, refused};
use super::{RawRow, Subject};
use crate::envelope::NewJob;
use crate::name::QueueName;
use crate::outcome::Ending;
use crate::record::Priority;
use crate::route::Route;
use crate::state::State;
use crate::version::{MinReader, Version};

async fn routes(scene: &Scene<'_>, queues: &[&str]) -> Vec<(String, String)> {
    let queues: Vec<_> = queues.iter().map(|name| queue(name)).collect();
    let routes = scene.subject.store().routes(&queues).await.unwrap();
    let text = |listed: ReadyRoute| (listed.queue.to_string(), listed.route.to_string());
    let mut texts: Vec<_> = routes.into_iter().map(text).collect();
    texts.sort();
    texts
}

fn texts(routes: &[(&str, &str)]) -> Vec<(String, String)> {
    routes.iter().map(|(queue, route)| ((*queue).to_owned(), (*route).to_owned())).collect()
}

pub(super) async fn each_ready_route_is_listed_once(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let version = Version::new(2, 3, 4);
    let min_reader = MinReader { major: 2, minor: 1 };
    let vouched = NewJob { version, min_reader, ..job("a") };
    let mail = NewJob { queue: queue("mail"), ..job("b") };
    let unasked = NewJob { queue: queue("unasked"), ..job("b") };
    scene.enqueue(&[job("a"), job("a"), vouched, mail, unasked]).await;
    let listed = routes(&scene, &["mail", "default", "empty"]).await;
    assert_eq!(listed, texts(&[("default", "a@1.0"), ("default", "a@2.1"), ("mail", "b@1.0")]));
    assert_eq!(routes(&scene, &["empty"]).await, []);
}

pub(super) async fn each_route_tells_the_place_of_its_first_job(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let first = async || {
        let listed = subject.store().routes(&[queue("default")]).await.unwrap();
        listed.iter().map(|route| route.first).collect::<Vec<_>>()
    };
    let plain = scene.add(&job("a")).await;
    scene.add(&job("a")).await;
    let due_at = scene.record(plain).await.due_at;
    assert_eq!(first().await, [Priority::default().place(due_at, plain)]);
    let urgent = scene.add(&NewJob { priority: Priority::HIGHEST, ..job("a") }).await;
    let at = Priority::HIGHEST.place(scene.record(urgent).await.due_at, urgent);
    assert_eq!(first().await, [at]);
    let other = scene.add(&job("b")).await;
    let due_at_b = scene.record(other).await.due_at;
    assert_eq!(first().await, [at, Priority::default().place(due_at_b, other)]);
    let heads = scene.heads(&["default"]).await;
    assert_eq!(ids(&scene.claim_from(&heads[..1], 1).await), [urgent]);
    assert_eq!(first().await[0], Priority::default().place(due_at, plain));
}

pub(super) async fn only_ready_jobs_have_routes(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.dead(&job("dead")).await;
    let done = scene.run(&job("done")).await;
    scene.end_as(&done, &Ending::Done, State::Succeeded).await;
    scene.run(&job("running")).await;
    scene.add(&due_in(SECOND * 60, job("scheduled"))).await;
    let cancelled = scene.add(&job("cancelled")).await;
    subject.operate().cancel(&[cancelled]).await.unwrap();
    assert_eq!(routes(&scene, &["default"]).await, []);
    scene.add(&job("ready")).await;
    assert_eq!(routes(&scene, &["default"]).await, texts(&[("default", "ready@1.0")]));
}

pub(super) async fn a_paused_queue_has_no_routes(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&[job("a"), NewJob { queue: queue("mail"), ..job("a") }]).await;
    subject.operate().pause(&QueueName::default(), "ann", "").await.unwrap();
    assert_eq!(routes(&scene, &["default", "mail"]).await, texts(&[("mail", "a@1.0")]));
    subject.operate().resume(&QueueName::default()).await.unwrap();
    assert_eq!(routes(&scene, &["default", "mail"]).await.len(), 2);
}

pub(super) async fn a_suspect_has_a_route_of_its_own(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let suspect = scene.suspect(&job("a")).await;
    let plain = scene.add(&job("a")).await;
    let listed = routes(&scene, &["default"]).await;
    assert_eq!(listed, texts(&[("default", "a@1.0"), ("default", "a@1.0..suspect")]));
    let (suspects, others): (Vec<_>, Vec<_>) =
        scene.heads(&["default"]).await.into_iter().partition(|head| head.route.is_suspect());
    assert_eq!(ids(&scene.claim_from(&others, ALL).await), [plain]);
    let run = scene.claim_from(&suspects, ALL).await;
    assert_eq!((ids(&run), run[0].route()), (vec![suspect], suspects[0].route.clone()));
    // Refused unread it is still a suspect, and is called back as one.
    scene.end_as(&run[0], &refused(), State::Scheduled).await;
    let refused = subject.store().refused_routes().await.unwrap();
    assert_eq!(refused, [suspects[0].route.clone()]);
    assert_eq!(subject.store().recall(&refused, ALL).await.unwrap(), 1);
    let run = scene.claim_from(&suspects, ALL).await.remove(0);
    // A run that got on clears it.
    scene.save(run.fence, "1").await;
    scene.end_as(&run, &Ending::Snoozed(std::time::Duration::ZERO), State::Ready).await;
    assert_eq!(routes(&scene, &["default"]).await, texts(&[("default", "a@1.0")]));
}

pub(super) async fn many_routes_are_all_listed_and_claimed(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let new: Vec<_> = (0..300).map(|number| job(&format!("kind_{number}"))).collect();
    scene.enqueue(&new).await;
    assert_eq!(routes(&scene, &["default"]).await.len(), 300);
    assert_eq!(scene.claim(ALL).await.len(), 300);
}

/// The store's own derivation is the one of [`Route::derive`], whatever the row says.
pub(super) async fn routes_are_derived_alike_from_any_text(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let versions = [
        "1.2.3",
        "1.2",
        "1",
        "",
        ".",
        "..",
        "1.",
        ".1",
        "1.2.3.4.5",
        "v1.2",
        " 1.2.3",
        "01.2.3",
        "1.2.3-rc.1",
        "é.ß.🦀",
        "1'2\"3",
        "@",
        "1@2.3",
        "99999999999999999999.1.0",
        "%._",
        "-1.0",
    ];
    let mut planted = Vec::new();
    for version in versions {
        for min_reader in [None, Some("1.0"), Some(""), Some("2.1.9"), Some("x.y.z")] {
            for kind in ["a", "", "Ä ö@1.0", "'; --"] {
                let row = RawRow {
                    queue: "default".to_owned(),
                    kind: kind.to_owned(),
                    version: version.to_owned(),
                    min_reader: min_reader.map(str::to_owned),
                    payload: "{}".to_owned(),
                };
                planted.push((subject.plant(&row).await, row));
            }
        }
    }
    let mut expected: Vec<_> = planted
        .iter()
        .map(|(_, row)| Route::derive(&row.kind, &row.version, row.min_reader.as_deref()))
        .map(|route| ("default".to_owned(), route.to_string()))
        .collect();
    expected.sort();
    expected.dedup();
    assert_eq!(routes(&scene, &["default"]).await, expected);
    let claimed = scene.claim(ALL).await;
    assert_eq!(ids(&claimed), planted.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    for (run, (_, row)) in claimed.iter().zip(&planted) {
        assert_eq!((&run.kind, &run.version), (&row.kind, &row.version));
        assert_eq!(run.min_reader, row.min_reader);
    }
}
