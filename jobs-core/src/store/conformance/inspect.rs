//! Looking: single jobs, pages of them, and counts.

use super::super::{Brief, Count, Depth, Filter, QueueDepth, Span};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, due_in, job, queue, refused as given_back};
use crate::clock::Timestamp;
use crate::envelope::NewJob;
use crate::id::JobId;
use crate::name::{BuildId, UniqueKey};
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
        ..Filter::default()
    };
    assert_eq!(listed(subject, &all, ALL).await, [ready]);
    let of_class = |class: &str| Filter { class: Some(class.to_owned()), ..Filter::default() };
    assert_eq!(listed(subject, &of_class("error"), ALL).await, [dead]);
    assert_eq!(listed(subject, &of_class("none"), ALL).await, []);
    let none = Filter { kind: Some("'; drop --".to_owned()), ..Filter::default() };
    assert_eq!(listed(subject, &none, ALL).await, []);
}

pub(super) async fn a_listing_keeps_to_its_spans_and_builds(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let by = |build: &str| NewJob { build: Some(BuildId::new(build).unwrap()), ..job("a") };
    let first = scene.dead(&by("old")).await;
    subject.advance(SECOND).await;
    let second = scene.dead(&by("new")).await;
    subject.advance(SECOND).await;
    let waiting = scene.add(&by("new")).await;
    let [early, late] = [scene.record(first).await, scene.record(second).await];
    let build = |build: &str| Filter { enqueued_by: Some(build.to_owned()), ..Filter::default() };
    assert_eq!(listed(subject, &build("old"), ALL).await, [first]);
    assert_eq!(listed(subject, &build("new"), ALL).await, [second, waiting]);
    let failed = |build: &str| Filter { failed_by: Some(build.to_owned()), ..Filter::default() };
    let author = scene.author().build.to_string();
    assert_eq!(listed(subject, &failed(&author), ALL).await, [first, second]);
    assert_eq!(listed(subject, &failed("new"), ALL).await, []);
    let span = |from, before| Span { from, before };
    let finished = |from, before| Filter { finished: span(from, before), ..Filter::default() };
    let (early_end, late_end) = (early.finished_at, late.finished_at);
    assert_eq!(listed(subject, &finished(late_end, None), ALL).await, [second]);
    assert_eq!(listed(subject, &finished(None, late_end), ALL).await, [first]);
    assert_eq!(listed(subject, &finished(early_end, late_end), ALL).await, [first]);
    let enqueued = |from, before| Filter { enqueued: span(from, before), ..Filter::default() };
    let since = Some(late.enqueued_at);
    assert_eq!(listed(subject, &enqueued(since, None), ALL).await, [second, waiting]);
    assert_eq!(listed(subject, &enqueued(None, since), ALL).await, [first]);
    let ends = [Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX)];
    let widest = enqueued(Some(ends[0]), Some(ends[1]));
    assert_eq!(listed(subject, &widest, ALL).await, [first, second, waiting]);
}

pub(super) async fn the_newest_jobs_are_listed_from_the_end(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let added = scene.enqueue(&vec![job("a"); 25]).await;
    let mut added: Vec<_> = added.into_iter().map(super::super::Enqueued::id).collect();
    added.reverse();
    let mut seen = Vec::new();
    let mut filter = Filter { kind: Some("a".to_owned()), ..Filter::default() };
    loop {
        let page = subject.inspect().newest(&filter, 10).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.after = Some(last.id);
        seen.extend(page.iter().map(|job| job.id));
    }
    assert_eq!(seen, added);
}

pub(super) async fn briefs_are_the_jobs_without_what_they_carry(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.dead(&job("a")).await;
    scene.add(&NewJob { queue: queue("mail"), ..job("b") }).await;
    let filter = Filter::default();
    let brief = Brief::of;
    scene.run(&job("c")).await;
    let refused = scene.run(&NewJob { unique_key: UniqueKey::new("k").ok(), ..job("d") }).await;
    scene.end_as(&refused, &given_back(), State::Scheduled).await;
    let jobs = subject.inspect().jobs(&filter, ALL).await.unwrap();
    let briefs = subject.inspect().briefs(&filter, ALL).await.unwrap();
    assert_eq!(briefs, jobs.iter().map(brief).collect::<Vec<_>>());
    let behind = Filter { after: Some(jobs[0].id), state: Some(State::Ready), ..filter };
    let briefs = subject.inspect().briefs(&behind, 1).await.unwrap();
    assert_eq!(briefs, [brief(&jobs[1])]);
    let newest = subject.inspect().newest(&Filter::default(), ALL).await.unwrap();
    let briefs = subject.inspect().newest_briefs(&Filter::default(), ALL).await.unwrap();
    assert_eq!(briefs, newest.iter().map(brief).collect::<Vec<_>>());
    let named = [jobs[2].id, JobId(1_000_000_000), jobs[0].id, jobs[2].id];
    let briefs = subject.inspect().briefs_of(&named).await.unwrap();
    assert_eq!(briefs, [brief(&jobs[0]), brief(&jobs[2])]);
    assert_eq!(subject.inspect().briefs_of(&[]).await.unwrap(), []);
    let behind = Filter { after: Some(newest[0].id), ..Filter::default() };
    let briefs = subject.inspect().newest_briefs(&behind, 1).await.unwrap();
    assert_eq!(briefs, [brief(&newest[1])]);
}

pub(super) async fn the_depth_counts_what_is_there_up_to_a_limit(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let none = State::ALL.map(|state| (state, 0)).to_vec();
    let depth = async |most| subject.inspect().depth(most).await.unwrap();
    assert_eq!(depth(10).await, Depth { states: none, queues: vec![] });
    scene.dead(&job("a")).await;
    scene.run(&job("a")).await;
    let mail = NewJob { queue: queue("mail"), ..job("b") };
    let first = scene.add(&mail).await;
    subject.advance(SECOND).await;
    scene.enqueue(&vec![mail; 4]).await;
    scene.add(&due_in(SECOND * 60, job("b"))).await;
    let head_due_at = Some(scene.record(first).await.due_at);
    let name = |name: &str| name.to_owned();
    let queues = vec![
        QueueDepth { queue: name("default"), ready: 0, head_due_at: None, running: 1 },
        QueueDepth { queue: name("mail"), ready: 5, head_due_at, running: 0 },
    ];
    let states = State::ALL.into_iter().zip([1, 5, 1, 0, 1, 0]).collect();
    assert_eq!(depth(10).await, Depth { states, queues });
    let bounded = depth(2).await;
    assert_eq!(bounded.states[1], (State::Ready, 2));
    assert_eq!(bounded.queues[1].ready, 2);
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
