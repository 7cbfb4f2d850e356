use jobs_core::{Budget, ClaimNumber, Counters, Fence, JobId, Refusal, Timestamp};

use super::*;

const NOW: Duration = Duration::from_secs(1_000);
const MIDDLE: u64 = u64::MAX / 2;

fn queue() -> QueueName {
    QueueName::default()
}

fn job(id: i64, kind: &str) -> ClaimedJob {
    ClaimedJob {
        fence: Fence { job: JobId(id), claim: ClaimNumber(1) },
        queue: queue(),
        place: Place { at_us: id * 10, job: JobId(id) },
        kind: kind.to_owned(),
        version: "1.0.0".to_owned(),
        min_reader: None,
        payload: "null".to_owned(),
        headers: None,
        counters: Counters::default(),
        budget: Budget::default(),
        checkpoint: None,
        refused: None,
        enqueued_at: Timestamp::from_micros(0),
        is_expired: false,
        key_number: 0,
        due_at: Timestamp::from_micros(0),
    }
}

fn judge(route: &Route) -> RouteVerdict {
    if route.as_str().starts_with("known.") {
        RouteVerdict::Reads
    } else {
        RouteVerdict::Foreign(Refusal::UnknownKind)
    }
}

fn place(at: i64) -> Place {
    Place { at_us: at, job: JobId(at) }
}

fn ready(kind: &str, first: i64) -> ReadyRoute {
    let route = Route::derive(kind, "1.0.0", None);
    ReadyRoute { queue: queue(), route, first: place(first) }
}

/// A look that saw these.
fn saw(routes: &mut Routes, now: Duration, seen: Vec<ReadyRoute>) {
    routes.looking();
    routes.refresh(seen, now, judge);
}

/// A look that saw jobs of a known and of a foreign route.
fn listed(routes: &mut Routes, now: Duration) {
    saw(routes, now, vec![ready("known.a", 0), ready("foreign.b", 0)]);
}

/// A claim from all heads that gave these jobs.
fn noted(routes: &mut Routes, jobs: &[ClaimedJob], limit: u32) {
    let heads = routes.heads(NOW, limit, Plan::Apart);
    routes.note(&heads, jobs, NOW, MIDDLE);
}

/// Where a claim from the one head would start.
fn from(routes: &Routes) -> Place {
    let heads = routes.heads(NOW, 2, Plan::Apart);
    assert_eq!(heads.len(), 1, "{heads:?}");
    heads[0].from
}

#[test]
fn a_claim_starts_where_the_last_one_ended_or_at_what_a_look_saw_before_that() {
    let mut routes = Routes::default();
    saw(&mut routes, NOW, vec![ready("known.a", 3)]);
    assert_eq!(from(&routes), place(3), "nothing is before it");
    noted(&mut routes, &[job(4, "known.a"), job(5, "known.a")], 2);
    assert_eq!(from(&routes), job(5, "known.a").place);
    saw(&mut routes, NOW, vec![ready("known.a", 2)]);
    assert_eq!(from(&routes), place(2), "a job that came late, or first");
    noted(&mut routes, &[job(4, "known.a")], 2);
    saw(&mut routes, NOW, vec![ready("known.a", 90)]);
    assert_eq!(from(&routes), place(90), "others took what was between");
}

#[test]
fn what_was_claimed_during_a_look_is_not_walked_again() {
    let mut routes = Routes::default();
    saw(&mut routes, NOW, vec![ready("known.a", 10)]);
    noted(&mut routes, &[job(2, "known.a")], 1);
    routes.looking();
    noted(&mut routes, &[job(3, "known.a"), job(4, "known.a")], 2);
    routes.refresh(vec![ready("known.a", 30)], NOW, judge);
    assert_eq!(from(&routes), job(4, "known.a").place);
}

#[test]
fn a_hint_is_taken_to_be_of_the_routes_that_gave_some_lately() {
    let mut routes = Routes::default();
    assert!(!routes.guess(NOW), "nothing is known");
    saw(&mut routes, NOW, vec![ready("known.a", 10), ready("known.c", 10)]);
    noted(&mut routes, &[job(2, "known.a")], 8);
    saw(&mut routes, NOW, Vec::new());
    assert_eq!(routes.heads(NOW, 8, Plan::Apart), []);
    assert!(routes.guess(NOW));
    assert_eq!(from(&routes), job(2, "known.a").place);
    assert!(!routes.guess(NOW + LATELY));
}

#[test]
fn too_many_routes_are_not_guessed() {
    let mut routes = Routes::default();
    let kinds: Vec<_> = (0..=GUESSES).map(|at| format!("known.{at}")).collect();
    saw(&mut routes, NOW, kinds.iter().map(|kind| ready(kind, 10)).collect());
    let jobs: Vec<_> = kinds.iter().map(|kind| job(1, kind)).collect();
    noted(&mut routes, &jobs, 100);
    assert!(!routes.guess(NOW));
}

#[test]
fn a_foreign_route_behind_others_is_asked_for_once_a_look() {
    let mut routes = Routes::default();
    listed(&mut routes, NOW);
    assert_eq!(routes.heads(NOW, 2, Plan::Apart).len(), 2);
    noted(&mut routes, &[job(1, "known.a"), job(2, "known.a")], 2);
    let heads = routes.heads(NOW, 2, Plan::Apart);
    assert_eq!(heads.len(), 1, "the claims that follow are from one head: {heads:?}");
    listed(&mut routes, NOW);
    assert_eq!(routes.heads(NOW, 2, Plan::Apart).len(), 2);
}

#[test]
fn a_foreign_route_is_tried_once_per_cool_down() {
    let mut routes = Routes::default();
    listed(&mut routes, NOW);
    let foreign = |routes: &Routes, now| {
        let heads = routes.heads(now, 8, Plan::Apart);
        heads.iter().find(|head| head.route.as_str().starts_with("foreign.")).map(|h| h.limit)
    };
    assert_eq!(foreign(&routes, NOW), Some(1));
    noted(&mut routes, &[job(9, "foreign.b")], 8);
    assert_eq!(foreign(&routes, NOW), None);
    assert!(routes.next_probe_at().is_some_and(|at| at > NOW && at <= NOW + COOL_DOWN * 11 / 10));
    let later = NOW + COOL_DOWN / 2;
    listed(&mut routes, later);
    assert_eq!(foreign(&routes, later), None, "a new look does not end the cool-down");
    let after = NOW + COOL_DOWN * 2;
    listed(&mut routes, after);
    assert_eq!(foreign(&routes, after), Some(1));
}

#[test]
fn suspects_stand_apart_unless_they_are_foreign() {
    let mut routes = Routes::default();
    listed(&mut routes, NOW);
    assert!(!routes.has_suspects());
    let suspect = |kind: &str| Route::derive(kind, "1.0.0", None).after_crashes(4);
    let all =
        ["known.a", "foreign.b"].map(|kind| ReadyRoute { route: suspect(kind), ..ready(kind, 0) });
    saw(&mut routes, NOW, all.to_vec());
    assert!(routes.has_suspects());
    let heads = |plan| routes.heads(NOW, 8, plan).into_iter().map(|head| head.route);
    assert_eq!(heads(Plan::Apart).collect::<Vec<_>>(), [suspect("foreign.b")]);
    assert_eq!(heads(Plan::Alone).collect::<Vec<_>>(), [suspect("known.a")]);
    assert_eq!(heads(Plan::Beside).count(), 2);
    assert_eq!(heads(Plan::Clear).count(), 0);
}
