//! Looking: single jobs, pages of them, and counts.

use super::super::{Count, Filter};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, job, queue};
use crate::envelope::NewJob;
use crate::id::JobId;
use crate::outcome::Ending;
use crate::state::State;
use crate::version::Version;

async fn listed(subject: &dyn Subject, filter: &Filter, limit: u32) -> Vec<JobId> {
    let jobs = subject.inspect().jobs(filter, limit).await.unwrap();
    jobs.iter().map(|job| job.id).collect()
}

pub(super) async fn a_job_that_does_not_exist_is_none(subject: &dyn Subject) {
    for id in [i64::MIN, -1, 0, 1, i64::MAX] {
        assert_eq!(subject.inspect().job(JobId(id)).await.unwrap(), None);
    }
}

pub(super) async fn jobs_are_listed_page_by_page(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let added = scene.enqueue(&vec![job("a"); 25]).await;
    let added: Vec<_> = added.into_iter().map(super::super::Enqueued::id).collect();
    let mut seen = Vec::new();
    let mut filter = Filter::default();
    loop {
        let page = listed(subject, &filter, 10).await;
        assert!(page.len() <= 10);
        let Some(last) = page.last() else { break };
        filter.after = Some(*last);
        seen.extend(page);
    }
    assert_eq!(seen, added);
}

pub(super) async fn a_listing_keeps_to_its_filter(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let mail = NewJob { queue: queue("mail"), ..job("a") };
    let done = scene.run(&job("a")).await;
    scene.end_as(&done, &Ending::Done, State::Succeeded).await;
    let dead = scene.dead(&job("b")).await;
    let mailed = scene.add(&mail).await;
    let later = scene.add(&due_in(SECOND * 60, job("b"))).await;
    let ready = scene.add(&job("a")).await;
    let by_state = |state| Filter { state: Some(state), ..Filter::default() };
    let expected = [
        (State::Scheduled, vec![later]),
        (State::Ready, vec![mailed, ready]),
        (State::Running, vec![]),
        (State::Succeeded, vec![done.fence.job]),
        (State::Dead, vec![dead]),
        (State::Cancelled, vec![]),
    ];
    for (state, ids) in expected {
        assert_eq!(listed(subject, &by_state(state), ALL).await, ids, "{state}");
    }
    let in_mail = Filter { queue: Some("mail".to_owned()), ..Filter::default() };
    assert_eq!(listed(subject, &in_mail, ALL).await, [mailed]);
    let of_b = Filter { kind: Some("b".to_owned()), ..Filter::default() };
    assert_eq!(listed(subject, &of_b, ALL).await, [dead, later]);
    let all = Filter {
        state: Some(State::Ready),
        queue: Some("default".to_owned()),
        kind: Some("a".to_owned()),
        after: Some(mailed),
    };
    assert_eq!(listed(subject, &all, ALL).await, [ready]);
    let none = Filter { kind: Some("'; drop --".to_owned()), ..Filter::default() };
    assert_eq!(listed(subject, &none, ALL).await, []);
}

pub(super) async fn jobs_are_counted_by_queue_kind_version_and_state(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    assert_eq!(subject.inspect().counts().await.unwrap(), []);
    scene.run(&job("a")).await;
    let newer = NewJob { version: Version::new(1, 0, 1), ..job("a") };
    let mail = NewJob { queue: queue("mail"), ..job("b") };
    scene.enqueue(&[job("a"), job("a"), newer, mail.clone(), mail]).await;
    let mut counts = subject.inspect().counts().await.unwrap();
    let by = |count: &Count| {
        (count.queue.clone(), count.kind.clone(), count.version.clone(), count.state)
    };
    counts.sort_by_key(by);
    let count = |queue: &str, kind: &str, version: &str, state, jobs| Count {
        queue: queue.to_owned(),
        kind: kind.to_owned(),
        version: version.to_owned(),
        state,
        jobs,
    };
    let expected = [
        count("default", "a", "1.0.0", State::Ready, 2),
        count("default", "a", "1.0.0", State::Running, 1),
        count("default", "a", "1.0.1", State::Ready, 1),
        count("mail", "b", "1.0.0", State::Ready, 2),
    ];
    assert_eq!(counts, expected);
}

pub(super) async fn a_fresh_store_is_empty(subject: &dyn Subject) {
    let inspect = subject.inspect();
    assert_eq!(inspect.jobs(&Filter::default(), ALL).await.unwrap(), []);
    assert_eq!(inspect.workers().await.unwrap(), []);
    assert_eq!(inspect.paused().await.unwrap(), []);
    let id = &subject.store().id().0;
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
}
